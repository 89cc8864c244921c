// SPDX-License-Identifier: Apache-2.0
// See emergency_frame.h. sigreturn(2); Linux, arch/x86: signal frames and their XSAVE area.
#include "node-agent/attach/emergency_frame.h"

#include <cpuid.h>
#include <sys/syscall.h>
#include <ucontext.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstring>

#include "node-agent/attach/limits.h"

namespace weft::attach {
namespace {

constexpr uint64_t kRedZoneBytes = 128;
// uc_flags: there is an XSAVE area; ss is valid and is to be restored.
constexpr uint64_t kFrameFlags = 1 | 2 | 4;
// The kernel's words in an XSAVE area, behind the registers of FXSAVE.
constexpr size_t kSoftwareOffset = 464;
constexpr size_t kHeaderOffset = 512;
constexpr size_t kSmallestArea = kHeaderOffset + 64;
constexpr uint32_t kMagicBegin = 0x46505853;
constexpr uint32_t kMagicEnd = 0x46505845;
constexpr uint64_t kLegacyFeatures = 3;
// Results of system calls that the kernel makes again.
constexpr int64_t kRestarts[] = {-512, -513, -514, -516};

struct SoftwareBytes {
  uint32_t magic;
  uint32_t extended_size;
  uint64_t features;
  uint32_t size;
  uint32_t padding[7];
};
static_assert(sizeof(SoftwareBytes) == 48);

// What the kernel reads of a frame at rt_sigreturn.
struct Frame {
  uint64_t returns_to;
  ucontext_t context;
};

// Returns the bytes of an XSAVE area up to the last of these features; 0: one is not known.
size_t AreaBytes(uint64_t features) {
  size_t bytes = kSmallestArea;
  for (unsigned i = 2; i < 63; ++i) {
    if ((features >> i & 1) == 0) continue;
    unsigned size = 0, offset = 0, ecx = 0, edx = 0;
    if (__get_cpuid_count(0xd, i, &size, &offset, &ecx, &edx) == 0 || size == 0) return 0;
    bytes = std::max<size_t>(bytes, size_t{offset} + size);
  }
  return bytes;
}

// Returns the XSAVE area as it stands in a frame.
Result<std::vector<uint8_t>> MakeArea(const std::vector<uint8_t>& fpu) {
  const auto unknown = Fail(ErrorCode::kUnsupported, "this processor's registers are not known");
  uint64_t features = 0;
  if (fpu.size() < kSmallestArea) return unknown;
  std::memcpy(&features, fpu.data() + kHeaderOffset, sizeof(features));
  features |= kLegacyFeatures;
  const size_t bytes = AreaBytes(features);
  if (bytes == 0 || bytes > fpu.size()) return unknown;
  std::vector<uint8_t> area(fpu.begin(), fpu.begin() + static_cast<ptrdiff_t>(bytes));
  const SoftwareBytes software{.magic = kMagicBegin,
                               .extended_size = static_cast<uint32_t>(bytes + sizeof(kMagicEnd)),
                               .features = features,
                               .size = static_cast<uint32_t>(bytes),
                               .padding = {}};
  std::memcpy(area.data() + kSoftwareOffset, &software, sizeof(software));
  const auto* end = reinterpret_cast<const uint8_t*>(&kMagicEnd);
  area.insert(area.end(), end, end + sizeof(kMagicEnd));
  return area;
}

ucontext_t MakeContext(const ThreadState& state, uint64_t area) {
  ucontext_t context{};
  const user_regs_struct& r = state.registers;
  context.uc_flags = kFrameFlags;
  // The kernel refuses an alternate stack of 0 bytes, and leaves the thread its own.
  context.uc_stack = {};
  auto& to = context.uc_mcontext.gregs;
  const std::pair<int, uint64_t> values[] = {
      {REG_R8, r.r8},   {REG_R9, r.r9},   {REG_R10, r.r10},   {REG_R11, r.r11}, {REG_R12, r.r12},
      {REG_R13, r.r13}, {REG_R14, r.r14}, {REG_R15, r.r15},   {REG_RDI, r.rdi}, {REG_RSI, r.rsi},
      {REG_RBP, r.rbp}, {REG_RBX, r.rbx}, {REG_RDX, r.rdx},   {REG_RAX, r.rax}, {REG_RCX, r.rcx},
      {REG_RSP, r.rsp}, {REG_RIP, r.rip}, {REG_EFL, r.eflags}};
  for (const auto& [number, value] : values) to[number] = static_cast<greg_t>(value);
  to[REG_CSGSFS] = static_cast<greg_t>((r.cs & 0xffff) | (r.gs & 0xffff) << 16 |
                                       (r.fs & 0xffff) << 32 | (r.ss & 0xffff) << 48);
  context.uc_mcontext.fpregs = reinterpret_cast<fpregset_t>(area);
  std::memcpy(&context.uc_sigmask, &state.blocked, sizeof(state.blocked));
  return context;
}

}  // namespace

ThreadState AtTheCall(ThreadState state) {
  user_regs_struct& r = state.registers;
  if (static_cast<int64_t>(r.orig_rax) >= 0 &&
      std::ranges::find(kRestarts, static_cast<int64_t>(r.rax)) != std::end(kRestarts)) {
    r.rax = r.orig_rax;
    r.rip -= 2;
  }
  r.orig_rax = UINT64_MAX;
  return state;
}

Result<EmergencyFrame> MakeEmergencyFrame(const ThreadState& state, uint64_t stack,
                                          uint64_t restorer) {
  WEFT_ASSIGN(const std::vector<uint8_t> area, MakeArea(state.fpu));
  EmergencyFrame frame;
  const uint64_t top = (stack - kRedZoneBytes) & ~uint64_t{63};
  frame.scratch = top - kFrameScratchBytes;
  const uint64_t area_at = (frame.scratch - area.size()) & ~uint64_t{63};
  frame.address = ((area_at - sizeof(Frame)) & ~uint64_t{15}) - 8;
  if (stack < kMaxFrameBytes || frame.address > top)
    return Fail(ErrorCode::kUnsupported, "a thread has no stack");
  const Frame head{.returns_to = restorer, .context = MakeContext(state, area_at)};
  frame.bytes.resize(top - frame.address);
  std::memcpy(frame.bytes.data(), &head, sizeof(head));
  std::memcpy(frame.bytes.data() + (area_at - frame.address), area.data(), area.size());
  return frame;
}

void FindGates(uint64_t address, Bytes code, Gates& gates) {
  constexpr std::array<uint8_t, 3> kCall{0x0f, 0x05, 0xc3};
  constexpr std::array<uint8_t, 9> kRestorer{0x48, 0xc7, 0xc0, 15, 0, 0, 0, 0x0f, 0x05};
  constexpr std::array<uint8_t, 7> kShortRestorer{0xb8, 15, 0, 0, 0, 0x0f, 0x05};
  const auto find = [&](const auto& pattern) -> uint64_t {
    const auto at = std::ranges::search(code, pattern);
    return at.empty() ? 0 : address + static_cast<uint64_t>(at.begin() - code.begin());
  };
  if (gates.call == 0) gates.call = find(kCall);
  if (gates.restorer == 0) gates.restorer = find(kRestorer);
  if (gates.restorer == 0) gates.restorer = find(kShortRestorer);
}

}  // namespace weft::attach
