// SPDX-License-Identifier: Apache-2.0
// See displace.h.
#include "node-agent/hooks/displace.h"

#include <Zydis/Zydis.h>

#include <algorithm>
#include <cstring>
#include <set>
#include <string>

#include "lib/abi/hooks.h"
#include "node-agent/hooks/limits.h"

namespace weft::hooks {
namespace {

constexpr size_t kJump = WEFT_HOOK_JUMP_BYTES;
constexpr const char* kTooShort = "it is shorter than the jump to a hook (5 bytes)";

struct Decoded {
  ZydisDecodedInstruction instruction;
  ZydisDecodedOperand operands[ZYDIS_MAX_OPERAND_COUNT];

  [[nodiscard]] ZydisInstructionCategory category() const { return instruction.meta.category; }
  [[nodiscard]] bool is_branch() const {
    return category() == ZYDIS_CATEGORY_COND_BR || category() == ZYDIS_CATEGORY_UNCOND_BR ||
           category() == ZYDIS_CATEGORY_CALL;
  }
  // A branch whose target is a number in the instruction.
  [[nodiscard]] bool is_relative_branch() const {
    return is_branch() && instruction.raw.imm[0].is_relative != 0;
  }
  [[nodiscard]] uint64_t target(uint64_t at) const {
    return at + instruction.length + static_cast<uint64_t>(instruction.raw.imm[0].value.s);
  }
  // The operand of memory that the instruction names; nullptr: none.
  [[nodiscard]] const ZydisDecodedOperandMem* memory() const {
    for (uint8_t i = 0; i < instruction.operand_count_visible; ++i)
      if (operands[i].type == ZYDIS_OPERAND_TYPE_MEMORY) return &operands[i].mem;
    return nullptr;
  }
  [[nodiscard]] bool is_rip_relative() const {
    const ZydisDecodedOperandMem* m = memory();
    return m != nullptr && m->base == ZYDIS_REGISTER_RIP;
  }
  [[nodiscard]] uint64_t rip_target(uint64_t at) const {
    return at + instruction.length + static_cast<uint64_t>(memory()->disp.value);
  }
};

class Decoder {
 public:
  Decoder() { ZydisDecoderInit(&decoder_, ZYDIS_MACHINE_MODE_LONG_64, ZYDIS_STACK_WIDTH_64); }
  bool Decode(Bytes code, size_t at, Decoded& out) const {
    return at < code.size() &&
           ZYAN_SUCCESS(ZydisDecoderDecodeFull(&decoder_, code.data() + at, code.size() - at,
                                               &out.instruction, out.operands));
  }

