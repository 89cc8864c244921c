// SPDX-License-Identifier: Apache-2.0
#include "lib/event/filter_reference.h"

#include <bit>

#include "lib/abi/filter.h"
#include "lib/event/match.h"

namespace weft::testing {
namespace {

template <typename T>
T ReadAt(const std::vector<uint8_t>& bytes, size_t offset) {
  T value;
  std::memcpy(&value, bytes.data() + offset, sizeof(T));
  return value;
}

std::optional<bool> Truth(const ReferenceValue& value) {
  if (const auto* i = std::get_if<int64_t>(&value)) return *i != 0;
  if (const auto* d = std::get_if<double>(&value)) return *d != 0;
  return std::nullopt;
}

template <typename T>
bool Ordered(uint8_t op, const T& a, const T& b) {
  switch (op) {
    case WEFT_FILTER_OP_EQ:
      return a == b;
    case WEFT_FILTER_OP_NE:
      return !(a == b);
    case WEFT_FILTER_OP_LT:
      return a < b;
    case WEFT_FILTER_OP_LE:
      return a <= b;
    case WEFT_FILTER_OP_GT:
      return a > b;
    default:
      return a >= b;
  }
}

std::optional<bool> CompareText(uint8_t op, const ReferenceText& a, const ReferenceText& b) {
  if (op != WEFT_FILTER_OP_EQ && op != WEFT_FILTER_OP_NE) return std::nullopt;
  if (a.is_pattern && b.is_pattern) return std::nullopt;
  const ReferenceText& pattern = a.is_pattern ? a : b;
  const ReferenceText& text = a.is_pattern ? b : a;
  const bool same = pattern.is_pattern
                        ? weft_glob_match_str(pattern.bytes.c_str(), text.bytes.c_str())
                        : std::strcmp(pattern.bytes.c_str(), text.bytes.c_str()) == 0;
  return same == (op == WEFT_FILTER_OP_EQ);
}

std::optional<ReferenceValue> Compare(uint8_t op, const ReferenceValue& a,
                                      const ReferenceValue& b) {
  const auto* left = std::get_if<ReferenceText>(&a);
  const auto* right = std::get_if<ReferenceText>(&b);
  if ((left != nullptr) != (right != nullptr)) return std::nullopt;
  if (left != nullptr) {
    const auto result = CompareText(op, *left, *right);
    return result ? std::optional<ReferenceValue>(int64_t{*result}) : std::nullopt;
  }
  const auto* i = std::get_if<int64_t>(&a);
  const auto* j = std::get_if<int64_t>(&b);
  if (i != nullptr && j != nullptr) return int64_t{Ordered(op, *i, *j)};
  const double x = i != nullptr ? static_cast<double>(*i) : std::get<double>(a);
  const double y = j != nullptr ? static_cast<double>(*j) : std::get<double>(b);
  return int64_t{Ordered(op, x, y)};
}

std::optional<ReferenceValue> Bits(uint8_t op, const ReferenceValue& a, const ReferenceValue& b) {
  const auto* i = std::get_if<int64_t>(&a);
  const auto* j = std::get_if<int64_t>(&b);
  if (i == nullptr || j == nullptr) return std::nullopt;
  const auto x = static_cast<uint64_t>(*i);
  const auto y = static_cast<uint64_t>(*j);
  switch (op) {
    case WEFT_FILTER_OP_AND:
      return static_cast<int64_t>(x & y);
    case WEFT_FILTER_OP_OR:
      return static_cast<int64_t>(x | y);
    case WEFT_FILTER_OP_XOR:
      return static_cast<int64_t>(x ^ y);
    default:
      break;
  }
  if (y > 63) return std::nullopt;
  return static_cast<int64_t>(op == WEFT_FILTER_OP_SHL ? x << y : x >> y);
}

std::optional<ReferenceValue> Unary(uint8_t op, const ReferenceValue& value) {
  const std::optional<bool> truth = Truth(value);
  if (!truth) return std::nullopt;
  if (op == WEFT_FILTER_OP_NOT) return int64_t{!*truth};
  if (op == WEFT_FILTER_OP_BOOL) return int64_t{*truth};
  if (op == WEFT_FILTER_OP_PLUS) return value;
  const auto* i = std::get_if<int64_t>(&value);
  if (op == WEFT_FILTER_OP_BIT_NOT)
    return i != nullptr ? std::optional<ReferenceValue>(~*i) : std::nullopt;
  if (i != nullptr) return static_cast<int64_t>(0 - static_cast<uint64_t>(*i));
  return -std::get<double>(value);
}

}  // namespace

bool RunReference(const std::vector<uint8_t>& program, const ReferenceSymbols& symbols) {
  const auto head = ReadAt<weft_filter_program>(program, 0);
  const size_t insns = sizeof(head) + head.symbol_count * sizeof(weft_filter_symbol);
  const size_t literals = insns + head.insn_count * sizeof(weft_filter_insn);
  std::vector<ReferenceValue> stack;
  const auto pop = [&stack] {
    ReferenceValue value = stack.back();
    stack.pop_back();
    return value;
  };
  for (size_t pc = 0;;) {
    const auto insn = ReadAt<weft_filter_insn>(program, insns + pc++ * sizeof(weft_filter_insn));
    std::optional<ReferenceValue> result;
    switch (insn.op) {
      case WEFT_FILTER_OP_RETURN:
        return Truth(stack.back()).value_or(false);
      case WEFT_FILTER_OP_AND_ELSE:
      case WEFT_FILTER_OP_OR_ELSE: {
        const std::optional<bool> truth = Truth(pop());
        if (!truth) return false;
        if (*truth == (insn.op == WEFT_FILTER_OP_AND_ELSE)) continue;
        pc = insn.arg;
        result = int64_t{*truth};
        break;
      }
      case WEFT_FILTER_OP_PUSH_INT:
        result = static_cast<int64_t>(insn.imm);
        break;
      case WEFT_FILTER_OP_PUSH_FLOAT:
        result = std::bit_cast<double>(insn.imm);
        break;
      case WEFT_FILTER_OP_PUSH_STRING:
      case WEFT_FILTER_OP_PUSH_PATTERN:
        result = ReferenceText{
            std::string(reinterpret_cast<const char*>(program.data()) + literals + insn.imm,
                        insn.size),
            insn.op == WEFT_FILTER_OP_PUSH_PATTERN};
        break;
      case WEFT_FILTER_OP_PUSH_SYMBOL:
        result = symbols[insn.arg];
        break;
      case WEFT_FILTER_OP_NEG:
      case WEFT_FILTER_OP_PLUS:
      case WEFT_FILTER_OP_NOT:
      case WEFT_FILTER_OP_BIT_NOT:
      case WEFT_FILTER_OP_BOOL:
        result = Unary(insn.op, pop());
        break;
      default: {
        const ReferenceValue b = pop();
        const ReferenceValue a = pop();
        result = insn.op >= WEFT_FILTER_OP_EQ ? Compare(insn.op, a, b) : Bits(insn.op, a, b);
        break;
      }
    }
    if (!result) return false;
    stack.push_back(*result);
  }
}

}  // namespace weft::testing
