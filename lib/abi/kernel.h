/* SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only */
/*
 * The interface by which the agent drives weft.ko. One character device, /dev/weft, mode 0600, for
 * CAP_SYS_ADMIN; all else are anonymous descriptors that ioctls return, O_CLOEXEC:
 *
 *   /dev/weft  --SESSION-->  session  --CHANNEL-->  ring  --EVENT-->  event
 *
 *   session  which tasks are recorded: on or off, and its scope, a set of cgroups
 *   ring     one ring set in the format of lib/abi/ring.h, a slot per possible CPU: pread(2),
 *            splice(2) at the format's offsets; mmap(2) of [0, data_offset) shared and writable, of
 *            which the module reads `tail` and `closed` only, and of the rest read-only; poll(2):
 *            readable when a sub-buffer was filled since the last poll. Its st_size is 0:
 *            total_size tells.
 *   event    one source of records in that ring. Its end detaches the probe; records stay.
 *
 * Lifetime: when the last descriptor of a session is closed (its own, not those of rings or
 * events), the session ends: all probes of its events are detached. A ring stays readable as long
 * as its descriptor is open, whatever becomes of its session. An event ends with its descriptor,
 * or, made with WEFT_KERNEL_EVENT_STAYS, with its session. The module cannot be unloaded while a
 * descriptor is open. Descriptors may be handed to other processes (SCM_RIGHTS): a process that has
 * one needs no capability for it, except for ioctls on ring descriptors, which ask for
 * CAP_SYS_ADMIN as the device does: consumers get the ring without being able to add events.
 *
 * Each ioctl takes a struct that begins with its size as the caller knows it. Fields that the
 * caller does not have are zero; fields that the module does not know must be zero, else E2BIG.
 * Everything is checked before anything is changed. Common errors: EINVAL a field or reserved value
 * that is not allowed, EPERM no privilege, EFAULT, ENOMEM, ENOTTY, E2BIG. A released ioctl works
 * for ever.
 */
#ifndef WEFT_LIB_ABI_KERNEL_H_
#define WEFT_LIB_ABI_KERNEL_H_

#include "context.h"
#include "fetch.h"
#include "filter.h"
#include "ring.h"

#ifdef __KERNEL__
#include <linux/ioctl.h>
#else
#include <sys/ioctl.h>
#endif

#define WEFT_KERNEL_DEVICE "/dev/weft"
#define WEFT_KERNEL_ABI_MAJOR 1u
#define WEFT_KERNEL_ABI_MINOR 0u

#define WEFT_KERNEL_MAX_CONTEXTS 32u
#define WEFT_KERNEL_NAME_MAX 512u     /* bytes of a symbol or path, with the NUL */
#define WEFT_KERNEL_SCOPE_MAX 65536u  /* cgroups of one session */
#define WEFT_KERNEL_TRACK_MAX 65536u  /* values of one kind */
#define WEFT_KERNEL_MAX_EVENTS 65534u /* of one ring: ids are 16 bits */

struct weft_kernel_abi {
  uint32_t size;
  uint16_t major;    /* out: WEFT_KERNEL_ABI_MAJOR */
  uint16_t minor;    /* out */
  uint32_t features; /* out: enum weft_kernel_feature */
  uint32_t clocks;   /* out: bit 1 << enum weft_clock_id for each that may be used now */
  char version[32];  /* out: of the module, text */
  uint64_t reserved[4];
};
WEFT_ABI_ASSERT(sizeof(struct weft_kernel_abi) == 80, "kernel abi layout");

