// SPDX-License-Identifier: Apache-2.0
#include "lib/event/filter_evaluator.h"

#include <algorithm>
#include <limits>

namespace weft::testing {
namespace {

// --- types, as far as they are known before an event comes ---------------------------------------

// kOpenText: a text with stars at its end only.
enum class Type { kInt, kFloat, kText, kOpenText, kPattern, kUnknown };

bool IsPattern(Type type) { return type == Type::kOpenText || type == Type::kPattern; }
bool IsText(Type type) { return type == Type::kText || IsPattern(type); }
bool IsNumber(Type type) { return type == Type::kInt || type == Type::kFloat; }
bool IsOrder(const std::string& op) { return op == "<" || op == "<=" || op == ">" || op == ">="; }
bool IsComparison(const std::string& op) { return op == "==" || op == "!=" || IsOrder(op); }
bool IsLogical(const std::string& op) { return op == "&&" || op == "||"; }

bool HasStar(const TextTokens& text) {
  return std::ranges::any_of(text, [](const auto& token) { return !token.has_value(); });
}

Type TypeOfText(const TextTokens& text) {
  const auto star = std::ranges::find_if(text, [](const auto& token) { return !token; });
  if (star == text.end()) return Type::kText;
  const bool open = std::all_of(star, text.end(), [](const auto& token) { return !token; });
  return open ? Type::kOpenText : Type::kPattern;
}

// nullopt: it does not fit, or is not there.
std::optional<Type> TypeOfName(const Expr& expr, const Model& model) {
  const ModelEntry* entry = model.Find(expr.name);
  if (entry == nullptr) return std::nullopt;
  if (entry->is_dynamic) return Type::kUnknown;
  const ModelValue& value = entry->value.index() != 0 ? entry->value : entry->declared;
  const auto* integers = std::get_if<std::vector<int64_t>>(&value);
  const auto* floats = std::get_if<std::vector<double>>(&value);
  if (integers != nullptr || floats != nullptr) {
    const size_t count = integers != nullptr ? integers->size() : floats->size();
    if (!expr.index || (!entry->is_sequence && *expr.index >= count)) return std::nullopt;
    return integers != nullptr ? Type::kInt : Type::kFloat;
  }
  if (expr.index) return std::nullopt;
  if (std::holds_alternative<int64_t>(value)) return Type::kInt;
  return std::holds_alternative<double>(value) ? Type::kFloat : Type::kText;
}

// `model` null: only literals have types.
std::optional<Type> TypeOf(const Expr& expr, const Model* model);

std::optional<Type> TypeOfUnary(const Expr& expr, const Model* model) {
  const std::optional<Type> type = TypeOf(*expr.left, model);
  if (!type || IsText(*type)) return std::nullopt;
  if (expr.op == "!") return Type::kInt;
  if (expr.op != "~") return type;
  return type == Type::kFloat ? std::nullopt : std::optional(Type::kInt);
}

std::optional<Type> TypeOfBinary(const Expr& expr, const Model* model) {
  const std::optional<Type> a = TypeOf(*expr.left, model);
  const std::optional<Type> b = TypeOf(*expr.right, model);
  if (!a || !b) return std::nullopt;
  if (IsLogical(expr.op))
    return IsText(*a) || IsText(*b) ? std::nullopt : std::optional(Type::kInt);
  if (IsComparison(expr.op)) {
    if ((IsText(*a) && IsNumber(*b)) || (IsNumber(*a) && IsText(*b))) return std::nullopt;
    if (IsOrder(expr.op) && (IsText(*a) || IsText(*b))) return std::nullopt;
    const bool two_patterns = IsPattern(*a) && IsPattern(*b);
    if (two_patterns && (a == Type::kPattern || b == Type::kPattern)) return std::nullopt;
    return Type::kInt;
  }
  const bool fits = !IsText(*a) && !IsText(*b) && a != Type::kFloat && b != Type::kFloat;
  return fits ? std::optional(Type::kInt) : std::nullopt;
}

std::optional<Type> TypeOf(const Expr& expr, const Model* model) {
  switch (expr.kind) {
    case Expr::Kind::kInt:
      return Type::kInt;
    case Expr::Kind::kFloat:
      return Type::kFloat;
    case Expr::Kind::kText:
      return TypeOfText(expr.text);
    case Expr::Kind::kName:
      return model == nullptr ? std::optional(Type::kUnknown) : TypeOfName(expr, *model);
    case Expr::Kind::kUnary:
      return TypeOfUnary(expr, model);
    case Expr::Kind::kBinary:
      return TypeOfBinary(expr, model);
  }
  return std::nullopt;
}

bool IsCondition(const Expr& expr, const Model* model) {
  const std::optional<Type> type = TypeOf(expr, model);
  return type && !IsText(*type);
}

// --- values --------------------------------------------------------------------------------------

using Value = std::variant<int64_t, double, TextTokens>;

std::optional<Value> ValueOf(const Expr& expr, const Model& model);

TextTokens Tokens(const std::string& text) {
  TextTokens tokens;
  for (const char c : text) tokens.emplace_back(c);
  return tokens;
}

std::optional<Value> ValueOfName(const Expr& expr, const Model& model) {
  const ModelValue& value = model.Find(expr.name)->value;
  const uint64_t index = expr.index.value_or(0);  // only elements have one, and they always do
  if (const auto* i = std::get_if<int64_t>(&value)) return *i;
  if (const auto* d = std::get_if<double>(&value)) return *d;
  if (const auto* s = std::get_if<std::string>(&value)) return Tokens(*s);
  if (const auto* v = std::get_if<std::vector<int64_t>>(&value))
    return index < v->size() ? std::optional<Value>((*v)[index]) : std::nullopt;
  if (const auto* v = std::get_if<std::vector<double>>(&value))
    return index < v->size() ? std::optional<Value>((*v)[index]) : std::nullopt;
  return std::nullopt;
}

std::optional<bool> Truth(const Value& value) {
  if (const auto* i = std::get_if<int64_t>(&value)) return *i != 0;
  if (const auto* d = std::get_if<double>(&value)) return *d != 0;
  return std::nullopt;
}

std::optional<Value> ValueOfUnary(const Expr& expr, const Model& model) {
  const std::optional<Value> value = ValueOf(*expr.left, model);
  if (!value) return std::nullopt;
  if (expr.op == "!") {
    const std::optional<bool> truth = Truth(*value);
    return truth ? std::optional<Value>(int64_t{!*truth}) : std::nullopt;
  }
  if (const auto* i = std::get_if<int64_t>(&*value)) {
    const auto bits = static_cast<uint64_t>(*i);
    if (expr.op == "-") return static_cast<int64_t>(~bits + 1);
    return expr.op == "~" ? static_cast<int64_t>(~bits) : *i;
  }
  const auto* d = std::get_if<double>(&*value);
  if (d == nullptr || expr.op == "~") return std::nullopt;
  return expr.op == "-" ? -*d : *d;
}

bool Match(const TextTokens& pattern, size_t p, const TextTokens& text, size_t t) {
  if (p == pattern.size()) return t == text.size();
  if (!pattern[p]) {
    for (size_t rest = t; rest <= text.size(); ++rest) {
      if (Match(pattern, p + 1, text, rest)) return true;
    }
    return false;
  }
  return t < text.size() && pattern[p] == text[t] && Match(pattern, p + 1, text, t + 1);
}

// Compares byte by byte, until one text has a star.
bool MatchOpenTexts(const TextTokens& a, const TextTokens& b) {
  for (size_t i = 0; a[i] && b[i]; ++i) {
    if (a[i] != b[i]) return false;
  }
  return true;
}

template <typename T>
bool Ordered(const std::string& op, T a, T b) {
  if (op == "==") return a == b;
  if (op == "!=") return a != b;
  if (op == "<") return a < b;
  if (op == "<=") return a <= b;
  return op == ">" ? a > b : a >= b;
}

double ToDouble(const Value& value) {
  if (const auto* i = std::get_if<int64_t>(&value)) return static_cast<double>(*i);
  return std::get<double>(value);
}

std::optional<bool> Compare(const std::string& op, const Value& a, const Value& b) {
  const auto* left = std::get_if<TextTokens>(&a);
  const auto* right = std::get_if<TextTokens>(&b);
  if ((left == nullptr) != (right == nullptr)) return std::nullopt;
  if (left != nullptr) {
    if (IsOrder(op)) return std::nullopt;
    if (HasStar(*left) && HasStar(*right)) return MatchOpenTexts(*left, *right) == (op == "==");
    const bool same = HasStar(*left) ? Match(*left, 0, *right, 0) : Match(*right, 0, *left, 0);
    return same == (op == "==");
  }
  if (std::holds_alternative<int64_t>(a) && std::holds_alternative<int64_t>(b))
    return Ordered(op, std::get<int64_t>(a), std::get<int64_t>(b));
  return Ordered(op, ToDouble(a), ToDouble(b));
}

std::optional<int64_t> Bits(const std::string& op, const Value& a, const Value& b) {
  if (!std::holds_alternative<int64_t>(a) || !std::holds_alternative<int64_t>(b))
    return std::nullopt;
  const auto left = static_cast<uint64_t>(std::get<int64_t>(a));
  const auto right = static_cast<uint64_t>(std::get<int64_t>(b));
  if (op == "&") return static_cast<int64_t>(left & right);
  if (op == "|") return static_cast<int64_t>(left | right);
  if (op == "^") return static_cast<int64_t>(left ^ right);
  if (right > 63) return std::nullopt;
  return static_cast<int64_t>(op == "<<" ? left << right : left >> right);
}

std::optional<Value> ValueOfBinary(const Expr& expr, const Model& model) {
  const std::optional<Value> a = ValueOf(*expr.left, model);
  if (!a) return std::nullopt;
  if (IsLogical(expr.op)) {
    const std::optional<bool> left = Truth(*a);
    if (!left) return std::nullopt;
    if (*left == (expr.op == "||")) return int64_t{*left};
    const std::optional<Value> b = ValueOf(*expr.right, model);
    const std::optional<bool> right = b ? Truth(*b) : std::nullopt;
    return right ? std::optional<Value>(int64_t{*right}) : std::nullopt;
  }
  const std::optional<Value> b = ValueOf(*expr.right, model);
  if (!b) return std::nullopt;
  if (IsComparison(expr.op)) {
    const std::optional<bool> result = Compare(expr.op, *a, *b);
    return result ? std::optional<Value>(int64_t{*result}) : std::nullopt;
  }
  const std::optional<int64_t> result = Bits(expr.op, *a, *b);
  return result ? std::optional<Value>(*result) : std::nullopt;
}

std::optional<Value> ValueOf(const Expr& expr, const Model& model) {
  switch (expr.kind) {
    case Expr::Kind::kInt:
      return static_cast<int64_t>(expr.integer);
    case Expr::Kind::kFloat:
      return expr.number;
    case Expr::Kind::kText:
      return expr.text;
    case Expr::Kind::kName:
      return ValueOfName(expr, model);
    case Expr::Kind::kUnary:
      return ValueOfUnary(expr, model);
    case Expr::Kind::kBinary:
      return ValueOfBinary(expr, model);
  }
  return std::nullopt;
}

}  // namespace

Verdict Evaluate(const Expr& expr, const Model& model) {
  if (!IsCondition(expr, nullptr)) return Verdict::kRefused;
  if (!IsCondition(expr, &model)) return Verdict::kNoMatch;
  const std::optional<Value> value = ValueOf(expr, model);
  const std::optional<bool> truth = value ? Truth(*value) : std::nullopt;
  return truth.value_or(false) ? Verdict::kTrue : Verdict::kFalse;
}

}  // namespace weft::testing
