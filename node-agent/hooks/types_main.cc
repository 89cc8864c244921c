// SPDX-License-Identifier: Apache-2.0
// weft-types: reads the types of functions from debug information, or with the argument "unpack"
// the symbols that a program has packed. The agent starts it for one file, which is a tenant's, and
// gives it
//
//   0   a memory file: the addresses of functions, 64-bit words, sorted; or where symbols go
//   1   where the answer goes: types (function_types.h), or "done"
//   3   the file
//   4   the file into which dwz has moved parts of it, if there is one
//
// and, as its arguments, the paths to members that are asked for; nothing else. If it ever came
// under a tenant's control, it could use these and time.
#include <fcntl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cstring>
#include <string>
#include <vector>

#include "lib/base/result.h"
#include "lib/sandbox/sandbox.h"
#include "node-agent/hooks/dwarf_types.h"
#include "node-agent/hooks/limits.h"
#include "node-agent/hooks/unpack_symbols.h"

namespace {

constexpr int kMemory = 0, kAnswer = 1, kFile = 3, kShared = 4;

weft::Status Limit(int resource, uint64_t limit) {
  const rlimit both{limit, limit};
  if (setrlimit(static_cast<__rlimit_resource>(resource), &both) != 0)
    return weft::FailErrno("setrlimit");
  return {};
}

weft::Result<std::string> Types(const std::vector<std::string>& paths, int shared) {
  struct stat st{};
  if (fstat(kMemory, &st) != 0) return weft::FailErrno("addresses");
  std::vector<uint64_t> addresses(static_cast<size_t>(st.st_size) / sizeof(uint64_t));
  const auto bytes = static_cast<ssize_t>(addresses.size() * sizeof(uint64_t));
  if (pread(kMemory, addresses.data(), static_cast<size_t>(bytes), 0) != bytes)
    return weft::FailErrno("addresses");
  WEFT_ASSIGN(const weft::hooks::TypesByAddress types,
              weft::hooks::ReadDwarfTypes(kFile, addresses, paths, shared));
  return weft::hooks::ToText(types);
}

weft::Result<std::string> Symbols() {
  WEFT_TRY(weft::hooks::UnpackSymbols(kFile, kMemory));
  return weft::hooks::kTypesDone;
}

weft::Result<std::string> Answer(const std::vector<std::string>& arguments) {
#ifndef WEFT_SANITIZED  // its shadow memory is larger
  // RLIMIT_DATA also counts what a compressed section becomes.
  WEFT_TRY(Limit(RLIMIT_DATA, weft::hooks::kTypesMemoryBytes));
  WEFT_TRY(Limit(RLIMIT_AS, weft::hooks::kTypesAddressBytes));
#endif
  WEFT_TRY(Limit(RLIMIT_CPU, static_cast<uint64_t>(weft::hooks::kTypesPatience.count())));
  WEFT_TRY(Limit(RLIMIT_CORE, 0));
  WEFT_TRY(Limit(RLIMIT_FSIZE, weft::hooks::kMaxUnpackedBytes));
  const int shared = fcntl(kShared, F_GETFD) < 0 ? -1 : kShared;
  // libdw asks for the file's path, and looks beside it for files that a file names.
  constexpr int kInVain[] = {SYS_readlink, SYS_open, SYS_openat};
  WEFT_TRY(weft::EnterSandbox(kInVain));
  const bool unpacks = arguments.size() == 1 && arguments[0] == weft::hooks::kUnpack;
  return unpacks ? Symbols() : Types(arguments, shared);
}

}  // namespace

int main(int argc, char** argv) {
  const auto answer = Answer({argv + 1, argv + argc});
  const std::string text = answer ? *answer : weft::hooks::kTypesError + answer.error().message;
  for (size_t at = 0; at < text.size();) {
    const ssize_t written = write(kAnswer, text.data() + at, text.size() - at);
    if (written <= 0) return 1;
    at += static_cast<size_t>(written);
  }
  return answer ? 0 : 1;
}