enum weft_kernel_feature {
  WEFT_KERNEL_TRACEPOINTS = 1 << 0,
  WEFT_KERNEL_SYSCALLS = 1 << 1,
  WEFT_KERNEL_KPROBES = 1 << 2,
  WEFT_KERNEL_SCOPES = 1 << 3, /* cgroup v2 */
  WEFT_KERNEL_UPROBES = 1 << 4,
  WEFT_KERNEL_PARTS = 1 << 5,            /* WEFT_FETCH_GATHER, and WEFT_FETCH_SEQUENCE with `arg` */
  WEFT_KERNEL_UNKNOWN_SYSCALLS = 1 << 6, /* WEFT_KERNEL_SYSCALL_UNKNOWN */
  WEFT_KERNEL_USER_ADDRESSES = 1 << 7,   /* WEFT_FETCH_STORE with WEFT_FETCH_USER */
  WEFT_KERNEL_SOCKET_ADDRESSES = 1 << 8, /* WEFT_FETCH_WITHIN, WEFT_FETCH_UNIX_PATH */
};

enum weft_kernel_session_flag {
  WEFT_KERNEL_SESSION_ALL = 1 << 0, /* cluster-wide: no scope, everything is recorded */
};

struct weft_kernel_session {
  uint32_t size;
  uint32_t flags; /* enum weft_kernel_session_flag */
  uint64_t reserved[3];
};
WEFT_ABI_ASSERT(sizeof(struct weft_kernel_session) == 32, "kernel session layout");

struct weft_kernel_switch {
  uint32_t size;
  uint32_t
      on; /* 0 or 1. A new session is off. Returns after no probe of the old state runs any more */
};
WEFT_ABI_ASSERT(sizeof(struct weft_kernel_switch) == 8, "kernel switch layout");

enum weft_kernel_scope_change {
  WEFT_KERNEL_SCOPE_ADD = 1,
  WEFT_KERNEL_SCOPE_REMOVE = 2,
};

/* A task is in a session's scope if its cgroup (v2), or an ancestor of that, is in the set. Adding
 * an existing id, or removing a missing one, changes nothing. An id whose cgroup went is removed
 * like any. */
struct weft_kernel_scope {
  uint32_t size;
  uint32_t change; /* enum weft_kernel_scope_change */
  uint64_t
      cgroup; /* the cgroup's id: the inode number of its folder in cgroup2. ADD: ENOENT if none */
  uint64_t reserved[2];
};
WEFT_ABI_ASSERT(sizeof(struct weft_kernel_scope) == 32, "kernel scope layout");

enum weft_kernel_track_kind {
  WEFT_KERNEL_TRACK_PID = 1,  /* of the process, as the node sees it */
  WEFT_KERNEL_TRACK_VPID = 2, /* as the process itself does */
  WEFT_KERNEL_TRACK_UID = 3,
  WEFT_KERNEL_TRACK_VUID = 4,
  WEFT_KERNEL_TRACK_GID = 5,
  WEFT_KERNEL_TRACK_VGID = 6,
  WEFT_KERNEL_TRACK_KINDS = 7,
};

enum weft_kernel_track_change {
  WEFT_KERNEL_TRACK_ADD = 1,
  WEFT_KERNEL_TRACK_REMOVE = 2,
};

/* A task in a session's scope is recorded only if it has, for each kind with values, one of these
 * values. A kind without values asks for nothing. If a session records everything, its trackers
 * apply to an event's subjects or, if the event has none, to the current task. Adding an existing
 * value, or removing a missing one, changes nothing. ENOSPC: WEFT_KERNEL_TRACK_MAX values. */
struct weft_kernel_track {
  uint32_t size;
  uint32_t kind;   /* enum weft_kernel_track_kind */
  uint32_t change; /* enum weft_kernel_track_change */
  uint32_t reserved0;
  uint64_t value; /* 32 bits */
  uint64_t reserved[2];
};
WEFT_ABI_ASSERT(sizeof(struct weft_kernel_track) == 40, "kernel track layout");

/* Why a session stopped by itself: the module found that its own words contradict each other. */
enum weft_kernel_stop {
  WEFT_KERNEL_RUNS = 0,
  WEFT_KERNEL_STOP_POSITION =
      1,                      /* a ring's writers are further than a ring's length from its head */
  WEFT_KERNEL_STOP_COUNT = 2, /* the records before a sub-buffer are not between those around it */
  WEFT_KERNEL_STOP_NESTING = 3, /* more writers interrupt each other than there are contexts for */
  WEFT_KERNEL_STOP_IMAGE = 4,   /* a program made more bytes than its limits allow */
};

