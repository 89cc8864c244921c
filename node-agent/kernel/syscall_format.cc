// SPDX-License-Identifier: Apache-2.0
#include "node-agent/kernel/syscall_format.h"

#include "lib/event/text.h"
#include "node-agent/kernel/limits.h"

namespace weft::kernel {
namespace {

constexpr std::string_view kField = "field:";
constexpr std::string_view kNumberField = "__syscall_nr";  // parameters stand behind it

std::string_view Trimmed(std::string_view text) {
  const size_t begin = text.find_first_not_of(" \t");
  if (begin == std::string_view::npos) return {};
  return text.substr(begin, text.find_last_not_of(" \t") - begin + 1);
}

// Returns "const char * filename" for "\tfield:const char * filename;\toffset:24;..."; empty: it is
// no such line.
std::string_view Declaration(std::string_view line) {
  line = Trimmed(line);
  if (!line.starts_with(kField)) return {};
  line.remove_prefix(kField.size());
  return Trimmed(line.substr(0, line.find(';')));
}

}  // namespace

bool SyscallParameter::is_text() const { return type == "const char *"; }

Result<std::vector<SyscallParameter>> ParseSyscallFormat(std::string_view text) {
  constexpr size_t kMaxParameters = 6;
  std::vector<SyscallParameter> parameters;
  bool behind_number = false;
  if (text.size() > kMaxFormatBytes)
    return Fail(ErrorCode::kLimit, "a format of tracefs is too long");
  while (!text.empty()) {
    const size_t end = text.find('\n');
    const std::string_view declaration = Declaration(text.substr(0, end));
    text.remove_prefix(end == std::string_view::npos ? text.size() : end + 1);
    const size_t name = declaration.find_last_of(" *");
    if (name == std::string_view::npos) continue;
    SyscallParameter parameter{.type = std::string(Trimmed(declaration.substr(0, name + 1))),
                               .name = std::string(declaration.substr(name + 1))};
    // Newer kernels list the text itself behind the pointers to it.
    if (parameter.type.starts_with("__data_loc")) continue;
    if (behind_number) {
      if (!IsIdentifier(parameter.name) || parameters.size() == kMaxParameters)
        return Fail(ErrorCode::kCorrupt, "a format of tracefs has an odd parameter");
      parameters.push_back(std::move(parameter));
    }
    behind_number = behind_number || declaration.ends_with(kNumberField);
  }
  if (!behind_number) return Fail(ErrorCode::kCorrupt, "a format of tracefs is of no system call");
  return parameters;
}

}  // namespace weft::kernel
