// SPDX-License-Identifier: Apache-2.0
// See doorbell.h.
#include "ust-injector/preload/doorbell.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/mman.h>
#include <linux/un.h>
#include <sys/socket.h>

#include "ust-injector/preload/process.h"
#include "ust-injector/preload/seccomp.h"

#define WEFT_MAX_MISSING 16383u  // 256 KiB of memory, of which the kernel provides only used pages
#define WEFT_TRIES 3u            // of a call that the keeper closed before it read the message
// After an announcement that got through, so many names are reported: an event waits meanwhile.
#define WEFT_REPORTED_AT_ONCE 16u

// The names of ring sets that could not be announced, nor written into the FIFO yet. Written with
// atomic operations: any process of the forks may write, and may die between two. An entry goes
// from WEFT_FREE to WEFT_TAKEN to an instance, and back to WEFT_FREE once its name was sent.
#define WEFT_FREE 0u
#define WEFT_TAKEN 1u
struct weft_missing {
  uint64_t used;  // entries that were ever tried; where to begin the search for a free one
  uint64_t reserved;
  struct {
    uint64_t instance;
    uint64_t channel_id;
  } of[WEFT_MAX_MISSING];
};

void weft_doorbell_start(void) {
  const long memory = weft_syscall(__NR_mmap, 0, sizeof(struct weft_missing), 3,
                                   MAP_SHARED | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (memory > 0) weft_process.missing = (struct weft_missing*)memory;
}

// If all entries are taken, the name is lost.
void weft_doorbell_keep_name(uint64_t instance, uint64_t channel_id) {
  struct weft_missing* m = weft_process.missing;
  for (uint32_t i = 0; m != NULL && i < WEFT_MAX_MISSING; ++i) {
    uint64_t entry = WEFT_FREE;
    // relaxed: it only spreads the searches
    const uint64_t at = __atomic_fetch_add(&m->used, 1, __ATOMIC_RELAXED) % WEFT_MAX_MISSING;
    // acquire: what the entry held before was read before it became free
    if (!__atomic_compare_exchange_n(&m->of[at].instance, &entry, WEFT_TAKEN, false,
                                     __ATOMIC_ACQUIRE, __ATOMIC_RELAXED)) {
      continue;
    }
    m->of[at].channel_id = channel_id;
    // release: the channel's id before the instance that stands for the whole entry
    __atomic_store_n(&m->of[at].instance, instance, __ATOMIC_RELEASE);
    return;
  }
}

// Do too many processes call at once, or is too much open? EPIPE and ECONNRESET: the keeper
// accepted the connection and closed it before the message was sent.
static bool is_crowded(long result) {
  return result == -EAGAIN || result == -ETOOMANYREFS || result == -EMFILE || result == -ENFILE ||
         result == -ENOBUFS || result == -ENOMEM || result == -EPIPE || result == -ECONNRESET;
}

// Writes the path of a file in weft's folder. False: there is no room.
static bool path_of(char* at, size_t size, const char* name) {
  char* end = at + size;
  return weft_append(&at, end, weft_process.folder) && weft_append(&at, end, "/") &&
         weft_append(&at, end, name);
}

// Returns the result of the system call that failed, or a number that is not negative.
static long send_on(long s, int fd, const struct weft_doorbell* bell) {
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
  return weft_syscall(__NR_sendmsg, s, &message, MSG_DONTWAIT | MSG_NOSIGNAL);
}

long weft_doorbell_open(void) {
  return weft_syscall(__NR_socket, AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
}

// Returns what send_on does, or `s` where that is no socket. Closes `s`.
static long call_once(long s, int fd, const struct weft_doorbell* bell) {
  if (s < 0) return s;
  struct sockaddr_un to = {.sun_family = AF_UNIX};
  long result = -ENAMETOOLONG;
  if (path_of(to.sun_path, sizeof(to.sun_path), WEFT_DOORBELL_NAME)) {
    result = weft_syscall(__NR_connect, s, &to, sizeof(to));
  }
  if (result == 0) result = send_on(s, fd, bell);
  weft_syscall(__NR_close, s);
  return result;
}

static long call(long socket, int fd, const struct weft_doorbell* bell) {
  long result = call_once(socket, fd, bell);
  for (uint32_t i = 1; i < WEFT_TRIES && (result == -EPIPE || result == -ECONNRESET); ++i) {
    result = call_once(weft_doorbell_open(), fd, bell);
  }
  return result;
}

// Returns the FIFO's descriptor; negative: the error of the system call.
static long open_names(void) {
  char path[128];  // longer than the socket's may be
  if (!path_of(path, sizeof(path), WEFT_NAMES_NAME)) return -ENAMETOOLONG;
  return weft_optional(WEFT_CALL_OPEN_NAMES, __NR_openat, AT_FDCWD, path, WEFT_NAMES_FLAGS, 0);
}

static long write_name(long names, uint64_t instance, uint64_t channel_id) {
  const struct weft_doorbell name = {.magic = WEFT_DOORBELL_MAGIC,
                                     .kind = WEFT_DOORBELL_MISSING,
                                     .instance = instance,
                                     .channel_id = channel_id};
  return weft_optional(WEFT_CALL_WRITE, __NR_write, names, &name, sizeof(name));
}

static void send_or_keep_name(uint64_t instance, uint64_t channel_id) {
  const long names = open_names();
  const long result = names < 0 ? names : write_name(names, instance, channel_id);
  if (names >= 0) weft_syscall(__NR_close, names);
  if (result < 0 && result != -ENOENT) weft_doorbell_keep_name(instance, channel_id);
}

// The entries that were ever tried come first: the pages of the others stay unused.
static uint64_t entries_used(const struct weft_missing* m) {
  // relaxed: a hint
  const uint64_t used = m == NULL ? 0 : __atomic_load_n(&m->used, __ATOMIC_RELAXED);
  return used < WEFT_MAX_MISSING ? used : WEFT_MAX_MISSING;
}

void weft_doorbell_take_name_back(uint64_t instance) {
  struct weft_missing* m = weft_process.missing;
  const uint64_t used = entries_used(m);
  for (uint64_t i = 0; i < used; ++i) {
    uint64_t entry = instance;
    // release: as where a name was reported
    if (__atomic_compare_exchange_n(&m->of[i].instance, &entry, WEFT_FREE, false, __ATOMIC_RELEASE,
                                    __ATOMIC_RELAXED)) {
      return;
    }
  }
}

void weft_doorbell_ring(long socket, int fd, const struct weft_ring_header* h) {
  const struct weft_doorbell bell = {.magic = WEFT_DOORBELL_MAGIC,
                                     .kind = WEFT_DOORBELL_RING,
                                     .instance = h->instance,
                                     .channel_id = h->channel_id};
  const long result = call(socket, fd, &bell);
  if (result >= 0) {
    (void)weft_doorbell_report(WEFT_REPORTED_AT_ONCE);
  } else if (is_crowded(result)) {
    send_or_keep_name(bell.instance, bell.channel_id);
  }
}

bool weft_doorbell_has_missing(void) { return entries_used(weft_process.missing) != 0; }

// A name is taken out after it was written: two processes may write it, and none may die with it.
long weft_doorbell_report(uint32_t most) {
  struct weft_missing* m = weft_process.missing;
  const uint64_t used = entries_used(m);
  if (used == 0) return 0;
  const long names = open_names();
  if (names < 0) return names;
  long result = 0;
  for (uint64_t i = 0, sent = 0; i < used && sent < most; ++i) {
    // acquire: pairs with weft_doorbell_keep_name
    uint64_t instance = __atomic_load_n(&m->of[i].instance, __ATOMIC_ACQUIRE);
    if (instance == WEFT_FREE || instance == WEFT_TAKEN) continue;
    result = write_name(names, instance, m->of[i].channel_id);
    if (result < 0) break;
    // release: the entry was read
    (void)__atomic_compare_exchange_n(&m->of[i].instance, &instance, WEFT_FREE, false,
                                      __ATOMIC_RELEASE, __ATOMIC_RELAXED);
    ++sent;
  }
  weft_syscall(__NR_close, names);
  return result;
}
