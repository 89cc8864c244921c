// SPDX-License-Identifier: Apache-2.0
// Encodes BTF by hand, for tests: independent of the reader. Types are numbered in the order of
// calls, from 1.
#ifndef WEFT_NODE_AGENT_KERNEL_BTF_BUILDER_H_
#define WEFT_NODE_AGENT_KERNEL_BTF_BUILDER_H_

#include <cstdint>
#include <cstring>
#include <initializer_list>
#include <string_view>
#include <vector>

namespace weft::kernel::testing {

class BtfBuilder {
 public:
  struct Member {
    std::string_view name;
    uint32_t type;
    uint32_t bits;  // offset; in a structure with bit-fields also size << 24
  };

  // `first_id`, `first_string`: the first numbers of a split BTF, behind those of its base.
  explicit BtfBuilder(uint32_t first_id = 1, uint32_t first_string = 0)
      : next_(first_id), first_string_(first_string) {
    if (first_string == 0) strings_.push_back(0);
  }

  uint32_t Type(uint8_t kind, std::string_view name, uint32_t size_or_ref, uint16_t count = 0,
                bool flag = false) {
    Word(Text(name));
    Word(uint32_t{kind} << 24 | count | (flag ? 1u << 31 : 0));
    Word(size_or_ref);
    return next_++;
  }
  uint32_t Int(std::string_view name, uint8_t bytes, uint8_t encoding = 0) {
    const uint32_t id = Type(1, name, bytes);
    Word(uint32_t{encoding} << 24 | bytes * 8u);
    return id;
  }
  uint32_t Pointer(uint32_t to) { return Type(2, "", to); }
  uint32_t Array(uint32_t element, uint32_t count) {
    const uint32_t id = Type(3, "", 0);
    Word(element);
    Word(element);
    Word(count);
    return id;
  }
  uint32_t Struct(std::string_view name, uint32_t size, std::initializer_list<Member> members,
                  bool bit_fields = false, uint8_t kind = 4) {
    const uint32_t id = Type(kind, name, size, static_cast<uint16_t>(members.size()), bit_fields);
    for (const Member& member : members) {
      Word(Text(member.name));
      Word(member.type);
      Word(member.bits);
    }
    return id;
  }
  // Adds a prototype with its parameters, or an enumeration with its values.
  uint32_t Pairs(uint8_t kind, std::string_view name, uint32_t size_or_ref,
                 std::initializer_list<Member> pairs, bool flag = false) {
    const uint32_t id = Type(kind, name, size_or_ref, static_cast<uint16_t>(pairs.size()), flag);
    for (const Member& pair : pairs) {
      Word(Text(pair.name));
      Word(pair.type);
    }
    return id;
  }
  uint32_t Enum64(std::string_view name, std::string_view label, uint64_t value) {
    const uint32_t id = Type(19, name, 8, 1);
    Word(Text(label));
    Word(static_cast<uint32_t>(value));
    Word(static_cast<uint32_t>(value >> 32));
    return id;
  }

  [[nodiscard]] uint32_t next() const { return next_; }
  [[nodiscard]] uint32_t strings() const { return static_cast<uint32_t>(strings_.size()); }

  [[nodiscard]] std::vector<uint8_t> Bytes() const {
    std::vector<uint8_t> out;
    const auto append = [&](uint32_t value) {
      uint8_t bytes[4];
      std::memcpy(bytes, &value, 4);
      out.insert(out.end(), bytes, bytes + 4);
    };
    append(0x0001eb9f);
    append(24);
    append(0);
    append(static_cast<uint32_t>(types_.size()));
    append(static_cast<uint32_t>(types_.size()));
    append(static_cast<uint32_t>(strings_.size()));
    out.insert(out.end(), types_.begin(), types_.end());
    out.insert(out.end(), strings_.begin(), strings_.end());
    return out;
  }

 private:
  uint32_t Text(std::string_view text) {
    if (text.empty()) return 0;
    const auto at = first_string_ + static_cast<uint32_t>(strings_.size());
    strings_.insert(strings_.end(), text.begin(), text.end());
    strings_.push_back(0);
    return at;
  }
  void Word(uint32_t value) {
    uint8_t bytes[4];
    std::memcpy(bytes, &value, 4);
    types_.insert(types_.end(), bytes, bytes + 4);
  }

  uint32_t next_;
  uint32_t first_string_;
  std::vector<uint8_t> types_;
  std::vector<uint8_t> strings_;
};

}  // namespace weft::kernel::testing

#endif  // WEFT_NODE_AGENT_KERNEL_BTF_BUILDER_H_
