// SPDX-License-Identifier: Apache-2.0
#include "lib/api/filters.h"

#include <algorithm>

#include "lib/api/context.h"
#include "lib/event/filter_compiler.h"
#include "lib/event/filter_parser.h"

namespace weft::api {
namespace {

// "" if a filter can read this context.
std::string CheckSymbol(const FilterSymbol& symbol) {
  if (symbol.kind != WEFT_FILTER_SYMBOL_CONTEXT) return "";
  if (symbol.name.starts_with("perf:")) return "a filter cannot read perf counters";
  return CheckContextName(symbol.name);
}

}  // namespace

std::optional<FilterProblem> CheckFilter(std::string_view filter) {
  auto ast = ParseFilter(filter);
  if (!ast) return FilterProblem{ast.error().offset, ast.error().message};
  for (const FilterNode& node : ast->nodes) {
    if (node.kind != FilterNodeKind::kSymbol) continue;
    std::string problem = CheckSymbol(node.symbol);
    if (!problem.empty()) return FilterProblem{node.offset, std::move(problem)};
  }
  auto program = CompileFilter(std::move(*ast));
  if (!program) return FilterProblem{program.error().offset, program.error().message};
  return std::nullopt;
}

std::vector<std::string> FieldsOfFilter(std::string_view filter) {
  std::vector<std::string> fields;
  const auto ast = ParseFilter(filter);
  if (!ast) return fields;
  for (const FilterNode& node : ast->nodes) {
    if (node.kind != FilterNodeKind::kSymbol || node.symbol.kind != WEFT_FILTER_SYMBOL_FIELD)
      continue;
    if (std::ranges::find(fields, node.symbol.name) == fields.end())
      fields.push_back(node.symbol.name);
  }
  return fields;
}

ParseOptions CheckingFilters() {
  ParseOptions options;
  options.check_filter = CheckFilter;
  return options;
}

}  // namespace weft::api
