// SPDX-License-Identifier: Apache-2.0
// What the types of arguments and return values mean for a machine with 64 bits. Thread-safety:
// pure functions.
#ifndef WEFT_LIB_API_VALUE_TYPE_H_
#define WEFT_LIB_API_VALUE_TYPE_H_

#include <array>
#include <cstdint>
#include <span>
#include <string_view>

#include "lib/api/trace.h"

namespace weft::api {

// As a Trace writes them, by enum ValueType.
inline constexpr std::array<std::string_view, 13> kValueTypes = {
    "int8",   "int16", "int32",  "int64",   "uint8",  "uint16", "uint32",
    "uint64", "float", "double", "pointer", "string", "bytes"};
// Those of one value, whose size or end the type alone tells.
inline constexpr std::span<const std::string_view> kSingleTypes =
    std::span(kValueTypes).first(kValueTypes.size() - 1);

constexpr std::string_view NameOf(ValueType type) {
  return kValueTypes[static_cast<std::size_t>(type)];
}

// Returns the size in bytes; 0: a string or bytes, which have none of their own.
constexpr uint8_t SizeOf(ValueType type) {
  switch (type) {
    case ValueType::kInt8:
    case ValueType::kUint8:
      return 1;
    case ValueType::kInt16:
    case ValueType::kUint16:
      return 2;
    case ValueType::kInt32:
    case ValueType::kUint32:
    case ValueType::kFloat:
      return 4;
    case ValueType::kInt64:
    case ValueType::kUint64:
    case ValueType::kDouble:
    case ValueType::kPointer:
      return 8;
    case ValueType::kString:
    case ValueType::kBytes:
      return 0;
  }
  return 0;
}

constexpr bool IsSigned(ValueType type) {
  return type == ValueType::kInt8 || type == ValueType::kInt16 || type == ValueType::kInt32 ||
         type == ValueType::kInt64;
}

constexpr bool IsFloat(ValueType type) {
  return type == ValueType::kFloat || type == ValueType::kDouble;
}

}  // namespace weft::api

#endif  // WEFT_LIB_API_VALUE_TYPE_H_
