// SPDX-License-Identifier: Apache-2.0
// Any bytes are what the kernel shows of a process (status, auxv), its code, and its registers.
// What is made of them has the sizes and places that it is written with.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string>

#include "node-agent/attach/annex.h"
#include "node-agent/attach/emergency_frame.h"
#include "node-agent/attach/limits.h"
#include "node-agent/attach/target_check.h"

namespace {

constexpr uint64_t kAddress = 0x400000;

void FindInCode(weft::Bytes code) {
  weft::attach::Gates gates;
  weft::attach::FindGates(kAddress, code, gates);
  for (const uint64_t gate : {gates.call, gates.restorer})
    if (gate != 0 && (gate < kAddress || gate - kAddress + 3 > code.size())) __builtin_trap();
}

void MakeAnnexOf(weft::Bytes auxiliary) {
  const weft::attach::Annex annex =
      weft::attach::MakeAnnex(kAddress, {.folder = std::string(auxiliary.begin(), auxiliary.end()),
                                         .container = "name",
                                         .auxiliary = {auxiliary.begin(), auxiliary.end()},
                                         .rseq_offset = 1});
  if (annex.bytes.size() % weft::attach::kPageBytes != 0) __builtin_trap();
  for (const auto& [name, address] : annex.symbols)
    if (address < kAddress || address - kAddress >= annex.bytes.size()) __builtin_trap();
}

void MakeFrameOf(weft::Bytes bytes) {
  weft::attach::ThreadState state;
  const size_t head = std::min(bytes.size(), sizeof(state.registers));
  std::memcpy(&state.registers, bytes.data(), head);
  state.fpu.assign(bytes.begin() + static_cast<ptrdiff_t>(head), bytes.end());
  // The kernel gives some KiB, most of them zero.
  state.fpu.resize(std::min(state.fpu.size() + 4096, weft::attach::kMaxFpuBytes));
  const auto frame = weft::attach::MakeEmergencyFrame(weft::attach::AtTheCall(state),
                                                      state.registers.rsp, kAddress);
  if (!frame) return;
  const uint64_t end = frame->address + frame->bytes.size();
  if (end > state.registers.rsp || frame->address > frame->scratch ||
      frame->scratch + weft::attach::kFrameScratchBytes > end)
    __builtin_trap();
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  if (size == 0) return 0;
  const weft::Bytes bytes(data + 1, size - 1);
  switch (data[0] % 4) {
    case 0:
      (void)weft::attach::ParseStatus({bytes.begin(), bytes.end()});
      break;
    case 1:
      FindInCode(bytes);
      break;
    case 2:
      MakeAnnexOf(bytes);
      break;
    default:
      MakeFrameOf(bytes);
  }
  return 0;
}
