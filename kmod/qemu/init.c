/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The guest's first process: mounts the machine's own root read-only with a writable layer above
 * it, starts the CPUs that the kernel did not, runs one command there, writes its status and
 * switches the guest off. It is one static program instead of a shell script: in an emulated
 * machine each start of a program takes as long as all of this.
 *
 * kmod/qemu/guest.py is the other side. It offers the 9p tags `root`, `exchange` and `out`, and in
 * exchange the files directory, modules (a path), arguments and environment (strings, each with its
 * NUL). This program writes `started` there before the command, and `status` after it: a number, as
 * a shell reports it. If there is no status, the guest ended before the command did. Output of the
 * command goes to the second serial port, all else to the console.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <net/if.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mount.h>
#include <sys/reboot.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/utsname.h>
#include <sys/wait.h>
#include <termios.h>
#include <unistd.h>

#define MAX_STRINGS 512     /* arguments, or variables */
#define MAX_BYTES (1 << 17) /* of a file in exchange: the most that one argument of exec may have */
#define EXCHANGE "/run/exchange/"
/* Messages of 500 KiB: with the default of 128 KiB, reading large files is half as fast. */
#define OF_9P "trans=virtio,version=9p2000.L,msize=512000"

static void say(const char* format, ...) {
  va_list list;

  va_start(list, format);
  fputs("guest: ", stderr);
  vfprintf(stderr, format, list);
  fputc('\n', stderr);
  va_end(list);
}

static void power_off(void) {
  sync();
  reboot(RB_POWER_OFF);
}

static void must_mount(const char* what, const char* where, const char* type, unsigned long flags,
                       const char* options) {
  mkdir(where, 0755);
  if (mount(what, where, type, flags, options) == 0) return;
  say("cannot mount %s on %s: %s", what, where, strerror(errno));
  power_off();
}

/* Mounts a file system that only some kernels have. */
static void may_mount(const char* type, const char* where) {
  mkdir(where, 0755);
  if (mount(type, where, type, 0, NULL) != 0) say("no %s: %s", type, strerror(errno));
}

static void load_modules(void) {
  char path[64];

  for (int i = 0;; i++) {
    snprintf(path, sizeof(path), "/modules/%02d.ko", i);
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0) return;
    if (syscall(SYS_finit_module, fd, "", 0) != 0 && errno != EEXIST)
      say("%s does not load: %s", path, strerror(errno));
    close(fd);
  }
}

/* Moves the mount to make a root of its own. chroot alone would not do: container runtimes
 * pivot. */
static void enter_root(void) {
  must_mount("root", "/lower", "9p", MS_RDONLY, OF_9P ",cache=loose");
  must_mount("layer", "/layer", "tmpfs", 0, "size=75%,mode=755");
  mkdir("/layer/upper", 0755);
  mkdir("/layer/work", 0755);
  must_mount("overlay", "/root", "overlay", 0,
             "lowerdir=/lower,upperdir=/layer/upper,workdir=/layer/work");
  if (chdir("/root") != 0 || mount(".", "/", NULL, MS_MOVE, NULL) != 0 || chroot(".") != 0 ||
      chdir("/") != 0) {
    say("cannot enter the root: %s", strerror(errno));
    power_off();
  }
  mount(NULL, "/", NULL, MS_SHARED | MS_REC, NULL);
}

static void mount_all(void) {
  must_mount("proc", "/proc", "proc", 0, NULL);
  must_mount("sysfs", "/sys", "sysfs", 0, NULL);
  must_mount("devtmpfs", "/dev", "devtmpfs", 0, NULL);
  must_mount("devpts", "/dev/pts", "devpts", 0, "ptmxmode=666");
  must_mount("shm", "/dev/shm", "tmpfs", 0, "mode=1777");
  must_mount("run", "/run", "tmpfs", 0, "mode=755");
  must_mount("exchange", "/run/exchange", "9p", 0, OF_9P ",cache=none");
  must_mount("out", "/out", "9p", 0, OF_9P ",cache=none");
  may_mount("cgroup2", "/sys/fs/cgroup");
  may_mount("debugfs", "/sys/kernel/debug");
  may_mount("tracefs", "/sys/kernel/tracing");
  may_mount("bpf", "/sys/fs/bpf");
}

/* Returns a file of exchange with a NUL behind it, in memory that stays; stores its size in
 * *bytes. */
static char* content(const char* name, size_t* bytes) {
  char path[128];
  char* text = calloc(1, MAX_BYTES + 1);
  ssize_t got;

  snprintf(path, sizeof(path), EXCHANGE "%s", name);
  int fd = open(path, O_RDONLY | O_CLOEXEC);
  *bytes = 0;
  while (text && fd >= 0 && (got = read(fd, text + *bytes, MAX_BYTES - *bytes)) > 0)
    *bytes += (size_t)got;
  if (!text || fd < 0) {
    say("cannot read %s", path);
    power_off();
  }
  close(fd);
  return text;
}