/* A session that stopped records nothing any more: its events are ended, new ones are ESHUTDOWN, so
 * is switching it on. Its rings can still be read. Events that came to the ring with the
 * contradiction until the events had ended count there as WEFT_DISCARD_CONTENDED. */
struct weft_kernel_session_status {
  uint32_t size;
  uint32_t state;          /* out: enum weft_kernel_stop */
  uint64_t contradictions; /* out: how many were met */
  /* out: hits, of any task on the machine, of this session's KPROBEs and KRETPROBEs that the kernel
     did not deliver while it was on: which tasks they belong to is not known. 0 in a session with
     ALL: its rings count them */
  uint64_t missed_anywhere;
  uint64_t reserved;
};
WEFT_ABI_ASSERT(sizeof(struct weft_kernel_session_status) == 32, "kernel session status layout");

struct weft_kernel_channel {
  uint32_t size;
  uint32_t mode;         /* enum weft_ring_mode */
  uint32_t clock;        /* enum weft_clock_id; EOPNOTSUPP: not usable on this machine */
  uint32_t slot_shift;   /* limits of lib/abi/ring.h */
  uint32_t subbuf_shift; /* at least a page */
  uint32_t context_count;
  uint64_t
      contexts; /* struct weft_context_spec *, no names; EOPNOTSUPP: one that the module lacks */
  uint64_t channel_id;
  uint64_t reserved[3];
};
WEFT_ABI_ASSERT(sizeof(struct weft_kernel_channel) == 64, "kernel channel layout");

enum weft_kernel_event_kind {
  WEFT_KERNEL_TRACEPOINT = 1,
  WEFT_KERNEL_SYSCALL_ENTRY = 2,
  WEFT_KERNEL_SYSCALL_EXIT = 3,
  WEFT_KERNEL_KPROBE = 4,
  WEFT_KERNEL_KRETPROBE = 5,
  WEFT_KERNEL_UPROBE = 6, /* an instruction of a file that processes have mapped */
  WEFT_KERNEL_URETPROBE = 7,
  WEFT_KERNEL_STATE = 8,
};

/* STATE: what `number` says is gone through by STATEDUMP, which gives each one that it finds to
 * the event. Several events may have the same number. Arguments are named below; those that are
 * pointers hold what they name as long as the fetch program runs, text is the module's own, ""
 * where there is none. Numbers are of 64 bits. Ids are those of the task's own innermost
 * namespace ("v"), 0 where it sees none. `subjects` is 0: only what belongs to tasks in the
 * session's scope is gone through. */
enum weft_kernel_state {
  WEFT_KERNEL_STATE_START = 1, /* 0 the dump's number in its session, from 1 */
  /* 0 the dump's number, 1 things that were found, 2 those that are not, or not all, recorded: the
     ring had no room, or they could not be looked at */
  WEFT_KERNEL_STATE_END = 2,
  /* 0 task_struct *, 1 its parent, 2 vtid, 3 vpid, 4 vppid (0: the parent is not in scope),
     5 enum weft_kernel_task_status */
  WEFT_KERNEL_STATE_PROCESS = 3,
  WEFT_KERNEL_STATE_THREAD = 4, /* the same, of every thread, the first one as well */
  WEFT_KERNEL_STATE_FILE = 5,   /* 0 task_struct *, 1 file *, 2 descriptor, 3 path (text), 4 vpid */
  /* 0 task_struct *, 1 file *, 2 descriptor, 3 socket *, 4 sock *, 5 vpid */
  WEFT_KERNEL_STATE_SOCKET = 6,
  /* 0 task_struct *, 1 vm_area_struct *, 2 path (text), 3 vpid, 4 inode * of the file, or NULL */
  WEFT_KERNEL_STATE_MAPPING = 7,
  WEFT_KERNEL_STATE_INTERFACE = 8, /* 0 net *, 1 net_device * */
  /* For WEFT_KERNEL_SESSION_ALL only: */
  WEFT_KERNEL_STATE_BLOCK_DEVICE = 9, /* 0 device *: disks and partitions */
  WEFT_KERNEL_STATE_INTERRUPT = 10,   /* 0 number, 1 irq_data *, 2 irqaction * */
  /* 0 number, 1 cpuinfo_x86 * or NULL, 2 package, 3 core, 4 node, 5 is online */
  WEFT_KERNEL_STATE_CPU = 11,
};
#define WEFT_KERNEL_STATE_MAX 11u

