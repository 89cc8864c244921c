/* SPDX-License-Identifier: Apache-2.0 */
/*
 * bad_pointers [ACTION CALLS]: every call that libweft.so stands in front of and that is passed
 * memory, with addresses that cannot be read, or only in part, and with sizes of all kinds; what
 * the kernel answers is printed. Each call is made in a child of its own, which then emits an
 * event. Before that, a filter that answers CALLS with ACTION (filter.h) is installed.
 */
#include <linux/sched.h>
#include <sched.h>
#include <signal.h>

#include "filter.h"
#include "hit.h"

#define PAGE 4096ul
#define COUNT(array) (sizeof(array) / sizeof((array)[0]))

/* Addresses are printed by their names, because numbers differ from run to run. */
struct place {
  const char* name;
  uint64_t address;
};

/* Five pages: two readable ones, an unmapped one, one that is writable only, and one behind the end
 * of a file. */
static char* pages;
static struct place places[24];
static size_t place_count;

static void add_place(const char* name, uint64_t address) {
  places[place_count++] = (struct place){name, address};
}

static void make_places(void) {
  char name[] = "/tmp/weft-bad-pointers-XXXXXX";
  const int file = mkstemp(name);
  REQUIRE(file >= 0 && unlink(name) == 0 && ftruncate(file, 1) == 0);
  pages = mmap(NULL, 6 * PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  REQUIRE(pages != MAP_FAILED);
  REQUIRE(mmap(pages + 4 * PAGE, 2 * PAGE, PROT_READ, MAP_PRIVATE | MAP_FIXED, file, 0) !=
          MAP_FAILED);
  close(file);
  add_place("NULL", 0);
  add_place("1", 1);
  add_place("8", 8);
  add_place("-1", ~0ul);
  add_place("-8", -8ul);
  add_place("-64", -64ul);
  add_place("not canonical", 0xdead000000000000ul);
  add_place("first above the program", 0x7ffffffff000ul);
  add_place("of the kernel", 0xffff888000000000ul);
  add_place("good", (uintptr_t)pages);
  add_place("good, odd", (uintptr_t)pages + 3);
  add_place("good, on two pages", (uintptr_t)pages + PAGE - 8);
  add_place("ends with 8 readable bytes", (uintptr_t)pages + 2 * PAGE - 8);
  add_place("ends with 12 readable bytes", (uintptr_t)pages + 2 * PAGE - 12);
  add_place("ends with 16 readable bytes", (uintptr_t)pages + 2 * PAGE - 16);
  add_place("ends with 64 readable bytes", (uintptr_t)pages + 2 * PAGE - 64);
  add_place("not readable", (uintptr_t)pages + 2 * PAGE);
  add_place("writable only", (uintptr_t)pages + 3 * PAGE);
  add_place("behind the end of a file", (uintptr_t)pages + 5 * PAGE);
}

/* Puts bytes at a place, as far as there is room; then the place is protected. */
static void put(uint64_t address, const void* bytes, size_t size) {
  const uint64_t begin = (uintptr_t)pages;
  REQUIRE(mprotect(pages, 4 * PAGE, PROT_READ | PROT_WRITE) == 0);
  if (address >= begin && address < begin + 4 * PAGE) {
    const size_t room = begin + 4 * PAGE - address;
    memcpy((void*)address, bytes, size < room ? size : room);
  }
  REQUIRE(mprotect(pages + 2 * PAGE, PAGE, PROT_NONE) == 0);
  REQUIRE(mprotect(pages + 3 * PAGE, PAGE, PROT_WRITE) == 0);
}

/* The result of a child's call, shared with the child. */
struct answer {
  long result;
  int error;
};

static struct answer* answer;

static void note(long result) {
  answer->error = result < 0 ? errno : 0;
  answer->result = result > 0 ? 1 : result;
}

static void tell(const char* call, const char* where, const char* what, unsigned long size,
                 pid_t child) {
  int status = 0;
  REQUIRE(waitpid(child, &status, 0) == child);
  printf("%s %s %s %lu: %ld errno %d, ended with %x\n", call, where, what, size, answer->result,
         answer->error, (unsigned)status);
}

/* --- clone3 ----------------------------------------------------------------------------------- */

static void try_clone3(const struct place* place, unsigned long size, const char* what,
                       uint64_t flags) {
  struct clone_args args = {.flags = flags, .exit_signal = SIGCHLD};
  memset(answer, 0, sizeof(*answer));
  put(place->address, &args, sizeof(args));
  fflush(stdout);
  const pid_t child = fork();
  REQUIRE(child >= 0);
  if (child == 0) {
    errno = 0;
    const long pid = syscall(SYS_clone3, place->address, size);
    if (pid == 0) _exit(7);
    note(pid);
    int status = 0;
    if (pid > 0) REQUIRE(waitpid((pid_t)pid, &status, 0) == pid && WEXITSTATUS(status) == 7);
    hit();
    _exit(0);
  }
  tell("clone3", place->name, what, size, child);
}

static void try_all_clone3(void) {
  static const unsigned long sizes[] = {0, 8, 63, 64, 88, 4096, 4097, ~0ul};
  for (size_t p = 0; p < place_count; ++p) {
    for (size_t s = 0; s < COUNT(sizes); ++s) {
      try_clone3(&places[p], sizes[s], "fork", 0);
    }
    /* The kernel refuses this call, which would share memory. */
    try_clone3(&places[p], 88, "thread without handlers", CLONE_THREAD | CLONE_VM);
    try_clone3(&places[p], 88, "no such flag", 1ul << 62);
  }
}

/* --- filters ---------------------------------------------------------------------------------- */

enum how { BY_PRCTL, BY_SYSCALL_PRCTL, BY_SECCOMP, BY_SECCOMP_WITH_FLAGS, BY_WIDE_NUMBER, HOWS };
static const char* const how_names[] = {"prctl", "syscall prctl", "seccomp", "seccomp bad flags",
                                        "seccomp wide"};

static long install(enum how how, uint64_t program) {
  switch (how) {
    case BY_PRCTL:
      return prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, program);
    case BY_SYSCALL_PRCTL:
      return syscall(SYS_prctl, PR_SET_SECCOMP, SECCOMP_MODE_FILTER, program);
    case BY_SECCOMP:
      return syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, 0, program);
    case BY_SECCOMP_WITH_FLAGS:
      return syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, 1u << 30, program);
    default: /* the kernel takes 32 bits of each */
      return syscall(SYS_seccomp, (1ul << 32) | SECCOMP_SET_MODE_FILTER, 1ul << 32, program);
  }
}

