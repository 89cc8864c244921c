// SPDX-License-Identifier: Apache-2.0
// See doorbell.h.
#include "ust-injector/preload/doorbell.h"

#include <errno.h>
#include <linux/mman.h>
#include <linux/un.h>
#include <sys/socket.h>

#include "ust-injector/preload/process.h"

// Ring sets that could not be announced and are not reported yet, by channel. Written with atomic
// operations: any process of the forks may write, and may die between two.
struct weft_unannounced {
  struct {
    uint64_t channel_id;  // 0: free
    uint64_t count;
  } of[WEFT_MAX_CHANNELS];
};

// A page that is used only where it is needed.
void weft_doorbell_start(void) {
  const long page = weft_syscall(__NR_mmap, 0, sizeof(struct weft_unannounced), 3,
                                 MAP_SHARED | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (page > 0) weft_process.unannounced = (struct weft_unannounced*)page;
}

// Where the ring sets of a channel that were not announced are counted; NULL: nowhere, all entries
// are taken.
static uint64_t* unannounced_of(uint64_t channel_id) {
  struct weft_unannounced* u = weft_process.unannounced;
  for (uint32_t i = 0; u != NULL && i < WEFT_MAX_CHANNELS; ++i) {
    uint64_t id = 0;
    // relaxed: an entry's id is all that counts of it
    if (__atomic_compare_exchange_n(&u->of[i].channel_id, &id, channel_id, false, __ATOMIC_RELAXED,
                                    __ATOMIC_RELAXED) ||
        id == channel_id) {
      return &u->of[i].count;
    }
  }
  return NULL;
}

// Too many call at once, or too much is open. EPIPE and ECONNRESET: it was accepted, and sent away
// before it spoke.
static bool is_crowded(long result) {
  return result == -EAGAIN || result == -ETOOMANYREFS || result == -EMFILE || result == -ENFILE ||
         result == -ENOBUFS || result == -ENOMEM || result == -EPIPE || result == -ECONNRESET;
}

// The result of the system call that failed, or not negative.
static long send_bell(int fd, const struct weft_doorbell* bell) {
  struct sockaddr_un to = {.sun_family = AF_UNIX};
  char* at = to.sun_path;
  char* end = to.sun_path + sizeof(to.sun_path);
  if (!weft_append(&at, end, weft_process.folder) ||
      !weft_append(&at, end, "/" WEFT_DOORBELL_NAME)) {
    return -ENAMETOOLONG;
  }
  const long s =
      weft_syscall(__NR_socket, AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
  if (s < 0) return s;
  long result = weft_syscall(__NR_connect, s, &to, sizeof(to));
  if (result == 0) {
    struct iovec {
      const void* base;
      size_t size;
    } iov = {bell, sizeof(*bell)};
    union {
      struct cmsghdr header;
      uint8_t bytes[CMSG_SPACE(sizeof(int))];
    } control = {.header = {.cmsg_len = CMSG_LEN(sizeof(int)),
                            .cmsg_level = SOL_SOCKET,
                            .cmsg_type = SCM_RIGHTS}};
    memcpy(CMSG_DATA(&control.header), &fd, sizeof(fd));
    struct msghdr message = {.msg_iov = (void*)&iov,
                             .msg_iovlen = 1,
                             .msg_control = control.bytes,
                             .msg_controllen = sizeof(control.bytes)};
    result = weft_syscall(__NR_sendmsg, s, &message, MSG_DONTWAIT | MSG_NOSIGNAL);
  }
  weft_syscall(__NR_close, s);
  return result;
}

void weft_doorbell_ring(int fd, const struct weft_ring_header* h) {
  struct weft_doorbell bell = {
      .magic = WEFT_DOORBELL_MAGIC, .kind = WEFT_DOORBELL_RING, .instance = h->instance};
  uint64_t* count = unannounced_of(h->channel_id);
  // relaxed: a counter; what is taken out of it is reported, or put back
  if (count != NULL && __atomic_load_n(count, __ATOMIC_RELAXED) != 0) {
    // relaxed: as above
    bell.unannounced = __atomic_exchange_n(count, 0, __ATOMIC_RELAXED);
  }
  const long result = send_bell(fd, &bell);
  if (count == NULL || result >= 0) return;
  const uint64_t again = bell.unannounced + (is_crowded(result) ? 1 : 0);
  // relaxed: as above
  if (again != 0) __atomic_fetch_add(count, again, __ATOMIC_RELAXED);
}