/* The numbers are those that viewers know from LTTng. */
enum weft_kernel_task_status {
  WEFT_KERNEL_TASK_OTHER = 0,
  WEFT_KERNEL_TASK_RUNNABLE = 2, /* or running */
  WEFT_KERNEL_TASK_ZOMBIE = 4,
  WEFT_KERNEL_TASK_WAITING = 5,
  WEFT_KERNEL_TASK_DEAD = 7,
};

enum weft_kernel_syscall_table {
  WEFT_KERNEL_SYSCALLS_NATIVE = 0,
  WEFT_KERNEL_SYSCALLS_COMPAT = 1, /* 32 bits */
};

/* `number` of an event for all system calls of a table whose numbers its `known` does not have:
 * numbers that this kernel does not have, or that the caller cannot name; also those that no
 * table can have, negative ones among them. */
#define WEFT_KERNEL_SYSCALL_UNKNOWN 0xffffffffu
#define WEFT_KERNEL_SYSCALL_NUMBERS 1024u /* bits of `known`: bit n % 8 of byte n / 8 is number n */

/* `subjects`: tasks that an event concerns. Bit n: argument n is a struct task_struct *; and: */
#define WEFT_KERNEL_SUBJECT_CURRENT \
  (1u << 31) /* the task that runs; in an interrupt there is none */
/* It is recorded if any of its subjects is in the session's scope. 0: it has no subject, which only
 * sessions with WEFT_KERNEL_SESSION_ALL may record. */

enum weft_kernel_event_flag {
  WEFT_KERNEL_EVENT_STAYS = 1 << 0, /* the ioctl makes no descriptor: it returns 0 */
};

struct weft_kernel_event {
  uint32_t size;
  uint32_t kind;   /* enum weft_kernel_event_kind */
  uint64_t name;   /* const char *: the tracepoint, or the function; ENOENT: there is none */
  uint64_t offset; /* KPROBE: bytes behind the function's start; U(RET)PROBE: place in the file */
  uint32_t number; /* SYSCALL_*: of the system call, or WEFT_KERNEL_SYSCALL_UNKNOWN; STATE: enum
                      weft_kernel_state */
  uint32_t table;  /* SYSCALL_*: enum weft_kernel_syscall_table */
  uint32_t subjects;
  uint32_t name_size;        /* bytes with the NUL; SYSCALL_*: 0 */
  uint64_t description;      /* struct weft_event_desc * */
  uint64_t fetch;            /* struct weft_fetch_op * */
  uint64_t filter;           /* struct weft_filter_program *, 0: none */
  uint32_t description_size; /* bytes */
  uint32_t fetch_count;      /* operations */
  uint32_t filter_size;      /* bytes */
  uint32_t event_id;         /* out: id in the ring's descriptions */
  uint32_t flags;            /* enum weft_kernel_event_flag */
  int32_t file;       /* U(RET)PROBE: a descriptor, open for reading, of the regular file; EBADF */
  uint64_t semaphore; /* UPROBE: place in the file of a counter of 2 bytes that is one higher in
                                each process as long as the probe is on in it (USDT's); 0: none */
  uint64_t twin;  /* U(RET)PROBE: EEXIST where the ring has an event of this kind and number at this
                    place of the same file, though it was found by another path or in another
                    overlay; 0: not asked */
  uint64_t known; /* SYSCALL_* with WEFT_KERNEL_SYSCALL_UNKNOWN: const uint8_t *, the
                     WEFT_KERNEL_SYSCALL_NUMBERS bits; else 0 */
};
WEFT_ABI_ASSERT(sizeof(struct weft_kernel_event) == 112, "kernel event layout");

