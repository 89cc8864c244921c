// SPDX-License-Identifier: Apache-2.0
#include "node-agent/kernel/catalogue.h"

#include <cstdio>
#include <cstdlib>

#include "lib/event/match.h"
#include "node-agent/kernel/catalogue_data.h"

namespace weft::kernel {
namespace {

bool Matches(const std::string& pattern, std::string_view name) {
  return weft_glob_match(pattern.data(), static_cast<uint32_t>(pattern.size()), name.data(),
                         static_cast<uint32_t>(name.size()));
}

}  // namespace

const SyscallField* SyscallEntry::Find(std::string_view name) const {
  for (const SyscallField& field : fields)
    if (field.spec.name == name) return &field;
  return nullptr;
}

const Catalogue& Catalogue::BuiltIn() {
  // The catalogue is never destroyed: a thread may be resolving when the process ends.
  static const auto& catalogue = *new Catalogue([] {
    Result<Catalogue> parsed = Parse(CatalogueDocuments());
    if (!parsed) {
      // Our own data: every build's tests read it.
      std::fprintf(stderr, "weft: %s\n", parsed.error().message.c_str());
      std::abort();
    }
    return std::move(*parsed);
  }());
  return catalogue;
}

const TracepointEntry* Catalogue::Tracepoint(std::string_view name) const {
  if (const auto at = exact_.find(name); at != exact_.end()) return &tracepoints_[at->second];
  for (const TracepointEntry& entry : tracepoints_)
    for (const std::string& pattern : entry.names)
      if (pattern.find('*') != std::string::npos && Matches(pattern, name)) return &entry;
  return nullptr;
}

const SyscallEntry* Catalogue::Syscall(std::string_view name) const {
  const auto at = syscall_names_.find(name);
  return at == syscall_names_.end() ? nullptr : &syscalls_[at->second];
}

std::string Catalogue::FunctionOf(std::string_view table_name) const {
  const auto at = functions_.find(table_name);
  return std::string(at == functions_.end() ? table_name : std::string_view(at->second));
}

std::string Catalogue::CompatFunctionOf(std::string_view table_name) const {
  const auto at = compat_functions_.find(table_name);
  return std::string(at == compat_functions_.end() ? table_name : std::string_view(at->second));
}

const std::vector<std::string>* Catalogue::CompatParameters(std::string_view function) const {
  const auto at = compat_parameters_.find(function);
  return at == compat_parameters_.end() ? nullptr : &at->second;
}

std::string_view Catalogue::CompatStructure(std::string_view structure) const {
  const auto at = compat_structures_.find(structure);
  return at == compat_structures_.end() ? std::string_view() : std::string_view(at->second);
}

std::string Catalogue::EventName(std::string_view tracepoint) const {
  const TracepointEntry* entry = Tracepoint(tracepoint);
  if (entry == nullptr || entry->event.empty()) return std::string(tracepoint);
  std::string name = entry->event;
  if (const size_t star = name.find('*'); star != std::string::npos)
    name.replace(star, 1, tracepoint);
  return name;
}

const std::vector<FieldSpec>* Catalogue::Structure(std::string_view type) const {
  const auto at = structures_.find(type);
  return at == structures_.end() ? nullptr : &at->second;
}

const std::vector<EnumMapping>* Catalogue::Labels(std::string_view name) const {
  const auto at = labels_.find(name);
  return at == labels_.end() ? nullptr : &at->second;
}

}  // namespace weft::kernel
