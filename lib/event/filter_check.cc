// SPDX-License-Identifier: Apache-2.0
#include "lib/event/filter_check.h"

#include <optional>
#include <string>
#include <string_view>
#include <utility>

namespace weft {
namespace {

enum class Type { kUnknown, kInt, kFloat, kString, kPattern };

bool IsText(Type type) { return type == Type::kString || type == Type::kPattern; }
bool IsNumber(Type type) { return type == Type::kInt || type == Type::kFloat; }

std::unexpected<FilterError> Refuse(const FilterNode& where, std::string message) {
  return std::unexpected(
      FilterError{.message = std::move(message), .offset = where.offset, .size = where.size});
}

bool IsConstant(const FilterNode& node) {
  return node.kind != FilterNodeKind::kSymbol && node.kind != FilterNodeKind::kUnary &&
         node.kind != FilterNodeKind::kBinary;
}

void BecomeInt(FilterNode& node, uint64_t value) {
  node.kind = FilterNodeKind::kInt;
  node.integer = value;
}

void FoldUnary(FilterNode& node, const FilterNode& operand) {
  if (operand.kind == FilterNodeKind::kFloat) {
    if (node.op == WEFT_FILTER_OP_NOT) return BecomeInt(node, operand.number == 0 ? 1 : 0);
    node.number = node.op == WEFT_FILTER_OP_NEG ? -operand.number : operand.number;
    node.kind = FilterNodeKind::kFloat;
  }
  if (operand.kind != FilterNodeKind::kInt) return;
  const uint64_t value = operand.integer;
  switch (node.op) {
    case WEFT_FILTER_OP_NEG:
      return BecomeInt(node, 0 - value);
    case WEFT_FILTER_OP_NOT:
      return BecomeInt(node, value == 0 ? 1 : 0);
    case WEFT_FILTER_OP_BIT_NOT:
      return BecomeInt(node, ~value);
    default:
      return BecomeInt(node, value);
  }
}

void FoldBits(FilterNode& node, uint64_t a, uint64_t b) {
  switch (node.op) {
    case WEFT_FILTER_OP_SHL:
      // Beyond 63 the whole filter is false, which only running it can say.
      return b <= 63 ? BecomeInt(node, a << b) : void();
    case WEFT_FILTER_OP_SHR:
      return b <= 63 ? BecomeInt(node, a >> b) : void();
    case WEFT_FILTER_OP_AND:
      return BecomeInt(node, a & b);
    case WEFT_FILTER_OP_XOR:
      return BecomeInt(node, a ^ b);
    default:
      return BecomeInt(node, a | b);
  }
}

weft_filter_op Mirrored(weft_filter_op op) {
  switch (op) {
    case WEFT_FILTER_OP_LT:
      return WEFT_FILTER_OP_GT;
    case WEFT_FILTER_OP_GT:
      return WEFT_FILTER_OP_LT;
    case WEFT_FILTER_OP_LE:
      return WEFT_FILTER_OP_GE;
    case WEFT_FILTER_OP_GE:
      return WEFT_FILTER_OP_LE;
    default:
      return op;
  }
}

// Returns what stands before the star, with its escapes, if the only star is the last byte.
std::optional<std::string_view> PrefixOfPattern(std::string_view pattern) {
  for (size_t i = 0; i < pattern.size(); ++i) {
    if (pattern[i] == '\\')
      ++i;
    else if (pattern[i] == '*' && i + 1 == pattern.size())
      return pattern.substr(0, i);
    else if (pattern[i] == '*')
      return std::nullopt;
  }
  return std::nullopt;
}

// Checks nodes one after the other, children first, and keeps their types.
class Checker {
 public:
  explicit Checker(FilterAst& ast) : nodes_(ast.nodes), types_(ast.nodes.size()) {}

  FilterResult<void> Run() {
    for (size_t i = 0; i < nodes_.size(); ++i) {
      WEFT_ASSIGN(types_[i], Node(nodes_[i]));
    }
    if (IsText(types_.back())) return Refuse(nodes_.back(), "a string alone is no condition");
    return {};
  }