static void try_filter(enum how how, const struct place* program, const struct place* code,
                       unsigned short length, const struct sock_filter* instructions,
                       const char* what) {
  struct sock_fprog at = {length, (struct sock_filter*)code->address};
  put(code->address, instructions, 8 * 64);
  const struct sock_fprog* passed = &at;
  if (program != NULL) {
    put(program->address, &at, sizeof(at));
    passed = (const struct sock_fprog*)program->address;
  }
  memset(answer, 0, sizeof(*answer));
  fflush(stdout);
  const pid_t child = fork();
  REQUIRE(child >= 0);
  if (child == 0) {
    errno = 0;
    note(install(how, (uintptr_t)passed));
    hit();
    hit_text("the second kind");
    _exit(0);
  }
  char call[96];
  snprintf(call, sizeof(call), "%s (%s)", how_names[how], what);
  tell(call, program != NULL ? program->name : code->name, program != NULL ? "program" : "code",
       length, child);
}

static void try_all_filters(void) {
  static const unsigned short lengths[] = {0, 1, 2, 3, 4096, 4097, 65535};
  static const struct place elsewhere = {"elsewhere", 0};
  struct sock_filter allowing[64], killing[64], killing_all[64];
  struct place heap = elsewhere;
  memset(allowing, 0, sizeof(allowing));
  for (size_t i = 0; i < COUNT(allowing); ++i) {
    allowing[i] = (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW);
    killing_all[i] = (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_KILL_PROCESS);
  }
  const unsigned short kills = build_filter(killing, "memfd_create,socket,madvise", 0x80000000u);
  heap.address = (uintptr_t)allowing;
  for (enum how how = 0; how < HOWS; ++how) {
    for (size_t p = 0; p < place_count; ++p) {
      try_filter(how, &places[p], &heap, 1, allowing, "allows");
      if (how != BY_PRCTL && how != BY_SECCOMP) continue;
      for (size_t l = 0; l < COUNT(lengths); ++l) {
        try_filter(how, NULL, &places[p], lengths[l], allowing, "allows");
      }
      try_filter(how, NULL, &places[p], kills, killing, "kills");
    }
  }
  /* Refused, for its flags: nothing ends, and recording goes on. */
  heap.address = (uintptr_t)killing_all;
  try_filter(BY_SECCOMP_WITH_FLAGS, NULL, &heap, 1, killing_all, "kills all");
  memset(answer, 0, sizeof(*answer));
  fflush(stdout);
  const pid_t child = fork();
  REQUIRE(child >= 0);
  if (child == 0) {
    note(syscall(SYS_seccomp, SECCOMP_SET_MODE_STRICT, 1, 0));
    note(syscall(SYS_seccomp, SECCOMP_SET_MODE_STRICT, 0, 8));
    hit();
    _exit(0);
  }
  tell("seccomp", "strict", "refused", 0, child);
}

/* --- others, which pass memory on ------------------------------------------------------------- */

static int child_body(void* unused) {
  (void)unused;
  return 7;
}

static void try_others(void) {
  static char stack[16384] __attribute__((aligned(16)));
  for (size_t p = 0; p < place_count; ++p) {
    const uint64_t at = places[p].address;
    char name[16] = "a";
    put(at, name, sizeof(name));
    errno = 0;
    const int got = prctl(PR_SET_NAME, at);
    printf("set name %s: %d errno %d\n", places[p].name, got, got < 0 ? errno : 0);
    errno = 0;
    const int pid = clone(child_body, stack + sizeof(stack), CLONE_PARENT_SETTID | SIGCHLD, NULL,
                          (pid_t*)at, NULL, NULL);
    printf("clone %s: %d errno %d\n", places[p].name, pid > 0, pid < 0 ? errno : 0);
    if (pid > 0) REQUIRE(waitpid(pid, NULL, 0) == pid);
  }
#ifdef __GLIBC__ /* musl does not look at them */
  errno = 0;
  printf("clone without a function: %d", clone(NULL, stack + sizeof(stack), SIGCHLD, NULL));
  printf(" errno %d\n", errno);
  errno = 0;
  printf("clone without a stack: %d", clone(child_body, NULL, CLONE_VM | SIGCHLD, NULL));
  printf(" errno %d\n", errno);
#endif
}

int main(int argc, char** argv) {
  answer = mmap(NULL, PAGE, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  REQUIRE(answer != MAP_FAILED);
  make_places();
  REQUIRE(prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0);
  if (argc == 3) {
    static struct sock_filter code[64];
    const struct sock_fprog first = {build_filter(code, argv[2], filter_action(argv[1])), code};
    REQUIRE(prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &first) == 0);
  }
  try_all_clone3();
  try_all_filters();
  try_others();
  fflush(stdout);
  hit();
  report();
  return 0;
}
