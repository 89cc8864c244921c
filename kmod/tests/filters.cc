// SPDX-License-Identifier: GPL-2.0-only
// See filters.h.
#include "kmod/tests/filters.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cstring>

#include "lib/abi/filter.h"
#include "lib/event/filter_compiler.h"

namespace weft::kmod {
namespace {

using Random = std::mt19937_64;
using Program = std::vector<uint8_t>;

constexpr size_t kPiece = sizeof(weft_filter_insn);  // a symbol is as long
static_assert(sizeof(weft_filter_symbol) == kPiece);

weft_filter_program Header(const Program& program) {
  weft_filter_program header{};
  std::memcpy(&header, program.data(), std::min(program.size(), sizeof(header)));
  return header;
}

size_t Pick(Random& random, size_t below) { return below == 0 ? 0 : random() % below; }

uint8_t AnyByte(Random& random) {
  static constexpr std::array<uint8_t, 8> kEdges = {0, 1, 2, 7, 8, 24, 127, 255};
  return random() % 2 == 0 ? kEdges[random() % kEdges.size()] : static_cast<uint8_t>(random());
}

void ChangeBytes(Random& random, Program& program, size_t from) {
  for (size_t times = 1 + random() % 3; times > 0; times--) {
    uint8_t& byte = program[from + Pick(random, program.size() - from)];
    if (random() % 2 == 0)
      byte ^= static_cast<uint8_t>(1U << random() % 8);
    else
      byte = AnyByte(random);
  }
}

// Changes an instruction into another one that exists, or changes its operand.
void ChangeInstruction(Random& random, Program& program) {
  const weft_filter_program header = Header(program);
  uint8_t* at = program.data() + sizeof(header) + header.symbol_count * kPiece +
                Pick(random, header.insn_count) * kPiece;
  weft_filter_insn insn;
  std::memcpy(&insn, at, sizeof(insn));
  switch (random() % 4) {
    case 0:
      insn.op = static_cast<uint8_t>(1 + random() % (WEFT_FILTER_OP_COUNT - 1));
      break;
    case 1:
      insn.arg = static_cast<uint16_t>(random() % (header.insn_count + 1U));
      break;
    case 2:
      insn.size = static_cast<uint32_t>(random() % (header.literal_bytes + 2U));
      break;
    default:
      insn.imm = random() % 2 == 0 ? random() : random() % 70;
  }
  std::memcpy(at, &insn, sizeof(insn));
}

// Changes the name of a symbol to another one or another part of the literals, or changes an index.
void ChangeSymbol(Random& random, Program& program) {
  const weft_filter_program header = Header(program);
  if (header.symbol_count == 0) return ChangeInstruction(random, program);
  uint8_t* at = program.data() + sizeof(header) + Pick(random, header.symbol_count) * kPiece;
  weft_filter_symbol symbol;
  std::memcpy(&symbol, at, sizeof(symbol));
  switch (random() % 4) {
    case 0:
      symbol.kind = static_cast<uint8_t>(random() % 5);
      break;
    case 1:
      symbol.flags ^= WEFT_FILTER_SYMBOL_INDEX;
      break;
    case 2:
      symbol.index = random() % 2 == 0 ? random() : random() % 5;
      break;
    default:
      symbol.name_offset = static_cast<uint32_t>(random() % (header.literal_bytes + 1U));
      symbol.name_size = static_cast<uint16_t>(random() % 16);
  }
  std::memcpy(at, &symbol, sizeof(symbol));
}

void SwapInstructions(Random& random, Program& program) {
  const weft_filter_program header = Header(program);
  uint8_t* insns = program.data() + sizeof(header) + header.symbol_count * kPiece;
  uint8_t* a = insns + Pick(random, header.insn_count) * kPiece;
  uint8_t* b = insns + Pick(random, header.insn_count) * kPiece;
  if (a != b) std::swap_ranges(a, a + kPiece, b);
}

// Makes the program shorter; the header may state the new size or the old one.
void Cut(Random& random, Program& program) {
  weft_filter_program header = Header(program);
  program.resize(1 + Pick(random, program.size() - 1));
  if (program.size() < sizeof(header) || random() % 2 == 0) return;
  header.size = static_cast<uint32_t>(program.size());
  if (random() % 2 == 0) header.insn_count = static_cast<uint16_t>(Pick(random, header.insn_count));
  std::memcpy(program.data(), &header, sizeof(header));
}

// Joins the symbols and literals of one program with instructions of both. Each part is valid
// alone, but perhaps not together.
Program Splice(Random& random, const Program& a, const Program& b) {
  weft_filter_program header = Header(a);
  const weft_filter_program other = Header(b);
  const size_t symbols_end = sizeof(header) + header.symbol_count * kPiece;
  const size_t keep = Pick(random, header.insn_count);
  const size_t take = 1 + Pick(random, other.insn_count);
  Program made(a.begin(), a.begin() + static_cast<ptrdiff_t>(symbols_end + keep * kPiece));
  const auto end_of_b = b.end() - other.literal_bytes;
  made.insert(made.end(), end_of_b - static_cast<ptrdiff_t>(take * kPiece), end_of_b);
  made.insert(made.end(), a.end() - header.literal_bytes, a.end());
  header.insn_count = static_cast<uint16_t>(keep + take);
  header.size = static_cast<uint32_t>(made.size());
  header.max_stack = std::max(header.max_stack, other.max_stack);
  std::memcpy(made.data(), &header, sizeof(header));
  return made;
}

}  // namespace

std::vector<uint8_t> Compiled(const std::string& expression) {
  auto program = CompileFilter(expression);
  EXPECT_TRUE(program.has_value()) << expression;
  return program.has_value() ? *program : Program{};
}

const std::vector<std::string>& UserEventExpressions() {
  static const std::vector<std::string> expressions = {
      "policy == 1",
      "policy > 5 && count < 3 || policy != 77",
      "(policy & 4) == 4 || (~policy >> 3) << 2 > 0x1f",
      "text == \"a*b\" || text != 'what?' && policy",
      "text == \"*ver*lon*g*\\\\*\" || 'x' == text",
      "list[3] > 10 || list[0] == 97 && list[255] == 0",
      "bytes[0] == 97 || -bytes[3] < 5",
      "!(word ^ address) && (count | 3) >= 3",
      "$ctx.vpid > 1 && $ctx.procname == 'kmod*'",
      "$ctx.vtid == $ctx.tid || $ctx.hostname != \"guest\"",
      "$ctx.uid == 0 && $ctx.veuid == 0 && $ctx.cgroup_id > 0 && $ctx.prio != $ctx.nice",
      "$ctx.cpu_id >= 0 && ($ctx.interruptible || $ctx.preemptible) && $ctx.net_ns != 0",
      "((((policy == 1 || policy == 2) && (count == 3 || word == 4)) || text == 'q') && "
      "(list[1] == 1 || $ctx.ppid)) || !address",
      "policy << count == 8 || policy >> count == 8",
  };
  return expressions;
}

const std::vector<std::string>& NumberExpressions() {
  static const std::vector<std::string> expressions = {
      "f1 == 3 || f1 > 100",
      "f2 & 1 || f1 << f2 != 0 && !f3",
      "f1 >= 0 && $ctx.procname != 'none' && $ctx.vpid",
      "(f1 ^ f2) > (f3 | 7) || $ctx.hostname == \"g*t\"",
  };
  return expressions;
}

Filters::Filters(const std::vector<std::string>& expressions) {
  for (const std::string& expression : expressions) programs_.push_back(Compiled(expression));
}

const std::vector<uint8_t>& Filters::Right(std::mt19937_64& random) const {
  return programs_[random() % programs_.size()];
}

std::vector<uint8_t> Filters::Spoilt(std::mt19937_64& random) const {
  Program program = Right(random);
  switch (random() % 8) {
    case 0:
      ChangeBytes(random, program, 0);
      break;
    case 1:
      ChangeBytes(random, program, sizeof(weft_filter_program));
      break;
    case 2:
    case 3:
      for (size_t times = 1 + random() % 3; times > 0; times--) ChangeInstruction(random, program);
      break;
    case 4:
      ChangeSymbol(random, program);
      break;
    case 5:
      SwapInstructions(random, program);
      break;
    case 6:
      Cut(random, program);
      break;
    default:
      return Splice(random, program, Right(random));
  }
  return program;
}

}  // namespace weft::kmod