/* What happened to an event, for status and tests. */
struct weft_kernel_event_status {
  uint32_t size;
  uint32_t state; /* out: 0 attached; else a positive errno: ESHUTDOWN the session ended */
  /* out: KPROBE, KRETPROBE: hits, of any task, that the kernel did not deliver, also while the
     session was off; URETPROBE: returns, in scope, of calls that are not known. Those that concern
     the session count as WEFT_DISCARD_MISSED in its ring, or in the session's status */
  uint64_t missed;
  uint64_t reserved[2];
};
WEFT_ABI_ASSERT(sizeof(struct weft_kernel_event_status) == 32, "kernel event status layout");

/* Goes through what the session's STATE events ask for, in the caller's context: behind a grace
 * period, START; the state; behind another, END. When START is in its ring, so is every event
 * that began before the call; when END is, so is all of the dump, and so is every event that
 * began before the dump's last record: a reader that merges by time knows then what was there.
 * It waits for readers where a ring in discard mode has no room, about a second at most, and
 * sleeps: a signal ends it with EINTR, the session's end, or its being switched off, with
 * ESHUTDOWN; both without END. EBUSY: another one is at work in this session; ENOENT: it has no
 * STATE event, or there is no such cgroup. */
struct weft_kernel_statedump {
  uint32_t size;
  uint32_t flags;  /* none yet: 0 */
  uint64_t cgroup; /* only what belongs to tasks in this one, as SCOPE names it, or below, and in
                      the session's scope; not even START where there is none; 0: all in scope */
  uint64_t reserved[2];
};
WEFT_ABI_ASSERT(sizeof(struct weft_kernel_statedump) == 32, "kernel statedump layout");

#define WEFT_KERNEL_IOC 0xf7
/* On /dev/weft */
#define WEFT_IOCTL_ABI _IOWR(WEFT_KERNEL_IOC, 0x00, struct weft_kernel_abi)
#define WEFT_IOCTL_SESSION _IOW(WEFT_KERNEL_IOC, 0x01, struct weft_kernel_session)
/* On a session */
#define WEFT_IOCTL_SWITCH _IOW(WEFT_KERNEL_IOC, 0x10, struct weft_kernel_switch)
#define WEFT_IOCTL_SCOPE _IOW(WEFT_KERNEL_IOC, 0x11, struct weft_kernel_scope)
#define WEFT_IOCTL_CHANNEL _IOW(WEFT_KERNEL_IOC, 0x12, struct weft_kernel_channel)
#define WEFT_IOCTL_TRACK _IOW(WEFT_KERNEL_IOC, 0x13, struct weft_kernel_track)
#define WEFT_IOCTL_SESSION_STATUS _IOWR(WEFT_KERNEL_IOC, 0x14, struct weft_kernel_session_status)
#define WEFT_IOCTL_STATEDUMP _IOW(WEFT_KERNEL_IOC, 0x15, struct weft_kernel_statedump)
/* On a ring */
#define WEFT_IOCTL_EVENT _IOWR(WEFT_KERNEL_IOC, 0x20, struct weft_kernel_event)
/* On an event */
#define WEFT_IOCTL_EVENT_STATUS _IOWR(WEFT_KERNEL_IOC, 0x30, struct weft_kernel_event_status)
/* The ioctl's size bits are those of this header's struct; the module goes by the number alone, so
 * that a struct may grow. */

#endif /* WEFT_LIB_ABI_KERNEL_H_ */
