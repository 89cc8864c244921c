// SPDX-License-Identifier: Apache-2.0
// Structs with a list of fields as bytes, and back: the fields in their order, without names or
// padding. Numbers, enums and arrays of numbers are little-endian in their own size; texts and
// lists are a u64 with their length, then their entries. A file that stores the bytes guards them
// with a version.
// Thread-safety: one thread per object.
#ifndef WEFT_LIB_FIELDS_BINARY_H_
#define WEFT_LIB_FIELDS_BINARY_H_

#include <cstdint>
#include <string>
#include <type_traits>
#include <vector>

#include "lib/base/bytes.h"
#include "lib/fields/fields.h"

namespace weft::fields {

class BinaryWriter {
 public:
  // Appends to `out`.
  explicit BinaryWriter(std::vector<uint8_t>& out) : out_(&out) {}

  template <typename T>
  void Value(const T& value) {
    if constexpr (HasFields<T>) {
      ForEachField(value, [this](const auto&, const auto& member) { this->Value(member); });
    } else if constexpr (std::is_same_v<T, std::string>) {
      Value(static_cast<uint64_t>(value.size()));
      out_->insert(out_->end(), value.begin(), value.end());
    } else if constexpr (std::is_trivially_copyable_v<T>) {
      static_assert(std::has_unique_object_representations_v<T>, "padding would be written");
      const auto* bytes = reinterpret_cast<const uint8_t*>(&value);
      out_->insert(out_->end(), bytes, bytes + sizeof(value));
    } else {
      Value(static_cast<uint64_t>(value.size()));
      for (const auto& entry : value) Value(entry);
    }
  }

 private:
  std::vector<uint8_t>* out_;
};

class BinaryReader {
 public:
  explicit BinaryReader(Bytes bytes) : in_(bytes) {}

  template <typename T>
  void Value(T& value) {
    if constexpr (HasFields<T>) {
      ForEachField(value, [this](const auto&, auto& member) { this->Value(member); });
    } else if constexpr (std::is_same_v<T, std::string>) {
      value = in_.ReadString(in_.Read<uint64_t>());
    } else if constexpr (std::is_trivially_copyable_v<T>) {
      value = in_.Read<T>();
    } else {
      const auto count = in_.Read<uint64_t>();
      // The list grows as entries are really there: a false count ends at the end of the bytes.
      for (uint64_t i = 0; i < count && in_.ok(); i++) Value(value.emplace_back());
    }
  }

  [[nodiscard]] bool ok() const { return in_.ok(); }
  [[nodiscard]] bool more() const { return in_.ok() && in_.remaining() > 0; }

 private:
  ByteReader in_;
};

}  // namespace weft::fields

#endif  // WEFT_LIB_FIELDS_BINARY_H_
