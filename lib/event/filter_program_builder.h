// SPDX-License-Identifier: Apache-2.0
// For tests: filter programs instruction by instruction, as an encoder of its own (it shares
// nothing with the compiler), so that tests can also say what the compiler never would.
#ifndef WEFT_LIB_EVENT_FILTER_PROGRAM_BUILDER_H_
#define WEFT_LIB_EVENT_FILTER_PROGRAM_BUILDER_H_

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace weft::testing {

class ProgramBuilder {
 public:
  // The header's fields, for Header().
  uint32_t magic = 0x544c4657;
  uint16_t version = 1;
  uint16_t header_size = 32;
  uint16_t max_stack = 16;
  uint16_t reserved0 = 0;
  uint32_t features = 0;
  uint32_t reserved1 = 0;

  ProgramBuilder& Insn(uint8_t op, uint16_t arg = 0, uint64_t imm = 0, uint32_t size = 0,
                       uint8_t reserved = 0) {
    Put(insns_, op, 1);
    Put(insns_, reserved, 1);
    Put(insns_, arg, 2);
    Put(insns_, size, 4);
    Put(insns_, imm, 8);
    ++insn_count_;
    return *this;
  }

  // Adds a string or pattern with its bytes.
  ProgramBuilder& Text(uint8_t op, std::string_view text) {
    Insn(op, 0, literals_.size(), static_cast<uint32_t>(text.size()));
    literals_.insert(literals_.end(), text.begin(), text.end());
    return *this;
  }

  ProgramBuilder& Symbol(uint8_t kind, std::string_view name, uint8_t flags = 0,
                         uint64_t index = 0) {
    Put(symbols_, kind, 1);
    Put(symbols_, flags, 1);
    Put(symbols_, name.size(), 2);
    Put(symbols_, literals_.size(), 4);
    Put(symbols_, index, 8);
    literals_.insert(literals_.end(), name.begin(), name.end());
    ++symbol_count_;
    return *this;
  }

  [[nodiscard]] uint16_t insn_count() const { return insn_count_; }

  [[nodiscard]] std::vector<uint8_t> Bytes() const {
    std::vector<uint8_t> out;
    Put(out, magic, 4);
    Put(out, version, 2);
    Put(out, header_size, 2);
    Put(out, 32 + symbols_.size() + insns_.size() + literals_.size(), 4);
    Put(out, insn_count_, 2);
    Put(out, symbol_count_, 2);
    Put(out, literals_.size(), 4);
    Put(out, max_stack, 2);
    Put(out, reserved0, 2);
    Put(out, features, 4);
    Put(out, reserved1, 4);
    out.insert(out.end(), symbols_.begin(), symbols_.end());
    out.insert(out.end(), insns_.begin(), insns_.end());
    out.insert(out.end(), literals_.begin(), literals_.end());
    return out;
  }

 private:
  static void Put(std::vector<uint8_t>& out, uint64_t value, int bytes) {
    for (int i = 0; i < bytes; ++i) out.push_back(static_cast<uint8_t>(value >> (8 * i)));
  }

  std::vector<uint8_t> symbols_;
  std::vector<uint8_t> insns_;
  std::vector<uint8_t> literals_;
  uint16_t insn_count_ = 0;
  uint16_t symbol_count_ = 0;
};

}  // namespace weft::testing

#endif  // WEFT_LIB_EVENT_FILTER_PROGRAM_BUILDER_H_
