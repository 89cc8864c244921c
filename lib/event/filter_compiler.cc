// SPDX-License-Identifier: Apache-2.0
#include "lib/event/filter_compiler.h"

#include <bit>
#include <cassert>
#include <cstring>
#include <string>
#include <utility>

#include "lib/event/filter.h"
#include "lib/event/filter_check.h"
#include "lib/event/filter_parser.h"

namespace weft {
namespace {

// Does this leave 1 or 0?
bool IsBoolean(const FilterNode& node) {
  if (node.kind == FilterNodeKind::kUnary) return node.op == WEFT_FILTER_OP_NOT;
  return node.kind == FilterNodeKind::kBinary && !IsBitOperator(node.op);
}

template <typename T>
void Append(std::vector<uint8_t>& out, const std::vector<T>& values) {
  const auto* p = reinterpret_cast<const uint8_t*>(values.data());
  out.insert(out.end(), p, p + values.size() * sizeof(T));
}

// Walks the tree once and emits postfix order. Its recursion is at most kMaxFilterNodes deep.
class Compiler {
 public:
  explicit Compiler(const FilterAst& ast) : ast_(ast) {}

  FilterResult<std::vector<uint8_t>> Run() {
    WEFT_TRY(Node(ast_.nodes.size() - 1));
    WEFT_TRY(Emit(ast_.root(), {.op = WEFT_FILTER_OP_RETURN}, -1));
    return Assemble();
  }

 private:
  FilterResult<void> Node(size_t index) {
    const FilterNode& node = ast_.nodes[index];
    switch (node.kind) {
      case FilterNodeKind::kInt:
        return Emit(node, {.op = WEFT_FILTER_OP_PUSH_INT, .imm = node.integer}, 1);
      case FilterNodeKind::kFloat:
        features_ |= WEFT_FILTER_FEATURE_FLOAT;
        return Emit(node,
                    {.op = WEFT_FILTER_OP_PUSH_FLOAT, .imm = std::bit_cast<uint64_t>(node.number)},
                    1);
      case FilterNodeKind::kString:
        return Literal(node, WEFT_FILTER_OP_PUSH_STRING);
      case FilterNodeKind::kPattern:
        return Literal(node, WEFT_FILTER_OP_PUSH_PATTERN);
      case FilterNodeKind::kSymbol:
        return Symbol(node);
      case FilterNodeKind::kUnary:
        WEFT_TRY(Node(node.left));
        return Emit(node, {.op = static_cast<uint8_t>(node.op)}, 0);
      case FilterNodeKind::kBinary:
        break;
    }
    WEFT_TRY(Node(node.left));
    if (node.op == WEFT_FILTER_OP_AND_ELSE || node.op == WEFT_FILTER_OP_OR_ELSE)
      return Logical(node);
    WEFT_TRY(Node(node.right));
    return Emit(node, {.op = static_cast<uint8_t>(node.op)}, -1);
  }

  // The left side is on the stack.
  FilterResult<void> Logical(const FilterNode& node) {
    const size_t jump = insns_.size();
    WEFT_TRY(Emit(node, {.op = static_cast<uint8_t>(node.op)}, -1));
    WEFT_TRY(Node(node.right));
    if (!IsBoolean(ast_.nodes[node.right])) WEFT_TRY(Emit(node, {.op = WEFT_FILTER_OP_BOOL}, 0));
    insns_[jump].arg = static_cast<uint16_t>(insns_.size());
    return {};
  }

  FilterResult<void> Literal(const FilterNode& node, weft_filter_op op) {
    WEFT_ASSIGN(const uint32_t offset, AddText(node, node.text));
    return Emit(node,
                {.op = static_cast<uint8_t>(op),
                 .size = static_cast<uint32_t>(node.text.size()),
                 .imm = offset},
                1);
  }

  FilterResult<void> Symbol(const FilterNode& node) {
    size_t number = 0;
    while (number < symbols_.size() && symbols_[number] != node.symbol) ++number;
    if (number == symbols_.size()) {
      if (number == WEFT_FILTER_MAX_SYMBOLS)
        return TooMuch(node, "more than " + std::to_string(number) + " different names");
      symbols_.push_back(node.symbol);
      WEFT_ASSIGN(const uint32_t offset, AddText(node, node.symbol.name));
      name_offsets_.push_back(offset);
    }
    return Emit(node, {.op = WEFT_FILTER_OP_PUSH_SYMBOL, .arg = static_cast<uint16_t>(number)}, 1);
  }

