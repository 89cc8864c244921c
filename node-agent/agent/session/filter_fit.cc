// SPDX-License-Identifier: Apache-2.0
// See filter_fit.h.
#include "node-agent/agent/session/filter_fit.h"

#include <cerrno>
#include <cstring>
#include <string_view>

#include "lib/abi/context.h"
#include "lib/api/filters.h"
#include "lib/api/nearest.h"
#include "lib/event/description.h"
#include "node-agent/agent/session/compile.h"

namespace weft::agent {
namespace {

int FindContext(const weft_filter_contexts*, uint8_t kind, const char* name, uint32_t name_size,
                uint8_t* type) {
  if (kind != WEFT_FILTER_SYMBOL_CONTEXT) return -ENOENT;
  const weft_context_info* info = weft_context_by_name(name, name_size);
  if (info == nullptr || (info->domains & WEFT_CONTEXT_IN_KERNEL) == 0 ||
      info->type == WEFT_CONTEXT_ADDRESSES)
    return -ENOENT;
  *type = info->type == WEFT_CONTEXT_TEXT ? WEFT_FILTER_STRING : WEFT_FILTER_INT;
  return info->id;
}

struct Symbol {
  uint8_t kind = 0;
  std::string name;
};

// Returns the symbols of a program that was validated; none of an empty one.
std::vector<Symbol> SymbolsOf(const std::vector<uint8_t>& program) {
  if (program.empty()) return {};
  weft_filter_program head{};
  std::memcpy(&head, program.data(), sizeof(head));
  const size_t literals = head.header_size + head.symbol_count * sizeof(weft_filter_symbol) +
                          head.insn_count * sizeof(weft_filter_insn);
  std::vector<Symbol> symbols;
  for (size_t i = 0; i < head.symbol_count; ++i) {
    weft_filter_symbol symbol{};
    std::memcpy(&symbol, program.data() + head.header_size + i * sizeof(symbol), sizeof(symbol));
    const auto* name =
        reinterpret_cast<const char*>(program.data()) + literals + symbol.name_offset;
    symbols.push_back({symbol.kind, std::string(name, symbol.name_size)});
  }
  return symbols;
}

std::string FieldsOf(const EventDescription& event, std::string_view name) {
  std::vector<std::string_view> fields;
  fields.reserve(event.fields.size());
  for (const FieldDescription& field : event.fields) fields.push_back(field.name);
  return fields.empty() ? "" : api::DidYouMean(name, fields);
}

FilterFit WhatIsMissing(const std::vector<uint8_t>& program, const EventDescription& event) {
  std::string all;
  for (const Symbol& symbol : SymbolsOf(program)) {
    const std::string quoted = "\"" + symbol.name + "\"";
    if (symbol.kind == WEFT_FILTER_SYMBOL_FIELD) {
      if (event.FindField(symbol.name) == nullptr)
        return {"has no field " + quoted, FieldsOf(event, symbol.name)};
      all += (all.empty() ? "" : ", ") + quoted;
      continue;
    }
    uint8_t type = 0;
    const bool is_known = FindContext(nullptr, symbol.kind, symbol.name.data(),
                                      static_cast<uint32_t>(symbol.name.size()), &type) >= 0;
    if (!is_known) return {"has no context " + quoted, ""};
    all += (all.empty() ? "" : ", ") + quoted;
  }
  return {"is of other types in " + all, ""};
}

}  // namespace

std::vector<std::string> ContextsOf(const std::vector<uint8_t>& program) {
  std::vector<std::string> contexts;
  for (Symbol& symbol : SymbolsOf(program))
    if (symbol.kind == WEFT_FILTER_SYMBOL_CONTEXT) contexts.push_back(std::move(symbol.name));
  return contexts;
}

Result<FilterFit> FitFilter(const std::vector<uint8_t>& program,
                            const std::vector<uint8_t>& description) {
  if (program.empty()) return FilterFit{};
  constexpr weft_filter_contexts kContexts{.find = FindContext};
  WEFT_ASSIGN(const api::FilterFit fit, api::FitFilter(program, description, kContexts));
  if (fit == api::FilterFit::kFits) return FilterFit{};
  WEFT_ASSIGN(const EventDescription event, EventDescription::Parse(description));
  return WhatIsMissing(program, event);
}

}  // namespace weft::agent
