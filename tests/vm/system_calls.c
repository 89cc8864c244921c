// SPDX-License-Identifier: Apache-2.0
/*
 * system_calls: makes calls with unknown numbers, comes back from a signal, and, as an old 32-bit
 * program does, makes calls of sockets and of System V IPC through socketcall and ipc. With `exec`
 * it only executes programs of the other ABI. It is static, so that it makes few other calls.
 */
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <elf.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

static volatile sig_atomic_t caught;

static void on_signal(int signal) {
  (void)signal;
  caught++;
}

#if defined(__x86_64__)
/* Makes the call of a 32-bit program; addresses are below 4 GiB. */
static int call32(uint32_t number, uint32_t a, uint32_t b, uint32_t c, uint32_t d, uint32_t e) {
  int64_t result = number;

  __asm__ volatile("int $0x80"
                   : "+a"(result)
                   : "b"((uint64_t)a), "c"((uint64_t)b), "d"((uint64_t)c), "S"((uint64_t)d),
                     "D"((uint64_t)e)
                   : "memory", "r8", "r9", "r10", "r11");
  return (int)result;
}

struct low {
  uint32_t words[6];
  struct sockaddr_in address;
};

static void of_32_bits(void) {
  struct low* low = mmap(NULL, sizeof(*low), PROT_READ | PROT_WRITE,
                         MAP_PRIVATE | MAP_ANONYMOUS | MAP_32BIT, -1, 0);
  const uint32_t words = (uint32_t)(uintptr_t)low->words;
  int fd, semaphores;

  low->address = (struct sockaddr_in){
      .sin_family = AF_INET, .sin_port = htons(7777), .sin_addr = {htonl(INADDR_LOOPBACK)}};
  memcpy(low->words, (uint32_t[]){AF_INET, SOCK_DGRAM, 0}, 12);
  fd = call32(102, 1, words, 0, 0, 0); /* socketcall(SYS_SOCKET) */
  memcpy(low->words, (uint32_t[]){(uint32_t)fd, (uint32_t)(uintptr_t)&low->address, 16}, 12);
  call32(102, 3, words, 0, 0, 0);             /* SYS_CONNECT */
  semaphores = call32(117, 2, 0, 3, 0600, 0); /* ipc(SEMGET, IPC_PRIVATE, 3) */
  /* This is SEMCTL with IPC_RMID; its argument is behind an address. */
  call32(117, 3, (uint32_t)semaphores, 0, 0, words);
  call32(9998, 7, 8, 9, 10, 11);
}

/* A 32-bit program executes a 64-bit one: this program, told to go on with execute_32. */
static int execute_64(void) {
  struct {
    char path[16];
    char go_on[8];
    uint32_t arguments[3];
  }* low = mmap(NULL, sizeof(*low), PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_32BIT,
                -1, 0);

  strcpy(low->path, "/proc/self/exe");
  strcpy(low->go_on, "go on");
  low->arguments[0] = (uint32_t)(uintptr_t)low->path;
  low->arguments[1] = (uint32_t)(uintptr_t)low->go_on;
  call32(11, (uint32_t)(uintptr_t)low->path, (uint32_t)(uintptr_t)low->arguments, 0, 0, 0);
  return 1;
}

/* Makes a 32-bit program that calls exit(0). */
static int make_program_32(void) {
  static const uint8_t code[] = {0xb8, 1, 0, 0, 0, 0x31, 0xdb, 0xcd, 0x80};
  const uint32_t at = 0x08048000;
  struct {
    Elf32_Ehdr header;
    Elf32_Phdr segment;
    uint8_t code[sizeof(code)];
  } program = {
      .header = {.e_ident = {ELFMAG0, ELFMAG1, ELFMAG2, ELFMAG3, ELFCLASS32, ELFDATA2LSB,
                             EV_CURRENT},
                 .e_type = ET_EXEC,
                 .e_machine = EM_386,
                 .e_version = EV_CURRENT,
                 .e_entry = at + sizeof(Elf32_Ehdr) + sizeof(Elf32_Phdr),
                 .e_phoff = sizeof(Elf32_Ehdr),
                 .e_ehsize = sizeof(Elf32_Ehdr),
                 .e_phentsize = sizeof(Elf32_Phdr),
                 .e_phnum = 1},
      .segment = {.p_type = PT_LOAD,
                  .p_vaddr = at,
                  .p_filesz = sizeof(program),
                  .p_memsz = sizeof(program),
                  .p_flags = PF_R | PF_X,
                  .p_align = 4096},
  };
  const int fd = memfd_create("program32", 0);

  memcpy(program.code, code, sizeof(code));
  return write(fd, &program, sizeof(program)) == sizeof(program) ? fd : -1;
}

static void* execute_by_descriptor(void* fd) {
  char* nothing[] = {NULL};

  syscall(SYS_execveat, *(int*)fd, "", nothing, nothing, AT_EMPTY_PATH);
  return NULL;
}

/* Executes the 32-bit program, by execve and, from another thread than the first, by execveat. */
static int execute_32(void) {
  int fd = make_program_32();
  pthread_t thread;
  pid_t child;
  int status;

  execl("/nowhere", "nowhere", NULL);
  child = fork();
  if (child == 0) {
    char path[32];

    snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
    execl(path, path, NULL);
    _exit(1);
  }
  if (waitpid(child, &status, 0) != child || status != 0) return 1;
  pthread_create(&thread, NULL, execute_by_descriptor, &fd);
  pthread_join(thread, NULL);
  return 1;
}
#else
static void of_32_bits(void) {}
#endif

int main(int count, char** arguments) {
#if defined(__x86_64__)
  if (count == 2) return strcmp(arguments[1], "exec") == 0 ? execute_64() : execute_32();
#endif
  syscall(9999, 1, 2, 3, 4, 5, 6);
  syscall(1000, -1L);
  syscall(-1);
  signal(SIGUSR1, on_signal);
  raise(SIGUSR1);
  raise(SIGUSR1);
  of_32_bits();
  return caught == 2 ? 0 : 1;
}
