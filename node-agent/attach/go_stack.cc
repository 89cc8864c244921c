// SPDX-License-Identifier: Apache-2.0
// See go_stack.h. proc(5); Go's runtime: rt0_go, mallocinit.
#include "node-agent/attach/go_stack.h"

#include <algorithm>
#include <cstdlib>
#include <fstream>
#include <sstream>
#include <string>
#include <vector>

#include "node-agent/attach/emergency_frame.h"

namespace weft::attach {
namespace {

// Go's heap, which has the stacks of goroutines, begins at the first address that is free of
// 0xc000000000, 0x1c000000000, and so on. Stacks of threads are mapped from the top down: with 32
// bits of randomness, which is the most, that begins above 0x6fff00000000.
constexpr uint64_t kHeapBegin = 0xc000000000;
constexpr uint64_t kHeapEnd = 0x600000000000;
// Without a libc, the first thread uses this much of its stack, and runs goroutines elsewhere.
constexpr uint64_t kFirstStackBytes = uint64_t{64} << 10;
constexpr int kStartStackField = 28;  // of /proc/PID/stat

// Returns the stack pointer with which the program began; 0: not known.
uint64_t FirstStackPointer(int32_t pid) {
  std::ifstream in("/proc/" + std::to_string(pid) + "/stat");
  std::string text;
  std::getline(in, text, '\0');
  const size_t name_end = text.rfind(')');
  if (name_end == std::string::npos) return 0;
  std::istringstream fields(text.substr(name_end + 1));  // behind field 2
  std::string field;
  for (int i = 2; i < kStartStackField && fields; ++i) fields >> field;
  return fields ? std::strtoull(field.c_str(), nullptr, 10) : 0;
}

}  // namespace

// The first word is the thread pointer itself with a libc. Without one Go never uses it.
bool HasLibcThreads(const hooks::ProcessMemory& memory, const user_regs_struct& registers) {
  uint64_t self = 0;
  return memory.Read(registers.fs_base, &self, sizeof(self)) && self != 0;
}

Result<uint64_t> StackForFrameOfGo(const hooks::ProcessMemory& memory,
                                   const user_regs_struct& registers) {
  const bool has_libc = HasLibcThreads(memory, registers);
  if (has_libc && registers.rsp >= kHeapBegin && registers.rsp < kHeapEnd)
    return Fail(ErrorCode::kUnsupported,
                "all of its threads run goroutines, whose stacks have no room; try again");
  if (has_libc) return registers.rsp;
  WEFT_ASSIGN(const std::vector<hooks::MappedRange> ranges, hooks::ReadRanges(memory.pid()));
  const auto first = std::ranges::find(ranges, "[stack]", &hooks::MappedRange::path);
  const uint64_t pointer = FirstStackPointer(memory.pid());
  const uint64_t top = first == ranges.end() ? 0 : first->begin + kMaxFrameBytes;
  if (top == 0 || pointer > first->end || pointer < top + kFirstStackBytes)
    return Fail(ErrorCode::kUnsupported, "its first thread's stack has no room");
  return top;
}

}  // namespace weft::attach