static char** strings(const char* name) {
  size_t bytes, count = 0;
  char* text = content(name, &bytes);
  char** list = calloc(MAX_STRINGS + 1, sizeof(*list));

  for (size_t at = 0; list && at < bytes && count < MAX_STRINGS; at += strlen(text + at) + 1)
    list[count++] = text + at;
  return list;
}

static void link_modules(void) {
  struct utsname names;
  char path[128];
  size_t bytes;

  uname(&names);
  snprintf(path, sizeof(path), "/lib/modules/%s", names.release);
  mkdir("/lib/modules", 0755);
  if (symlink(content("modules", &bytes), path) != 0) say("no %s: %s", path, strerror(errno));
}

static void loopback_up(void) {
  struct ifreq request = {.ifr_name = "lo", .ifr_flags = IFF_UP};
  int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);

  if (ioctl(fd, SIOCSIFFLAGS, &request) != 0) say("no loopback: %s", strerror(errno));
  close(fd);
}

static void run_command(int output) {
  size_t bytes;
  char** arguments = strings("arguments");
  char* directory = content("directory", &bytes);

  environ = strings("environment");
  setsid();
  dup2(output, STDOUT_FILENO);
  dup2(output, STDERR_FILENO);
  if (chdir(directory) != 0)
    fprintf(stderr, "guest: %s: %s\n", directory, strerror(errno));
  else
    execvp(arguments[0], arguments);
  fprintf(stderr, "guest: %s: %s\n", arguments[0], strerror(errno));
  _exit(127);
}

/* Waits for the command, and for whatever became this process's child meanwhile. */
static int wait_for(pid_t command) {
  int status;

  for (;;) {
    pid_t ended = wait(&status);
    if (ended == command) return WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
    if (ended < 0 && errno != EINTR) return 127;
  }
}

/* Asks a kernel that looks for leaks for those of the command. kmemleak reports nothing that is
 * younger than five seconds, and compares with its scan before. The other side finds the list on
 * the console. */
static void report_leaks(void) {
  const char* path = "/sys/kernel/debug/kmemleak";
  char text[4096];
  ssize_t got;
  int fd = open(path, O_WRONLY | O_CLOEXEC);

  if (fd < 0) return;
  sleep(6);
  for (int i = 0; i < 2; i++)
    if (write(fd, "scan", 4) < 0) say("%s: %s", path, strerror(errno));
  close(fd);
  fd = open(path, O_RDONLY | O_CLOEXEC);
  while (fd >= 0 && (got = read(fd, text, sizeof(text))) > 0)
    if (write(STDERR_FILENO, text, (size_t)got) < 0) break;
  close(fd);
}

static void write_number(const char* path, int number) {
  FILE* file = fopen(path, "we");

  if (!file || fprintf(file, "%d\n", number) < 0 || fclose(file) != 0)
    say("%s cannot be written: %s", path, strerror(errno));
}

/* Starts a CPU, or returns false with errno. */
static bool start_cpu(const char* path) {
  int fd = open(path, O_WRONLY | O_CLOEXEC);
  bool is_started = fd >= 0 && write(fd, "1", 1) == 1;
  int reason = errno;

  if (fd >= 0) close(fd);
  errno = reason;
  return is_started;
}

/* Starts the CPUs that a kernel left out when it booted with one (guest.py). Changes nothing where
 * all run already. A kernel waits 10 s of its own clock for each, which leaps on a busy machine. */
static void start_cpus(void) {
  char path[64];

  for (int cpu = 1;; cpu++) {
    snprintf(path, sizeof(path), "/sys/devices/system/cpu/cpu%d/online", cpu);
    for (int tries = 1; !start_cpu(path); tries++) {
      if (errno == ENOENT) return;
      say("CPU %d does not start: %s", cpu, strerror(errno));
      if (tries == 5) power_off();
      sleep(1);
    }
  }
}

int main(void) {
  struct termios raw;
  struct stat place;

  load_modules();
  enter_root();
  mount_all();
  start_cpus();
  link_modules();
  loopback_up();
  sethostname("guest", 5);

  int output = open("/dev/ttyS1", O_RDWR | O_NOCTTY | O_CLOEXEC);
  if (output < 0 || fstat(output, &place) != 0 || tcgetattr(output, &raw) != 0) {
    say("no second serial port: %s", strerror(errno));
    power_off();
  }
  cfmakeraw(&raw);
  tcsetattr(output, TCSANOW, &raw);
  int nothing = open("/dev/null", O_RDWR | O_CLOEXEC);
  dup2(nothing, STDIN_FILENO);

  write_number(EXCHANGE "started", 1);
  pid_t command = fork();
  if (command == 0) run_command(output);
  int status = wait_for(command);
  tcdrain(output);
  report_leaks();
  write_number(EXCHANGE "status", status);
  power_off();
  return 0;
}
