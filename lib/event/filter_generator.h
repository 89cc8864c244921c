// SPDX-License-Identifier: Apache-2.0
// For the differential test: random events and random filter expressions over them, as trees of
// their own and as text. Shares nothing with the parser.
#ifndef WEFT_LIB_EVENT_FILTER_GENERATOR_H_
#define WEFT_LIB_EVENT_FILTER_GENERATOR_H_

#include <cstdint>
#include <memory>
#include <optional>
#include <random>
#include <string>
#include <variant>
#include <vector>

#include "lib/event/filter_test_event.h"

namespace weft::testing {

// Bytes to be matched one by one; std::nullopt means a star.
using TextTokens = std::vector<std::optional<char>>;

struct Expr {
  enum class Kind { kInt, kFloat, kText, kName, kUnary, kBinary };
  Kind kind = Kind::kInt;
  uint64_t integer = 0;
  double number = 0;
  TextTokens text;
  std::string name;  // "a", "a.b[1].c", "$ctx.x", "$app.p:n"
  std::optional<uint64_t> index;
  std::string op;
  std::unique_ptr<Expr> left;  // also the operand of kUnary
  std::unique_ptr<Expr> right;
};

// The value of a name of the event.
using ModelValue = std::variant<std::monostate, int64_t, double, std::string, std::vector<int64_t>,
                                std::vector<double>>;

struct ModelEntry {
  std::string name;
  ModelValue value;
  bool is_dynamic = false;   // an application context: its type is not known in advance
  bool is_sequence = false;  // an index beyond it is found out only at run time
  ModelValue declared;       // a context's type where its value is missing
};

struct Model {
  std::vector<ModelEntry> entries;
  TestEvent event;
  TestContexts contexts;

  [[nodiscard]] const ModelEntry* Find(const std::string& name) const;
};

using Random = std::mt19937_64;

void MakeModel(Random& random, Model& model);
std::unique_ptr<Expr> MakeExpr(Random& random, const Model& model);

// Writes a text for the tree, at random with parentheses, blanks and comments that are not needed.
std::string Write(Random& random, const Expr& expr);

}  // namespace weft::testing

#endif  // WEFT_LIB_EVENT_FILTER_GENERATOR_H_
