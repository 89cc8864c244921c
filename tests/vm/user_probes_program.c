// SPDX-License-Identifier: Apache-2.0
/*
 * user_probes_program COUNT: calls a function and passes a USDT probe, COUNT times, and prints
 * "called COUNT enabled N", where N is how often the probe's semaphore was raised. It is built
 * dynamically and statically.
 */
#include <stdio.h>
#include <stdlib.h>

#define _SDT_HAS_SEMAPHORES 1
#include <sys/sdt.h>

__attribute__((section(".probes"))) unsigned short shop_order_semaphore = 0;
static volatile int g_total = 1000;

__attribute__((noinline)) int shop_order(int number, const char* name, double share,
                                         unsigned char flag) {
  volatile signed char small = (signed char)-flag;
  const long long large = (1LL << 40) + number;

  if (shop_order_semaphore) DTRACE_PROBE5(shop, order, number, name, small, large, 77);
  g_total += share > 0;
  return number - 2;
}

__attribute__((noinline)) int shop_depth(int depth) {
  const int below = depth == 0 ? 0 : shop_depth(depth - 1) + 1;

  __asm__ volatile("" ::: "memory"); /* no tail call */
  return below;
}

/* The probe shop:many is at 300 places, as in a function that a compiler inlines everywhere. */
__attribute__((noinline)) static void shop_many(void) {
  __asm__ volatile(
      ".rept 300\n"
      "990: nop\n"
      ".pushsection .note.stapsdt,\"\",\"note\"\n"
      ".balign 4\n.4byte 992f-991f, 994f-993f, 3\n"
      "991: .asciz \"stapsdt\"\n992: .balign 4\n"
      "993: .8byte 990b, 0, 0\n"
      ".asciz \"shop\"\n.asciz \"many\"\n.asciz \"\"\n"
      "994: .balign 4\n.popsection\n"
      ".endr\n");
}

int main(int argc, char** argv) {
  const int count = argc > 1 ? atoi(argv[1]) : 1;
  int enabled = 0;

  for (int i = 0; i < count; i++) {
    const volatile unsigned short* semaphore = &shop_order_semaphore;

    enabled += *semaphore != 0;
    if (shop_order(i, "tea", 0.5, (unsigned char)(i % 100)) != i - 2 || shop_depth(3) != 3)
      return 1;
  }
  shop_many();
  printf("called %d enabled %d\n", count, enabled);
  return 0;
}