 private:
  ZydisDecoder decoder_{};
};

std::unexpected<Error> Refuse(std::string why) {
  return Fail(ErrorCode::kUnsupported, std::move(why));
}

bool FitsRelative(int64_t distance) { return distance >= INT32_MIN && distance <= INT32_MAX; }

// Are these bytes inside the jump, not at its begin?
bool IsInside(uint64_t target, uint64_t address) {
  return target > address && target < address + kJump;
}

// Returns where the instructions from `at` on end that do nothing, or trap; not far beyond `to`.
size_t EndOfPadding(Bytes code, size_t at, size_t to) {
  const Decoder decoder;
  Decoded d;
  while (at < to && decoder.Decode(code, at, d) &&
         (d.instruction.mnemonic == ZYDIS_MNEMONIC_NOP ||
          d.instruction.mnemonic == ZYDIS_MNEMONIC_INT3))
    at += d.instruction.length;
  return at;
}

// Can this instruction run elsewhere? `last`: nothing behind it is displaced; `rest_is_padding`:
// nothing that runs.
Status CheckMovable(const Decoded& d, uint64_t at, uint64_t address, bool last,
                    bool rest_is_padding) {
  switch (d.category()) {
    case ZYDIS_CATEGORY_CALL:
      if (!last) return Refuse("it returns into its first bytes from a call");
      if (!d.is_relative_branch() && !d.is_rip_relative())
        return Refuse("it calls a function by a register in its first bytes");
      break;
    case ZYDIS_CATEGORY_RET:
      return last || rest_is_padding ? Status() : Refuse(kTooShort);
    case ZYDIS_CATEGORY_UNCOND_BR:
      if (!last && !rest_is_padding) return Refuse(kTooShort);
      break;
    case ZYDIS_CATEGORY_INTERRUPT:
    case ZYDIS_CATEGORY_SYSCALL:
    case ZYDIS_CATEGORY_SYSRET:
    case ZYDIS_CATEGORY_SYSTEM:
      return Refuse("it begins with a system call or a trap");
    default:
      break;
  }
  if (d.is_relative_branch()) {
    const ZydisMnemonic m = d.instruction.mnemonic;
    const bool known =
        d.category() == ZYDIS_CATEGORY_UNCOND_BR || d.category() == ZYDIS_CATEGORY_CALL ||
        (m >= ZYDIS_MNEMONIC_JB && m <= ZYDIS_MNEMONIC_JZ && m != ZYDIS_MNEMONIC_JCXZ &&
         m != ZYDIS_MNEMONIC_JECXZ && m != ZYDIS_MNEMONIC_JRCXZ && m != ZYDIS_MNEMONIC_JKNZD &&
         m != ZYDIS_MNEMONIC_JKZD);
    if (!known || d.instruction.mnemonic == ZYDIS_MNEMONIC_XBEGIN)
      return Refuse("a branch in its first bytes has no longer form");
    const bool is_start = d.target(at) == address && d.category() != ZYDIS_CATEGORY_CALL;
    if (is_start || IsInside(d.target(at), address))
      return Refuse("it branches into its first bytes");
  }
  const ZydisDecodedOperandMem* memory = d.memory();
  if (memory != nullptr && memory->base == ZYDIS_REGISTER_EIP)
    return Refuse("it uses a 32-bit address relative to itself");
  return {};
}

// --- the whole function ---------------------------------------------------------------------

// What the search found that may lead to a place in the function.
struct Leads {
  std::set<uint64_t> tables;           // addresses that may be tables of 32-bit distances
  std::set<uint64_t> absolute_tables;  // tables of addresses
  bool jumps_by_register = false;
};

void NoteIndirectJump(const Decoded& d, Leads& leads) {
  if (d.category() != ZYDIS_CATEGORY_UNCOND_BR || d.is_relative_branch()) return;
  const ZydisDecodedOperandMem* memory = d.memory();
  if (memory == nullptr)
    leads.jumps_by_register = true;
  else if (memory->index != ZYDIS_REGISTER_NONE)
    leads.absolute_tables.insert(static_cast<uint64_t>(memory->disp.value));
}

Status CheckTables(uint64_t address, size_t size, const Leads& leads, const ReadMemory& read) {
  const auto look = [&](uint64_t table, size_t entry_bytes) -> Status {
    for (size_t i = 0; i < kMaxTableEntries; ++i) {
      uint64_t target = 0;
      if (!read(table + i * entry_bytes, &target, entry_bytes)) return {};
      if (entry_bytes == 4)
        target = table + static_cast<uint64_t>(
                             int64_t{static_cast<int32_t>(static_cast<uint32_t>(target))});
      if (target < address || target >= address + size) return {};
      if (IsInside(target, address)) return Refuse("a jump table leads into its first bytes");
    }
    return Refuse("a jump table of it has too many entries");
  };
  if (leads.jumps_by_register)
    for (const uint64_t table : leads.tables) WEFT_TRY(look(table, 4));
  for (const uint64_t table : leads.absolute_tables) WEFT_TRY(look(table, 8));
  return {};
}

Status CheckBranches(uint64_t address, Bytes code, const ReadMemory& read) {
  const Decoder decoder;
  Leads leads;
  Decoded d;
  for (size_t at = 0; at < code.size(); at += d.instruction.length) {
    if (!decoder.Decode(code, at, d)) return Refuse("its code cannot be read as instructions");
    if (d.is_relative_branch() && IsInside(d.target(address + at), address))
      return Refuse("it branches into its first bytes");
    if (d.is_rip_relative() && d.instruction.mnemonic == ZYDIS_MNEMONIC_LEA) {
      const uint64_t target = d.rip_target(address + at);
      if (IsInside(target, address)) return Refuse("it takes the address of its first bytes");
      leads.tables.insert(target);
    }
    NoteIndirectJump(d, leads);
  }
  return CheckTables(address, code.size(), leads, read);
}

// --- moving ---------------------------------------------------------------------------------

class Writer {
 public:
  explicit Writer(uint64_t to) : to_(to) {}

  [[nodiscard]] uint64_t here() const { return to_ + out.size(); }
  void Put(std::initializer_list<uint8_t> bytes) { out.insert(out.end(), bytes); }
  void PutBytes(Bytes bytes) { out.insert(out.end(), bytes.begin(), bytes.end()); }
  // Puts the 4 bytes that lead to `target` from their own end.
  Status PutDistance(uint64_t target) {
    const auto distance = static_cast<int64_t>(target - (here() + 4));
    if (!FitsRelative(distance)) return Refuse("what it refers to is farther than 2 GiB");
    const auto value = static_cast<int32_t>(distance);
    uint8_t bytes[4];
    std::memcpy(bytes, &value, sizeof(bytes));
    PutBytes(bytes);
    return {};
  }

