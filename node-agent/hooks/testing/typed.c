// SPDX-License-Identifier: Apache-2.0
// A library whose functions have all kinds of types. It is built with debug information.
#include <complex.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>

#define TYPED __attribute__((noinline, visibility("default")))

struct pair {
  int x, y;
};
struct large {
  long words[4];
};
enum colour { kRed, kBlue };
typedef const char* text;
typedef volatile int32_t number;

struct inner {
  uint16_t kind;
  int32_t size;
};
struct request {
  uint64_t id;
  struct inner header;
  char label[8];
  union {
    double ratio;
    uint8_t bytes[8];
  };
  const struct request* next;
};

TYPED int typed_member(int more, const struct request* request);
TYPED int64_t typed_scalars(int8_t a, uint16_t b, number c, double d, float e, void* f, text g,
                            bool h, enum colour i);
TYPED struct large typed_large(int32_t a);
TYPED struct pair typed_pair(int32_t a, struct pair b, int32_t c);
TYPED int typed_variable(const char* format, ...);
TYPED void typed_nothing(void);
TYPED long double typed_long_double(int32_t a, long double b);
TYPED double _Complex typed_complex(double a);
TYPED int typed_split(int a, long b);

int64_t typed_scalars(int8_t a, uint16_t b, number c, double d, float e, void* f, text g, bool h,
                      enum colour i) {
  return a + b + c + (int64_t)d + (int64_t)e + (f != 0) + (g != 0) + h + (int64_t)i;
}
struct large typed_large(int32_t a) { return (struct large){{a, 2, 3, 4}}; }
struct pair typed_pair(int32_t a, struct pair b, int32_t c) {
  return (struct pair){a + b.x, b.y + c};
}
int typed_variable(const char* format, ...) { return format[0]; }
// Only the table of symbols names it, which programs may have lost.
__attribute__((noinline, used)) static int typed_hidden(int a) { return a * a * a + a * a + a + 1; }
int typed_member(int more, const struct request* request) { return request->header.size + more; }
void typed_nothing(void) { __asm__ volatile("nop; nop; nop; nop; nop"); }
long double typed_long_double(int32_t a, long double b) { return b + a; }
double _Complex typed_complex(double a) { return a; }
// gcc puts the call into a part of its own, typed_split.cold.
int typed_split(int a, long b) {
  if (a > b) abort();
  return 3 * a + (int)b;
}
