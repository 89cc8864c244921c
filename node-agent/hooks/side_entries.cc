// SPDX-License-Identifier: Apache-2.0
// See side_entries.h. Bytes that look like a branch into a function are decoded only then: most of
// them are parts of other instructions.
#include "node-agent/hooks/side_entries.h"

#include <Zydis/Zydis.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>

#include "lib/abi/hooks.h"
#include "node-agent/hooks/limits.h"

namespace weft::hooks {
namespace {

constexpr size_t kLongestBranch = 6;
// Decoding that begins at any byte is in step with the instructions after some of them.
constexpr size_t kDecodedBefore = 4096;
constexpr size_t kPieceBytes = size_t{1} << 20;

// Returns the bytes of the branch that may begin here, without prefixes; 0: none can.
size_t BranchBytes(Bytes code, size_t at) {
  const uint8_t first = code[at];
  if (first == 0xeb || (first & 0xf0) == 0x70 || (first & 0xfc) == 0xe0) return 2;
  if (first == 0xe8 || first == 0xe9) return 5;
  if (first == 0x0f && at + 1 < code.size() && (code[at + 1] & 0xf0) == 0x80) return 6;
  return 0;
}

int64_t DistanceOf(Bytes code, size_t end, size_t bytes) {
  if (bytes == 2) return static_cast<int8_t>(code[end - 1]);
  int32_t distance = 0;
  std::memcpy(&distance, code.data() + end - sizeof(distance), sizeof(distance));
  return distance;
}

// Decodes from `from` on: is there a relative branch that ends at `end` and contains `at`?
bool IsBranch(Bytes code, size_t from, size_t at, size_t end) {
  ZydisDecoder decoder;
  ZydisDecoderInit(&decoder, ZYDIS_MACHINE_MODE_LONG_64, ZYDIS_STACK_WIDTH_64);
  ZydisDecodedInstruction instruction;
  while (from <= at) {
    const bool is_instruction = ZYAN_SUCCESS(ZydisDecoderDecodeInstruction(
        &decoder, nullptr, code.data() + from, code.size() - from, &instruction));
    const size_t next = from + (is_instruction ? instruction.length : 1);
    if (next > at) return is_instruction && next == end && instruction.raw.imm[0].is_relative != 0;
    from = next;
  }
  return false;
}

}  // namespace

Status SideEntries::Search(int file, const ElfImage& image) {
  Status status;
  uint64_t bytes = 0;
  image.EachSection([&](const ElfSection& section) {
    const GElf_Shdr& header = section.header;
    if (header.sh_type != SHT_PROGBITS || (header.sh_flags & SHF_EXECINSTR) == 0) return true;
    bytes = header.sh_size > kMaxCodeBytes - bytes ? kMaxCodeBytes + 1 : bytes + header.sh_size;
    status = bytes > kMaxCodeBytes ? Fail(ErrorCode::kLimit, "the file has too much code")
                                   : SearchSection(file, header);
    return status.has_value();
  });
  return status;
}

Status SideEntries::SearchSection(int file, const GElf_Shdr& section) {
  std::vector<uint8_t> code;
  for (uint64_t done = 0; done < section.sh_size; done += kPieceBytes) {
    const uint64_t before = std::min<uint64_t>(done, kDecodedBefore);
    const uint64_t rest = section.sh_size - done;
    code.resize(before + std::min<uint64_t>(rest, kPieceBytes + kLongestBranch));
    const ssize_t got = pread(file, code.data(), code.size(),
                              static_cast<off_t>(section.sh_offset + done - before));
    if (got < 0) return FailErrno("its code");
    code.resize(static_cast<size_t>(got));
    Look(section.sh_addr + done - before, code, before);
  }
  return {};
}

void SideEntries::Look(uint64_t address, Bytes code, size_t from) {
  for (size_t at = from; at < code.size(); ++at) {
    const size_t bytes = BranchBytes(code, at);
    if (bytes == 0 || at + bytes > code.size()) continue;
    const uint64_t end = address + at + bytes;
    Check(address, code, at, bytes,
          end + static_cast<uint64_t>(DistanceOf(code, at + bytes, bytes)));
  }
}

void SideEntries::Check(uint64_t address, Bytes code, size_t at, size_t bytes, uint64_t target) {
  const auto after = std::ranges::lower_bound(functions_, target);
  if (after == functions_.begin()) return;
  const uint64_t function = *(after - 1);
  if (target - function >= WEFT_HOOK_JUMP_BYTES || found_.contains(function)) return;
  const uint64_t start = StartBefore(address + at);
  if (start == function) return;  // the function's own branches are looked at when it is hooked
  const size_t begin = start > address ? start - address : 0;
  const size_t nearest = at > kDecodedBefore ? at - kDecodedBefore : 0;
  // Files that have so many are not decoded further: what looks like a branch is taken for one.
  if (++checks_ > kMaxBranchChecks || IsBranch(code, std::max(begin, nearest), at, at + bytes))
    found_.insert(function);
}

// Returns the symbol at or before an address; 0: there is none.
uint64_t SideEntries::StartBefore(uint64_t address) const {
  const auto after = std::ranges::upper_bound(starts_, address);
  return after == starts_.begin() ? 0 : *(after - 1);
}

}  // namespace weft::hooks
