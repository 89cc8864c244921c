// SPDX-License-Identifier: Apache-2.0
// See bpf.h. Jumps only go forward, so a program ends after at most `length` steps.
#include "ust-injector/preload/bpf.h"

#include <stdbool.h>

struct machine {
  uint32_t a, x;
  uint32_t memory[BPF_MEMWORDS];
};

static bool compute(struct machine* m, uint16_t op, uint32_t by) {
  switch (op) {
    case BPF_ADD:
      m->a += by;
      return true;
    case BPF_SUB:
      m->a -= by;
      return true;
    case BPF_MUL:
      m->a *= by;
      return true;
    case BPF_DIV:
      if (by == 0) return false;
      m->a /= by;
      return true;
    case BPF_OR:
      m->a |= by;
      return true;
    case BPF_AND:
      m->a &= by;
      return true;
    case BPF_XOR:
      m->a ^= by;
      return true;
    case BPF_LSH:
      m->a = by < 32 ? m->a << by : 0;
      return true;
    case BPF_RSH:
      m->a = by < 32 ? m->a >> by : 0;
      return true;
    case BPF_NEG:
      m->a = 0 - m->a;
      return true;
    default:
      return false;
  }
}

static bool load(struct machine* m, const struct sock_filter* at, const struct seccomp_data* data) {
  uint32_t value;
  switch (at->code & (BPF_SIZE(0xff) | BPF_MODE(0xff))) {
    case BPF_W | BPF_ABS:
      if (at->k % 4 != 0 || at->k > sizeof(*data) - 4) return false;
      value = *(const uint32_t*)((const uint8_t*)data + at->k);
      break;
    case BPF_W | BPF_IMM:
      value = at->k;
      break;
    case BPF_W | BPF_LEN:
      value = sizeof(*data);
      break;
    case BPF_W | BPF_MEM:
      if (at->k >= BPF_MEMWORDS) return false;
      value = m->memory[at->k];
      break;
    default:
      return false;
  }
  if (BPF_CLASS(at->code) == BPF_LD) {
    m->a = value;
  } else {
    m->x = value;
  }
  return true;
}

static bool is_true(uint32_t a, uint16_t op, uint32_t b) {
  switch (op) {
    case BPF_JEQ:
      return a == b;
    case BPF_JGT:
      return a > b;
    case BPF_JGE:
      return a >= b;
    default:
      return (a & b) != 0;  // BPF_JSET
  }
}

uint32_t weft_bpf_run(const void* code, uint32_t length, const struct seccomp_data* data) {
  struct machine m = {0};
  for (uint32_t i = 0; i < length; ++i) {
    struct sock_filter instruction;
    __builtin_memcpy(&instruction, (const char*)code + i * sizeof(instruction),
                     sizeof(instruction));
    const struct sock_filter* at = &instruction;
    const uint32_t operand = BPF_SRC(at->code) == BPF_X ? m.x : at->k;
    bool known = true;
    switch (BPF_CLASS(at->code)) {
      case BPF_LD:
      case BPF_LDX:
        known = load(&m, at, data);
        break;
      case BPF_ST:
      case BPF_STX:
        known = at->k < BPF_MEMWORDS;
        if (known) m.memory[at->k] = BPF_CLASS(at->code) == BPF_ST ? m.a : m.x;
        break;
      case BPF_ALU:
        known = compute(&m, BPF_OP(at->code), operand);
        break;
      case BPF_JMP:
        if (BPF_OP(at->code) == BPF_JA) {
          if (at->k >= length) return WEFT_BPF_UNKNOWN;
          i += at->k;
        } else {
          i += is_true(m.a, BPF_OP(at->code), operand) ? at->jt : at->jf;
        }
        break;
      case BPF_RET:
        return BPF_RVAL(at->code) == BPF_A ? m.a : at->k;
      case BPF_MISC:
        if (BPF_MISCOP(at->code) == BPF_TAX) {
          m.x = m.a;
        } else {
          m.a = m.x;
        }
        break;
      default:
        known = false;
    }
    if (!known) break;
  }
  return WEFT_BPF_UNKNOWN;
}
