// SPDX-License-Identifier: Apache-2.0
// What only the C library's headers name.
#define _GNU_SOURCE
#include "node-agent/kernel/syscall_labels.h"

#include <fcntl.h>
#include <sys/eventfd.h>
#include <sys/mount.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/timerfd.h>
#include <sys/wait.h>
#include <unistd.h>

#define LABEL(set, name) {#set, #name, (unsigned int)(name)}

const struct known_label weft_labels_of_libc[] = {
    LABEL(file_mode, S_IXOTH),
    LABEL(file_mode, S_IWOTH),
    LABEL(file_mode, S_IROTH),
    LABEL(file_mode, S_IXGRP),
    LABEL(file_mode, S_IWGRP),
    LABEL(file_mode, S_IRGRP),
    LABEL(file_mode, S_IXUSR),
    LABEL(file_mode, S_IWUSR),
    LABEL(file_mode, S_IRUSR),
    LABEL(file_mode, S_ISVTX),
    LABEL(file_mode, S_ISGID),
    LABEL(file_mode, S_ISUID),
    LABEL(file_mode, S_IFIFO),
    LABEL(file_mode, S_IFCHR),
    LABEL(file_mode, S_IFDIR),
    LABEL(file_mode, S_IFBLK),
    LABEL(file_mode, S_IFREG),
    LABEL(file_mode, S_IFLNK),
    LABEL(file_mode, S_IFSOCK),
    LABEL(access_mode, F_OK),
    LABEL(access_mode, X_OK),
    LABEL(access_mode, W_OK),
    LABEL(access_mode, R_OK),
    LABEL(splice_flags, SPLICE_F_MOVE),
    LABEL(splice_flags, SPLICE_F_NONBLOCK),
    LABEL(splice_flags, SPLICE_F_MORE),
    LABEL(splice_flags, SPLICE_F_GIFT),
    LABEL(umount_flags, MNT_FORCE),
    LABEL(umount_flags, MNT_DETACH),
    LABEL(umount_flags, MNT_EXPIRE),
    LABEL(umount_flags, UMOUNT_NOFOLLOW),
    LABEL(which_id, P_ALL),
    LABEL(which_id, P_PID),
    LABEL(which_id, P_PGID),
    LABEL(which_id, P_PIDFD),
    LABEL(eventfd_flags, EFD_SEMAPHORE),
    LABEL(eventfd_flags, EFD_NONBLOCK),
    LABEL(eventfd_flags, EFD_CLOEXEC),
    LABEL(signalfd_flags, SFD_NONBLOCK),
    LABEL(signalfd_flags, SFD_CLOEXEC),
    LABEL(socket_type, SOCK_STREAM),
    LABEL(socket_type, SOCK_DGRAM),
    LABEL(socket_type, SOCK_RAW),
    LABEL(socket_type, SOCK_RDM),
    LABEL(socket_type, SOCK_SEQPACKET),
    LABEL(socket_type, SOCK_DCCP),
    LABEL(socket_type, SOCK_PACKET),
    LABEL(socket_type, SOCK_NONBLOCK),
    LABEL(socket_type, SOCK_CLOEXEC),
    LABEL(socket_flags, SOCK_NONBLOCK),
    LABEL(socket_flags, SOCK_CLOEXEC),
    LABEL(shutdown_how, SHUT_RD),
    LABEL(shutdown_how, SHUT_WR),
    LABEL(shutdown_how, SHUT_RDWR),
    LABEL(message_flags, MSG_OOB),
    LABEL(message_flags, MSG_PEEK),
    LABEL(message_flags, MSG_DONTROUTE),
    LABEL(message_flags, MSG_CTRUNC),
    LABEL(message_flags, MSG_PROXY),
    LABEL(message_flags, MSG_TRUNC),
    LABEL(message_flags, MSG_DONTWAIT),
    LABEL(message_flags, MSG_EOR),
    LABEL(message_flags, MSG_WAITALL),
    LABEL(message_flags, MSG_FIN),
    LABEL(message_flags, MSG_SYN),
    LABEL(message_flags, MSG_CONFIRM),
    LABEL(message_flags, MSG_RST),
    LABEL(message_flags, MSG_ERRQUEUE),
    LABEL(message_flags, MSG_NOSIGNAL),
    LABEL(message_flags, MSG_MORE),
    LABEL(message_flags, MSG_WAITFORONE),
    LABEL(message_flags, MSG_BATCH),
    LABEL(message_flags, MSG_ZEROCOPY),
    LABEL(message_flags, MSG_FASTOPEN),
    LABEL(message_flags, MSG_CMSG_CLOEXEC),
    {0, 0, 0},
};