 private:
  FilterResult<Type> Node(FilterNode& node) {
    switch (node.kind) {
      case FilterNodeKind::kInt:
        return Type::kInt;
      case FilterNodeKind::kFloat:
        return Type::kFloat;
      case FilterNodeKind::kString:
        return Type::kString;
      case FilterNodeKind::kPattern:
        return Type::kPattern;
      case FilterNodeKind::kSymbol:
        return Type::kUnknown;
      case FilterNodeKind::kUnary:
        return Unary(node);
      case FilterNodeKind::kBinary:
        break;
    }
    if (IsComparison(node.op)) return Comparison(node);
    if (IsBitOperator(node.op)) return Bits(node);
    WEFT_TRY(NeedNumber(node, node.left));
    WEFT_TRY(NeedNumber(node, node.right));
    return Type::kInt;
  }

  FilterResult<void> NeedNumber(const FilterNode& node, size_t operand) {
    if (!IsText(types_[operand])) return {};
    const bool logical = node.op == WEFT_FILTER_OP_AND_ELSE || node.op == WEFT_FILTER_OP_OR_ELSE ||
                         node.op == WEFT_FILTER_OP_NOT;
    return Refuse(nodes_[operand], logical ? "a string alone is no condition; compare it with =="
                                           : "a string is no number");
  }

  FilterResult<void> NeedInt(const FilterNode& node, size_t operand) {
    WEFT_TRY(NeedNumber(node, operand));
    if (types_[operand] != Type::kFloat) return {};
    return Refuse(nodes_[operand], "bit operators take integers only");
  }

  FilterResult<Type> Unary(FilterNode& node) {
    if (node.op == WEFT_FILTER_OP_BIT_NOT) {
      WEFT_TRY(NeedInt(node, node.left));
    } else {
      WEFT_TRY(NeedNumber(node, node.left));
    }
    const bool keeps_type = node.op == WEFT_FILTER_OP_NEG || node.op == WEFT_FILTER_OP_PLUS;
    const Type type = keeps_type ? types_[node.left] : Type::kInt;
    FoldUnary(node, nodes_[node.left]);
    return type;
  }

  FilterResult<Type> Bits(FilterNode& node) {
    WEFT_TRY(NeedInt(node, node.left));
    WEFT_TRY(NeedInt(node, node.right));
    const bool shift = node.op == WEFT_FILTER_OP_SHL || node.op == WEFT_FILTER_OP_SHR;
    const FilterNode& left = nodes_[node.left];
    const FilterNode& right = nodes_[node.right];
    if (left.kind == FilterNodeKind::kInt && right.kind == FilterNodeKind::kInt)
      FoldBits(node, left.integer, right.integer);
    else if (!shift)
      ConstantToTheRight(node);
    return Type::kInt;
  }

  FilterResult<Type> Comparison(FilterNode& node) {
    const Type a = types_[node.left];
    const Type b = types_[node.right];
    const bool equality = node.op == WEFT_FILTER_OP_EQ || node.op == WEFT_FILTER_OP_NE;
    if ((IsText(a) && IsNumber(b)) || (IsNumber(a) && IsText(b)))
      return Refuse(node, "a string is compared to a number");
    if ((IsText(a) || IsText(b)) && !equality)
      return Refuse(node, "strings are compared with == and != only");
    if (a == Type::kPattern && b == Type::kPattern) return Patterns(node);
    ConstantToTheRight(node);
    return Type::kInt;
  }

  // Compares patterns as LTTng does: two texts that end in a star are equal if one begins with the
  // other's text.
  FilterResult<Type> Patterns(FilterNode& node) {
    const auto left = PrefixOfPattern(nodes_[node.left].text);
    const auto right = PrefixOfPattern(nodes_[node.right].text);
    if (!left || !right) {
      return Refuse(
          node,
          "two patterns are compared; write one as a plain string, or both with a star at "
          "their end only");
    }
    const bool equal = left->starts_with(*right) || right->starts_with(*left);
    BecomeInt(node, equal == (node.op == WEFT_FILTER_OP_EQ) ? 1 : 0);
    return Type::kInt;
  }

  void ConstantToTheRight(FilterNode& node) {
    if (!IsConstant(nodes_[node.left]) || IsConstant(nodes_[node.right])) return;
    std::swap(node.left, node.right);
    node.op = Mirrored(node.op);
  }

  std::vector<FilterNode>& nodes_;
  std::vector<Type> types_;
};

}  // namespace

FilterResult<void> CheckAndFold(FilterAst& ast) { return Checker(ast).Run(); }

}  // namespace weft
