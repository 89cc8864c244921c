// SPDX-License-Identifier: Apache-2.0
/*
 * system_calls: makes calls that are none, comes back from a signal, and, as an old 32-bit program does, makes calls of
 * sockets and of System V IPC through socketcall and ipc. Static, so that it makes few others.
 */
#include <arpa/inet.h>
#include <signal.h>
#include <stdint.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

static volatile sig_atomic_t caught;

static void on_signal(int signal) {
  (void)signal;
  caught++;
}

#if defined(__x86_64__)
/* As a 32-bit program does it; addresses are below 4 GiB. */
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
  /* SEMCTL, IPC_RMID, with its argument behind an address. */
  call32(117, 3, (uint32_t)semaphores, 0, 0, words);
  call32(9998, 7, 8, 9, 10, 11);
}
#else
static void of_32_bits(void) {}
#endif

int main(void) {
  syscall(9999, 1, 2, 3, 4, 5, 6);
  syscall(1000, -1L);
  syscall(-1);
  signal(SIGUSR1, on_signal);
  raise(SIGUSR1);
  raise(SIGUSR1);
  of_32_bits();
  return caught == 2 ? 0 : 1;
}
