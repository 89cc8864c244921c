// SPDX-License-Identifier: Apache-2.0
// See list.h.
#include "cli/list.h"

#include <algorithm>
#include <cstdio>
#include <nlohmann/json.hpp>

#include "cli/exit_status.h"
#include "cli/number.h"
#include "cli/offered.h"
#include "lib/api/log_level.h"

namespace weft::cli {
namespace {

std::string LogLevelText(int32_t level) {
  const auto names = api::LogLevelNames();
  if (level < 0 || static_cast<size_t>(level) >= names.size()) return std::to_string(level);
  return std::string(names[static_cast<size_t>(level)]) + " (" + std::to_string(level) + ")";
}

std::string ElementType(const FieldDescription& field) {
  const std::string bits = std::to_string(8 * field.elem_size);
  if (field.blob) return "blob";
  if (field.is_text()) return "char";
  if (field.is_pointer()) return "pointer";
  if (field.kind == FieldKind::kFloat || field.has_float_elements()) return "float" + bits;
  return (field.is_signed() ? "int" : "uint") + bits;
}

std::string TypeText(const FieldDescription& field) {
  switch (field.kind) {
    case FieldKind::kString:
      return "string";
    case FieldKind::kArray:
      return ElementType(field) + "[" + std::to_string(field.count) + "]";
    case FieldKind::kSequence:
      return ElementType(field) + "[]";
    case FieldKind::kEnum:
      return "enum " + ElementType(field);
    case FieldKind::kInteger:
    case FieldKind::kFloat:
      break;
  }
  return ElementType(field);
}

void Print(const Offered& offered, bool fields) {
  for (const OfferedBy& file : offered.files) {
    std::printf("%s:\n", file.file.c_str());
    for (const EventDescription& event : file.events) {
      std::printf("  %s  loglevel %s\n", event.name.c_str(), LogLevelText(event.loglevel).c_str());
      if (!fields) continue;
      for (const FieldDescription& field : event.fields)
        std::printf("    %s %s%s\n", TypeText(field).c_str(), field.name.c_str(),
                    field.is_nowrite() ? " (for filters only)" : "");
    }
  }
}

void PrintJson(const Offered& offered) {
  nlohmann::json json = nlohmann::json::array();
  for (const OfferedBy& file : offered.files)
    for (const EventDescription& event : file.events) {
      nlohmann::json fields = nlohmann::json::array();
      for (const FieldDescription& field : event.fields) {
        fields.push_back(
            {{"name", field.name}, {"type", TypeText(field)}, {"nowrite", field.is_nowrite()}});
        if (field.blob) fields.back()["mediaType"] = field.media_type;
      }
      json.push_back({{"file", file.file},
                      {"name", event.name},
                      {"loglevel", event.loglevel},
                      {"uri", event.uri},
                      {"fields", fields}});
    }
  std::printf("%s\n", json.dump(2, ' ', false, nlohmann::json::error_handler_t::replace).c_str());
}

Result<Offered> Look(const std::string& target) {
  if (const auto pid = Number<int32_t>(target); pid && *pid > 0) return OfferedByProcess(*pid);
  WEFT_ASSIGN(const std::string program, FindProgram(target));
  return OfferedByProgram(program);
}

}  // namespace

int RunList(const ListOptions& options) {
  auto offered = Look(options.target);
  if (!offered) {
    std::fprintf(stderr, "weft: %s\n", offered.error().message.c_str());
    return kExitBadInput;
  }
  // Sorts by object, then by name. An event that several objects have is listed at each.
  for (OfferedBy& file : offered->files)
    std::ranges::sort(file.events, {}, &EventDescription::name);
  if (options.json)
    PrintJson(*offered);
  else
    Print(*offered, options.fields);
  if (offered->is_static)
    std::fprintf(stderr, "weft: %s is statically linked: it cannot be recorded\n",
                 offered->program.c_str());
  else if (offered->files.empty())
    std::fprintf(stderr, "weft: %s offers no tracepoints\n", options.target.c_str());
  return kExitOk;
}

}  // namespace weft::cli
