// SPDX-License-Identifier: Apache-2.0
// See go_functions.h. Go's cmd/internal/obj/x86 (stacksplit) and its internal ABI for amd64.
#include "node-agent/hooks/go_functions.h"

#include <algorithm>
#include <cstring>
#include <initializer_list>

#include "lib/abi/hooks.h"

namespace weft::hooks {
namespace {

// cmp 0x10(%r14), %rsp: g.stackguard0.
constexpr uint8_t kCompareStack[] = {0x49, 0x3b, 0x66, 0x10};
// lea DISP(%rsp), %r12, with a byte and with four; cmp 0x10(%r14), %r12.
constexpr uint8_t kLeaByte[] = {0x4c, 0x8d, 0x64, 0x24};
constexpr uint8_t kLeaWord[] = {0x4c, 0x8d, 0xa4, 0x24};
constexpr uint8_t kCompareR12[] = {0x4d, 0x3b, 0x66, 0x10};
constexpr uint8_t kBranchByte = 0x76;  // jbe
constexpr uint8_t kBranchWord[] = {0x0f, 0x86};

bool HasAt(Bytes code, size_t at, Bytes pattern) {
  return at <= code.size() && pattern.size() <= code.size() - at &&
         std::ranges::equal(code.subspan(at, pattern.size()), pattern);
}

// Returns the bytes of the comparison; 0: there is none.
size_t CompareBytes(Bytes code) {
  if (HasAt(code, 0, kCompareStack)) return sizeof(kCompareStack);
  size_t at = 0;
  if (HasAt(code, 0, kLeaByte)) at = sizeof(kLeaByte) + 1;
  if (HasAt(code, 0, kLeaWord)) at = sizeof(kLeaWord) + sizeof(int32_t);
  return at != 0 && HasAt(code, at, kCompareR12) ? at + sizeof(kCompareR12) : 0;
}

void Append(std::vector<uint8_t>& to, Bytes bytes) {
  to.insert(to.end(), bytes.begin(), bytes.end());
}

template <typename T>
void AppendValue(std::vector<uint8_t>& to, T value) {
  Append(to, Bytes(reinterpret_cast<const uint8_t*>(&value), sizeof(value)));
}

// Appends the distance from behind itself to `target`. False: it is too far.
bool AppendDistance(std::vector<uint8_t>& to, uint64_t begin, uint64_t target) {
  const auto distance = static_cast<int64_t>(target - (begin + to.size() + sizeof(int32_t)));
  AppendValue(to, static_cast<int32_t>(distance));
  return distance >= INT32_MIN && distance <= INT32_MAX;
}

}  // namespace

Result<GoStackCheck> FindGoStackCheck(uint64_t address, Bytes code) {
  GoStackCheck check{.compare_bytes = CompareBytes(code)};
  const size_t at = check.compare_bytes;
  if (at != 0 && at + 2 <= code.size() && code[at] == kBranchByte) {
    check.bytes = at + 2;
    check.grows = address + check.bytes + static_cast<uint64_t>(static_cast<int8_t>(code[at + 1]));
  } else if (at != 0 && at + 6 <= code.size() && HasAt(code, at, kBranchWord)) {
    int32_t distance = 0;
    std::memcpy(&distance, code.data() + at + sizeof(kBranchWord), sizeof(distance));
    check.bytes = at + sizeof(kBranchWord) + sizeof(distance);
    check.grows = address + check.bytes + static_cast<uint64_t>(int64_t{distance});
  }
  const uint64_t inside = check.grows - address;
  if (check.bytes == 0 || inside < check.bytes || inside >= code.size())
    return Fail(ErrorCode::kUnsupported,
                "it does not check its stack first (small functions that call none, assembly, Go "
                "before 1.17), so goroutines may be paused in its first bytes");
  return check;
}

Result<GoThunk> MakeGoThunk(uint64_t thunk, uint64_t hook, uint64_t enter, uint64_t address,
                            const GoStackCheck& check, Bytes code) {
  GoThunk made;
  std::vector<uint8_t>& to = made.bytes;
  Append(to, code.first(check.compare_bytes));
  Append(to, kBranchWord);
  bool reaches = AppendDistance(to, thunk, check.grows);
  for (const uint8_t byte : {0x49, 0xbc}) to.push_back(byte);  // movabs $hook, %r12
  AppendValue(to, hook);
  for (const uint8_t byte : {0xff, 0x25, 0, 0, 0, 0}) to.push_back(byte);  // jmp *0(%rip)
  AppendValue(to, enter);
  made.resume = to.size();
  to.push_back(0xe9);  // jmp
  reaches = AppendDistance(to, thunk, address + check.bytes) && reaches;
  if (!reaches)
    return Fail(ErrorCode::kUnsupported, "it is farther than 2 GiB from memory for hooks");
  return made;
}

bool IsOfGoRuntime(std::string_view symbol) {
  return std::ranges::any_of(
      std::initializer_list<std::string_view>{"runtime.", "runtime/", "internal/runtime/"},
      [&](std::string_view begin) { return symbol.starts_with(begin); });
}

}  // namespace weft::hooks