  FilterResult<uint32_t> AddText(const FilterNode& node, std::string_view text) {
    const size_t offset = literals_.size();
    if (offset + text.size() > WEFT_FILTER_MAX_LITERAL_BYTES)
      return TooMuch(node, "more than " + std::to_string(WEFT_FILTER_MAX_LITERAL_BYTES) +
                               " bytes of names and strings");
    literals_.insert(literals_.end(), text.begin(), text.end());
    return static_cast<uint32_t>(offset);
  }

  // `change`: how much deeper the stack is afterwards.
  FilterResult<void> Emit(const FilterNode& node, weft_filter_insn insn, int change) {
    if (insns_.size() == WEFT_FILTER_MAX_INSNS)
      return TooMuch(node,
                     "needs more than " + std::to_string(WEFT_FILTER_MAX_INSNS) + " instructions");
    depth_ += change;
    if (depth_ > static_cast<int>(WEFT_FILTER_MAX_STACK))
      return TooMuch(node, "needs more than " + std::to_string(WEFT_FILTER_MAX_STACK) +
                               " intermediate results at once");
    max_depth_ = std::max(max_depth_, depth_);
    insns_.push_back(insn);
    return {};
  }

  static std::unexpected<FilterError> TooMuch(const FilterNode& where, std::string message) {
    return std::unexpected(FilterError{.message = std::move(message),
                                       .offset = where.offset,
                                       .size = where.size,
                                       .code = ErrorCode::kLimit});
  }

  [[nodiscard]] std::vector<uint8_t> Assemble() const {
    std::vector<weft_filter_symbol> symbols;
    symbols.reserve(symbols_.size());
    for (size_t i = 0; i < symbols_.size(); ++i) {
      symbols.push_back(
          {.kind = symbols_[i].kind,
           .flags = static_cast<uint8_t>(symbols_[i].has_index ? WEFT_FILTER_SYMBOL_INDEX : 0),
           .name_size = static_cast<uint16_t>(symbols_[i].name.size()),
           .name_offset = name_offsets_[i],
           .index = symbols_[i].index});
    }
    const std::vector<weft_filter_program> head = {
        {.magic = WEFT_FILTER_MAGIC,
         .version = WEFT_FILTER_VERSION,
         .header_size = sizeof(weft_filter_program),
         .size = static_cast<uint32_t>(sizeof(weft_filter_program) +
                                       symbols.size() * sizeof(weft_filter_symbol) +
                                       insns_.size() * sizeof(weft_filter_insn) + literals_.size()),
         .insn_count = static_cast<uint16_t>(insns_.size()),
         .symbol_count = static_cast<uint16_t>(symbols.size()),
         .literal_bytes = static_cast<uint32_t>(literals_.size()),
         .max_stack = static_cast<uint16_t>(max_depth_),
         .reserved0 = 0,
         .features = features_,
         .reserved1 = 0}};
    std::vector<uint8_t> out;
    Append(out, head);
    Append(out, symbols);
    Append(out, insns_);
    Append(out, literals_);
    assert(weft_filter_validate(out.data(), static_cast<uint32_t>(out.size())) == 0);
    return out;
  }

  const FilterAst& ast_;
  std::vector<weft_filter_insn> insns_;
  std::vector<FilterSymbol> symbols_;
  std::vector<uint32_t> name_offsets_;  // of symbols_
  std::vector<char> literals_;
  uint32_t features_ = 0;
  int depth_ = 0;
  int max_depth_ = 0;
};

}  // namespace

FilterResult<std::vector<uint8_t>> CompileFilter(FilterAst ast) {
  WEFT_TRY(CheckAndFold(ast));
  return Compiler(ast).Run();
}

FilterResult<std::vector<uint8_t>> CompileFilter(std::string_view expression) {
  WEFT_ASSIGN(FilterAst ast, ParseFilter(expression));
  return CompileFilter(std::move(ast));
}

}  // namespace weft
