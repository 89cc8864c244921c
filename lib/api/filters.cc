// SPDX-License-Identifier: Apache-2.0
#include "lib/api/filters.h"

#include <algorithm>
#include <cerrno>

#include "lib/abi/context.h"
#include "lib/api/context.h"
#include "lib/api/function_fields.h"
#include "lib/api/limits.h"
#include "lib/event/filter_compiler.h"
#include "lib/event/filter_parser.h"

namespace weft::api {
namespace {

static_assert(limits::kFilter == kMaxFilterText);

constexpr std::string_view kContextPrefix = "$ctx.";

FilterProblem Problem(std::string_view filter, const FilterError& error) {
  return {.offset = error.offset,
          .message = error.message,
          .place = error.Place(filter),
          .excerpt = error.Excerpt(filter)};
}

// Returns "" if a filter can read this context, else what is wrong.
std::string CheckSymbol(const FilterSymbol& symbol) {
  if (symbol.kind != WEFT_FILTER_SYMBOL_CONTEXT) return "";
  if (symbol.name.starts_with("perf:")) return "a filter cannot read perf counters";
  return CheckContextName(symbol.name);
}

// An application context has the type that it gets at run time.
int FindContext(const weft_filter_contexts*, uint8_t kind, const char* name, uint32_t name_size,
                uint8_t* type) {
  const weft_context_info* info =
      kind == WEFT_FILTER_SYMBOL_CONTEXT ? weft_context_by_name(name, name_size) : nullptr;
  const bool is_text = info != nullptr && info->type == WEFT_CONTEXT_TEXT;
  *type = info == nullptr ? WEFT_FILTER_ANY : is_text ? WEFT_FILTER_STRING : WEFT_FILTER_INT;
  return 0;
}

}  // namespace

std::optional<FilterProblem> CheckFilter(std::string_view filter) {
  auto ast = ParseFilter(filter);
  if (!ast) return Problem(filter, ast.error());
  for (const FilterNode& node : ast->nodes) {
    if (node.kind != FilterNodeKind::kSymbol) continue;
    std::string problem = CheckSymbol(node.symbol);
    if (!problem.empty())
      return Problem(filter,
                     {.message = std::move(problem), .offset = node.offset, .size = node.size});
  }
  auto program = CompileFilter(std::move(*ast));
  if (!program) return Problem(filter, program.error());
  return std::nullopt;
}

std::vector<std::string> NamesInFilter(std::string_view filter) {
  std::vector<std::string> names;
  const auto ast = ParseFilter(filter);
  if (!ast) return names;
  for (const FilterNode& node : ast->nodes) {
    if (node.kind != FilterNodeKind::kSymbol) continue;
    std::string name = node.symbol.name;
    if (node.symbol.kind == WEFT_FILTER_SYMBOL_CONTEXT) name.insert(0, kContextPrefix);
    if (node.symbol.kind == WEFT_FILTER_SYMBOL_APP) name.insert(0, kAppPrefix);
    if (std::ranges::find(names, name) == names.end()) names.push_back(std::move(name));
  }
  return names;
}

std::vector<std::string> FieldsOfFilter(std::string_view filter) {
  std::vector<std::string> fields = NamesInFilter(filter);
  std::erase_if(fields, [](const std::string& name) { return name.starts_with('$'); });
  return fields;
}

std::string WhyNotFiltered(const FunctionRule& rule, FunctionMoment moment) {
  const std::string why = WhyNotNamed(rule, moment, NamesInFilter(rule.filter));
  return why.empty() ? "" : "its filter " + why;
}

Result<FilterFit> FitFilter(const std::vector<std::uint8_t>& program,
                            const std::vector<std::uint8_t>& description,
                            const weft_filter_contexts& contexts) {
  weft_description_layout layout{};
  const auto size = static_cast<uint32_t>(description.size());
  if (weft_description_check(description.data(), size, &layout) != 0)
    return Fail(ErrorCode::kCorrupt, "damaged event description");
  std::vector<uint64_t> linked(weft_filter_link_bound(program.data()) / sizeof(uint64_t) + 1);
  const int answer = weft_filter_link(program.data(), static_cast<uint32_t>(program.size()),
                                      description.data(), &layout, &contexts, linked.data(),
                                      static_cast<uint32_t>(linked.size() * sizeof(uint64_t)));
  if (answer == -ENOENT) return FilterFit::kAbsent;
  if (answer == -EPROTOTYPE) return FilterFit::kTypes;
  if (answer < 0)
    return Fail(ErrorCode::kUnsupported, "this filter cannot be used with this event");
  return FilterFit::kFits;
}

EventFilter::EventFilter(std::string_view text)
    : fields_(FieldsOfFilter(text)),
      program_(CompileFilter(text).value_or(std::vector<std::uint8_t>())) {}

FilterFit EventFilter::Fit(const EventDescription& event) const {
  const auto description = event.Encode();
  return description ? Fit(*description) : FilterFit::kFits;
}

FilterFit EventFilter::Fit(const std::vector<std::uint8_t>& description) const {
  constexpr weft_filter_contexts kContexts{.find = FindContext};
  if (program_.empty()) return FilterFit::kFits;
  return FitFilter(program_, description, kContexts).value_or(FilterFit::kFits);
}

ParseOptions CheckingFilters() {
  ParseOptions options;
  options.check_filter = CheckFilter;
  options.names_in_filter = NamesInFilter;
  return options;
}

}  // namespace weft::api
