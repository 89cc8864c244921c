// SPDX-License-Identifier: Apache-2.0
#include "node-agent/kernel/symbols.h"

#include <algorithm>
#include <charconv>
#include <fstream>
#include <iterator>

#include "node-agent/kernel/limits.h"

namespace weft::kernel {
namespace {

constexpr std::string_view kTextTypes = "tTwW";  // of nm(1)

// Takes the next word off a line and returns it.
std::string_view TakeWord(std::string_view* line) {
  const size_t begin = std::min(line->find_first_not_of(" \t"), line->size());
  const size_t end = std::min(line->find_first_of(" \t", begin), line->size());
  const std::string_view word = line->substr(begin, end - begin);
  line->remove_prefix(end);
  return word;
}

}  // namespace

Result<KernelSymbols> KernelSymbols::Load(const std::string& path) {
  std::ifstream file(path);
  if (!file) return FailErrno(path);
  const std::string text{std::istreambuf_iterator<char>(file), {}};
  return Parse(text);
}

Result<KernelSymbols> KernelSymbols::Parse(std::string_view text) {
  if (text.size() > kMaxSymbolBytes)
    return Fail(ErrorCode::kLimit, "too many symbols of the kernel");
  KernelSymbols symbols;
  for (size_t number = 1; !text.empty(); ++number) {
    const size_t end = text.find('\n');
    std::string_view line = text.substr(0, end);
    text.remove_prefix(end == std::string_view::npos ? text.size() : end + 1);
    const std::string_view address = TakeWord(&line);
    const std::string_view type = TakeWord(&line);
    const std::string_view name = TakeWord(&line);
    uint64_t value = 0;
    const auto [stop, error] =
        std::from_chars(address.data(), address.data() + address.size(), value, 16);
    if (error != std::errc() || stop != address.data() + address.size() || type.size() != 1 ||
        name.empty())
      return Fail(ErrorCode::kCorrupt,
                  "symbols of the kernel: line " + std::to_string(number) + " is none");
    if (kTextTypes.find(type[0]) != std::string_view::npos)
      symbols.functions_.push_back({std::string(name), value, 0});
  }
  symbols.FindEnds();
  return symbols;
}

void KernelSymbols::FindEnds() {
  std::ranges::sort(functions_, {}, &Function::address);
  // Several names of one address end together.
  uint64_t next = 0;
  for (size_t i = functions_.size(); i-- > 0;) {
    functions_[i].end = next;
    if (i > 0 && functions_[i - 1].address != functions_[i].address) next = functions_[i].address;
  }
  std::ranges::sort(functions_, {}, &Function::name);
}

Status KernelSymbols::CheckFunction(std::string_view name, uint64_t offset) const {
  const auto [begin, end] = std::ranges::equal_range(
      functions_, name, {},
      [](const Function& function) { return std::string_view(function.name); });
  const std::string quoted = "'" + std::string(name) + "'";
  if (begin == end) return Fail(ErrorCode::kNotFound, "this kernel has no function " + quoted);
  if (end - begin > 1)
    return Fail(ErrorCode::kConflict, "this kernel has " + std::to_string(end - begin) +
                                          " functions of the name " + quoted);
  if (begin->end != 0 && offset >= begin->end - begin->address)
    return Fail(ErrorCode::kInvalid, "function " + quoted + " has only " +
                                         std::to_string(begin->end - begin->address) + " bytes");
  return {};
}

}  // namespace weft::kernel
