// SPDX-License-Identifier: Apache-2.0
#include "lib/event/filter_generator.h"

#include <array>
#include <cstdio>
#include <limits>
#include <map>

namespace weft::testing {
namespace {

uint64_t Below(Random& random, uint64_t limit) { return random() % limit; }
bool OneIn(Random& random, uint64_t n) { return Below(random, n) == 0; }

std::string Pick(Random& random, std::initializer_list<const char*> choices) {
  return *(choices.begin() + Below(random, choices.size()));
}

int64_t AnyInteger(Random& random) {
  switch (Below(random, 8)) {
    case 0:
      return static_cast<int64_t>(random());
    case 1:
      return std::numeric_limits<int64_t>::min();
    case 2:
      return std::numeric_limits<int64_t>::max();
    case 3:
      return -1 - static_cast<int64_t>(Below(random, 5));
    case 4:
      return static_cast<int64_t>(1ull << Below(random, 64));
    default:
      return static_cast<int64_t>(Below(random, 6));
  }
}

double AnyFloat(Random& random) {
  static constexpr std::array<double, 7> kValues = {0, 0.5, 1, -1, 1e300, -3.25, 4};
  return OneIn(random, 20) ? std::numeric_limits<double>::quiet_NaN()
                           : kValues[Below(random, kValues.size())];
}

std::string AnyText(Random& random) {
  static constexpr std::string_view kBytes = "aab*\\\"\xc3";
  std::string text(Below(random, 6), 'a');
  for (char& c : text) c = kBytes[Below(random, kBytes.size())];
  return text;
}

std::string Index(Random& random) { return "[" + std::to_string(Below(random, 12)) + "]"; }

// Returns a name that no other field has; every second one is a path.
std::string FieldName(Random& random, size_t number) {
  std::string name = "f" + std::to_string(number);
  if (OneIn(random, 2)) return name;
  do {
    while (OneIn(random, 3)) name += Index(random);
    name += Pick(random, {".member", ".m", "._2", ".f0"});
  } while (OneIn(random, 3));
  return name;
}

// Adds an integer of type T, which may cut the value.
template <typename T>
int64_t AddInteger(TestEvent& event, const std::string& name, int64_t value, uint8_t flags) {
  event.Number<T>(name, static_cast<T>(value), flags);
  return static_cast<int64_t>(static_cast<T>(value));
}

int64_t AddAnyInteger(Random& random, TestEvent& event, const std::string& name) {
  const int64_t value = AnyInteger(random);
  uint8_t flags = OneIn(random, 4) ? WEFT_FIELD_NETWORK : 0;
  if (OneIn(random, 6)) flags |= WEFT_FIELD_NOWRITE;
  switch (Below(random, 8)) {
    case 0:
      return AddInteger<int8_t>(event, name, value, flags);
    case 1:
      return AddInteger<uint8_t>(event, name, value, flags);
    case 2:
      return AddInteger<int16_t>(event, name, value, flags);
    case 3:
      return AddInteger<uint16_t>(event, name, value, flags);
    case 4:
      return AddInteger<int32_t>(event, name, value, flags);
    case 5:
      return AddInteger<uint32_t>(event, name, value, flags);
    case 6:
      return AddInteger<int64_t>(event, name, value, flags);
    default:
      return AddInteger<uint64_t>(event, name, value, flags);
  }
}

std::string UpToNul(const std::string& text) { return text.substr(0, text.find('\0')); }

ModelValue AddText(Random& random, TestEvent& event, const std::string& name) {
  std::string text = AnyText(random);
  if (OneIn(random, 4)) text += std::string("\0zz", 3);
  const auto nowrite = static_cast<uint8_t>(OneIn(random, 6) ? WEFT_FIELD_NOWRITE : 0);
  const std::vector<char> chars(text.begin(), text.end());
  switch (Below(random, 4)) {
    case 0:
      event.Array<char>(name, chars, WEFT_FIELD_TEXT | WEFT_FIELD_INLINE | nowrite);
      break;
    case 1:
      event.Array<char>(name, chars, WEFT_FIELD_TEXT | nowrite);
      break;
    case 2:
      event.Sequence<char>(name, chars, WEFT_FIELD_TEXT | nowrite);
      break;
    default:
      event.Text(name, text, nowrite);
      break;
  }
  return UpToNul(text);
}

ModelEntry AddElements(Random& random, TestEvent& event, std::string name) {
  ModelEntry entry{.name = std::move(name), .is_sequence = OneIn(random, 2)};
  const auto network = static_cast<uint8_t>(OneIn(random, 3) ? WEFT_FIELD_NETWORK : 0);
  const auto near = static_cast<uint8_t>(OneIn(random, 2) ? WEFT_FIELD_INLINE : 0);
  const size_t count = Below(random, 4);
  if (OneIn(random, 4)) {
    std::vector<double> values(count);
    for (double& value : values) value = AnyFloat(random);
    if (entry.is_sequence) {
      event.Sequence<double>(entry.name, values, network);
    } else {
      event.Array<double>(entry.name, values, network | near);
    }
    entry.value = std::move(values);
    return entry;
  }
  std::vector<int64_t> values;
  std::vector<int16_t> narrow;
  for (size_t i = 0; i < count; ++i) {
    narrow.push_back(static_cast<int16_t>(AnyInteger(random)));
    values.push_back(narrow.back());
  }
  if (entry.is_sequence) {
    event.Sequence<int16_t>(entry.name, narrow, network);
  } else {
    event.Array<int16_t>(entry.name, narrow, network | near);
  }
  entry.value = std::move(values);
  return entry;
}

uint8_t TypeOf(const ModelValue& value) {
  if (std::holds_alternative<int64_t>(value)) return WEFT_FILTER_INT;
  return std::holds_alternative<double>(value) ? WEFT_FILTER_FLOAT : WEFT_FILTER_STRING;
}

ModelValue AnyValue(Random& random) {
  switch (Below(random, 3)) {
    case 0:
      return AnyInteger(random);
    case 1:
      return AnyFloat(random);
    default:
      return AnyText(random);
  }
}

void AddContext(Random& random, Model& model, std::string name, bool dynamic) {
  ModelEntry entry{.name = (dynamic ? "$app." : "$ctx.") + name, .is_dynamic = dynamic};
  entry.declared = AnyValue(random);
  if (!OneIn(random, 8)) entry.value = entry.declared;
  ContextValue value;
  if (const auto* i = std::get_if<int64_t>(&entry.value)) value = *i;
  if (const auto* d = std::get_if<double>(&entry.value)) value = *d;
  if (const auto* s = std::get_if<std::string>(&entry.value)) value = *s;
  model.contexts.entries.push_back(
      {std::move(name),
       static_cast<uint8_t>(dynamic ? WEFT_FILTER_SYMBOL_APP : WEFT_FILTER_SYMBOL_CONTEXT),
       dynamic ? static_cast<uint8_t>(WEFT_FILTER_ANY) : TypeOf(entry.declared), std::move(value)});
  model.entries.push_back(std::move(entry));
}

// --- expressions ---------------------------------------------------------------------------------

std::unique_ptr<Expr> IntExpr(uint64_t value) {
  auto expr = std::make_unique<Expr>();
  expr->kind = Expr::Kind::kInt;
  expr->integer = value;
  return expr;
}

std::unique_ptr<Expr> TextExpr(Random& random, const Model& model) {
  auto expr = std::make_unique<Expr>();
  expr->kind = Expr::Kind::kText;
  std::string text = AnyText(random);
  const ModelEntry& entry = model.entries[Below(random, model.entries.size())];
  if (const auto* s = std::get_if<std::string>(&entry.value); s != nullptr && !OneIn(random, 3))
    text = *s;
  for (const char c : text) expr->text.emplace_back(c);
  for (uint64_t stars = Below(random, 4); stars > 1; --stars) {
    const size_t from = Below(random, expr->text.size() + 1);
    const size_t size = Below(random, expr->text.size() - from + 1);
    const auto at = expr->text.begin() + static_cast<ptrdiff_t>(from);
    expr->text.insert(expr->text.erase(at, at + static_cast<ptrdiff_t>(size)), std::nullopt);
  }
  return expr;
}

std::unique_ptr<Expr> NameExpr(Random& random, const Model& model) {
  auto expr = std::make_unique<Expr>();
  expr->kind = Expr::Kind::kName;
  const ModelEntry& entry = model.entries[Below(random, model.entries.size())];
  if (OneIn(random, 60)) {
    // The names include a missing member of a field that exists.
    expr->name = Pick(random, {"missing", "$ctx.missing", "f0", "f1.member", "f2[1].member"});
    if (OneIn(random, 4)) expr->name = entry.name + ".missing";
    return expr;
  }
  expr->name = entry.name;
  const bool elements = std::holds_alternative<std::vector<int64_t>>(entry.value) ||
                        std::holds_alternative<std::vector<double>>(entry.value);
  const bool context = entry.name[0] == '$';
  if (elements ? !OneIn(random, 40) : (!context && OneIn(random, 80)))
    expr->index = Below(random, 4);
  return expr;
}

std::unique_ptr<Expr> Leaf(Random& random, const Model& model) {
  switch (Below(random, 10)) {
    case 0:
    case 1:
      return IntExpr(static_cast<uint64_t>(AnyInteger(random)));
    case 2: {
      auto expr = std::make_unique<Expr>();
      expr->kind = Expr::Kind::kFloat;
      expr->number = AnyFloat(random);
      if (!(expr->number >= 0)) expr->number = 0.5;
      return expr;
    }
    case 3:
      return TextExpr(random, model);
    default:
      return NameExpr(random, model);
  }
}

std::unique_ptr<Expr> Tree(Random& random, const Model& model, int depth);

std::unique_ptr<Expr> Binary(std::string op, std::unique_ptr<Expr> left,
                             std::unique_ptr<Expr> right) {
  auto expr = std::make_unique<Expr>();
  expr->kind = Expr::Kind::kBinary;
  expr->op = std::move(op);
  expr->left = std::move(left);
  expr->right = std::move(right);
  return expr;
}

// Returns a comparison whose sides probably fit, so that most expressions have a result.
std::unique_ptr<Expr> Comparison(Random& random, const Model& model, int depth) {
  std::unique_ptr<Expr> left = NameExpr(random, model);
  const ModelEntry* entry = model.Find(left->name);
  const bool text =
      entry != nullptr &&
      TypeOf(entry->declared.index() != 0 ? entry->declared : entry->value) == WEFT_FILTER_STRING &&
      !std::holds_alternative<std::vector<int64_t>>(entry->value) &&
      !std::holds_alternative<std::vector<double>>(entry->value);
  std::unique_ptr<Expr> right;
  if (text) {
    right = TextExpr(random, model);
  } else if (entry != nullptr && std::holds_alternative<int64_t>(entry->value) &&
             OneIn(random, 2)) {
    right = IntExpr(static_cast<uint64_t>(std::get<int64_t>(entry->value)) + Below(random, 3) - 1);
  } else {
    right = OneIn(random, 3) ? Tree(random, model, depth - 1)
                             : IntExpr(static_cast<uint64_t>(AnyInteger(random)));
  }
  if (OneIn(random, 4)) std::swap(left, right);
  const std::string op = text && !OneIn(random, 30)
                             ? Pick(random, {"==", "!="})
                             : Pick(random, {"==", "!=", "<", "<=", ">", ">="});
  return Binary(op, std::move(left), std::move(right));
}

std::unique_ptr<Expr> Tree(Random& random, const Model& model, int depth) {
  if (depth <= 0) return Leaf(random, model);
  switch (Below(random, 12)) {
    case 0:
      return Leaf(random, model);
    case 1:
    case 2: {
      auto expr = std::make_unique<Expr>();
      expr->kind = Expr::Kind::kUnary;
      expr->op = Pick(random, {"!", "!", "-", "+", "~"});
      expr->left = Tree(random, model, depth - 1);
      return expr;
    }
    case 3:
      return Binary(Pick(random, {"&", "|", "^", "<<", ">>"}), Tree(random, model, depth - 1),
                    Tree(random, model, depth - 1));
    case 4:
      return Binary(Pick(random, {"==", "!=", "<", "<=", ">", ">="}),
                    Tree(random, model, depth - 1), Tree(random, model, depth - 1));
    case 5:
    case 6:
    case 7:
    case 8:
      return Comparison(random, model, depth);
    default:
      return Binary(Pick(random, {"&&", "||"}), Tree(random, model, depth - 1),
                    Tree(random, model, depth - 1));
  }
}

// --- text ----------------------------------------------------------------------------------------

int Precedence(const std::string& op) {
  static const std::map<std::string, int> kTable = {
      {"<<", 8}, {">>", 8}, {"&", 7},  {"^", 6},  {"|", 5},  {"<", 4}, {"<=", 4},
      {">", 4},  {">=", 4}, {"==", 3}, {"!=", 3}, {"&&", 2}, {"||", 1}};
  return kTable.at(op);
}

std::string Blank(Random& random) {
  switch (Below(random, 12)) {
    case 0:
      return "";
    case 1:
      return "\n\t ";
    case 2:
      return "/* * */";
    default:
      return " ";
  }
}

std::string WriteInteger(Random& random, uint64_t value) {
  char buffer[40];
  static constexpr std::array<const char*, 4> kForms = {"%llu", "0x%llx", "0X%llX", "0%llo"};
  std::snprintf(buffer, sizeof(buffer), kForms[Below(random, kForms.size())],
                static_cast<unsigned long long>(value));
  static constexpr std::array<const char*, 4> kSuffixes = {"u", "UL", "ll", "LLU"};
  return OneIn(random, 5) ? buffer + std::string(kSuffixes[Below(random, 4)]) : buffer;
}

std::string WriteFloat(double value) {
  char buffer[40];
  std::snprintf(buffer, sizeof(buffer), "%.17g", value);
  std::string text = buffer;
  if (text.find_first_of(".e") == std::string::npos) text += ".0";
  return text;
}

std::string WriteText(Random& random, const TextTokens& tokens) {
  const char quote = OneIn(random, 4) ? '\'' : '"';
  std::string text(1, quote);
  for (const std::optional<char>& token : tokens) {
    if (!token) {
      text += OneIn(random, 4) ? "**" : "*";
    } else if (*token == '*' || *token == '\\' || *token == quote) {
      text += '\\';
      text += *token;
    } else if (OneIn(random, 10)) {
      char buffer[8];
      std::snprintf(buffer, sizeof(buffer), "\\x%02x", static_cast<uint8_t>(*token));
      text += buffer;
    } else {
      text += *token;
    }
  }
  return text + quote;
}

// A path may have blanks around its dots and brackets.
std::string WriteName(Random& random, const Expr& expr) {
  std::string name = expr.name + (expr.index ? "[" + std::to_string(*expr.index) + "]" : "");
  if (name[0] == '$' || !OneIn(random, 4)) return name;
  std::string text;
  for (const char c : name) {
    const bool separates = c == '.' || c == '[' || c == ']';
    if (separates) text += Blank(random);
    text += c;
    if (separates && c != ']') text += Blank(random);
  }
  return text;
}

std::string WriteAt(Random& random, const Expr& expr, int least) {
  switch (expr.kind) {
    case Expr::Kind::kInt:
      return WriteInteger(random, expr.integer);
    case Expr::Kind::kFloat:
      return WriteFloat(expr.number);
    case Expr::Kind::kText:
      return WriteText(random, expr.text);
    case Expr::Kind::kName:
      return WriteName(random, expr);
    case Expr::Kind::kUnary: {
      std::string text = expr.op + Blank(random) + WriteAt(random, *expr.left, 9);
      return OneIn(random, 8) ? "(" + text + ")" : text;
    }
    case Expr::Kind::kBinary:
      break;
  }
  const int own = Precedence(expr.op);
  std::string text = WriteAt(random, *expr.left, own) + Blank(random) + expr.op + Blank(random) +
                     WriteAt(random, *expr.right, own + 1);
  return own < least || OneIn(random, 8) ? "(" + text + ")" : text;
}

}  // namespace

const ModelEntry* Model::Find(const std::string& name) const {
  for (const ModelEntry& entry : entries) {
    if (entry.name == name) return &entry;
  }
  return nullptr;
}

void MakeModel(Random& random, Model& model) {
  const size_t count = 3 + Below(random, 10);
  for (size_t i = 0; i < count; ++i) {
    const std::string name = FieldName(random, i);
    switch (Below(random, 6)) {
      case 0:
        model.entries.push_back({.name = name, .value = AnyFloat(random)});
        model.event.Number<double>(name, std::get<double>(model.entries.back().value),
                                   OneIn(random, 3) ? WEFT_FIELD_NETWORK : 0);
        break;
      case 1:
        model.entries.push_back({.name = name, .value = AddText(random, model.event, name)});
        break;
      case 2:
        // It may be an array of arrays: the last index is the element's.
        model.entries.push_back(
            AddElements(random, model.event, name + (OneIn(random, 4) ? Index(random) : "")));
        break;
      default:
        model.entries.push_back({.name = name, .value = AddAnyInteger(random, model.event, name)});
        break;
    }
  }
  AddContext(random, model, "first", false);
  AddContext(random, model, "second", false);
  AddContext(random, model, "p:first", true);
  AddContext(random, model, "p:second", true);
  model.event.Build();
}

std::unique_ptr<Expr> MakeExpr(Random& random, const Model& model) {
  return Tree(random, model, 1 + static_cast<int>(Below(random, 4)));
}

std::string Write(Random& random, const Expr& expr) { return WriteAt(random, expr, 0); }

}  // namespace weft::testing