  std::vector<uint8_t> out;

 private:
  const uint64_t to_;
};

// A call: push the return address, which lies behind it; jump to what it calls.
Status MoveCall(const Decoded& d, uint64_t at, Writer& writer) {
  const uint64_t returns_to = at + d.instruction.length;
  const bool is_relative = d.is_relative_branch();
  const uint8_t jump_bytes = is_relative ? 5 : 6;
  writer.Put({0xff, 0x35, jump_bytes, 0, 0, 0});  // push the word behind the jump
  if (is_relative) {
    writer.Put({0xe9});
    WEFT_TRY(writer.PutDistance(d.target(at)));
  } else {
    writer.Put({0xff, 0x25});
    WEFT_TRY(writer.PutDistance(d.rip_target(at)));
  }
  uint8_t word[sizeof(returns_to)];
  std::memcpy(word, &returns_to, sizeof(word));
  writer.PutBytes(word);
  return {};
}

Status Move(const Decoded& d, Bytes code, uint64_t at, Writer& writer) {
  if (d.category() == ZYDIS_CATEGORY_CALL) return MoveCall(d, at, writer);
  const size_t begin = writer.out.size();
  if (d.is_relative_branch()) {
    if (d.category() == ZYDIS_CATEGORY_UNCOND_BR) {
      writer.Put({0xe9});
    } else {
      // 7x is the short form, 0f 8x the long one.
      writer.Put({0x0f, static_cast<uint8_t>(0x80 | (d.instruction.opcode & 0x0f))});
    }
    return writer.PutDistance(d.target(at));
  }
  writer.PutBytes(code.first(d.instruction.length));
  if (!d.is_rip_relative()) return {};
  const int64_t moved =
      static_cast<int64_t>(at) - static_cast<int64_t>(writer.here() - d.instruction.length);
  const int64_t distance = d.memory()->disp.value + moved;
  if (!FitsRelative(distance) || d.instruction.raw.disp.size != 32)
    return Refuse("what it refers to is farther than 2 GiB");
  const auto value = static_cast<int32_t>(distance);
  std::memcpy(writer.out.data() + begin + d.instruction.raw.disp.offset, &value, sizeof(value));
  return {};
}

}  // namespace

Status CheckEntry(uint64_t address, Bytes code, const ReadMemory& read) {
  if (code.size() < kJump) return Refuse(kTooShort);
  // One write must replace all bytes at once, whenever the agent dies.
  if (address / 4096 != (address + kJump - 1) / 4096)
    return Refuse("its first 5 bytes lie in two pages");
  return CheckBranches(address, code, read);
}

Result<std::vector<uint8_t>> Displace(uint64_t address, Bytes code, uint64_t to) {
  const Decoder decoder;
  Writer writer(to);
  Decoded d;
  size_t at = 0;
  bool goes_on = true;
  while (at < kJump) {
    if (!decoder.Decode(code, at, d)) return Refuse("its code cannot be read as instructions");
    const size_t next = at + d.instruction.length;
    const bool last = next >= kJump;
    WEFT_TRY(CheckMovable(d, address + at, address, last,
                          !last && EndOfPadding(code, next, kJump) >= kJump));
    WEFT_TRY(Move(d, code.subspan(at), address + at, writer));
    at = next;
    goes_on = d.category() != ZYDIS_CATEGORY_RET && d.category() != ZYDIS_CATEGORY_UNCOND_BR &&
              d.category() != ZYDIS_CATEGORY_CALL;
    if (!goes_on) break;
  }
  if (goes_on) {
    writer.Put({0xe9});
    WEFT_TRY(writer.PutDistance(address + at));
  }
  return std::move(writer.out);
}

bool CallsInFirstBytes(Bytes code) {
  const Decoder decoder;
  Decoded d;
  for (size_t at = 0; at < kJump && decoder.Decode(code, at, d); at += d.instruction.length)
    if (d.category() == ZYDIS_CATEGORY_CALL) return true;
  return false;
}

bool IsPadding(Bytes code) {
  return !code.empty() && EndOfPadding(code, 0, code.size()) == code.size();
}

Result<std::vector<uint8_t>> JumpFrom(uint64_t from, uint64_t to) {
  Writer writer(from);
  writer.Put({0xe9});
  if (!writer.PutDistance(to)) return Refuse("it is farther than 2 GiB from memory for hooks");
  writer.Put({0, 0, 0});
  return std::move(writer.out);
}

}  // namespace weft::hooks
