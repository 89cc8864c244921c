// SPDX-License-Identifier: Apache-2.0
// The schema's scalar types (strings, numbers, enumerations, quantities, durations) and
// maps of strings. Internal to lib/api. Thread-safety: const objects, usable from all
// threads.
#ifndef WEFT_LIB_API_SCALAR_TYPES_H_
#define WEFT_LIB_API_SCALAR_TYPES_H_

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "lib/api/nearest.h"
#include "lib/api/schema.h"

namespace weft::api {

struct StringRules {
  std::string type_name = "string";
  std::size_t max = 0;                                    // bytes
  std::string (*check)(std::string_view text) = nullptr;  // of names.h: "" or what is wrong
  std::string pattern;                                    // RE2, for the CRD: the same, or looser
  // The values that the pattern allows, for people: "must be ...". The API server shows this in
  // place of the pattern, which must not match the empty string.
  std::string allowed;
  // A rule in CEL that is used in place of the pattern: a looser one, where a Trace may have so
  // many texts that the API server refuses the CRD for the estimated cost of the pattern.
  std::string cheap_rule;
  std::string format;  // openAPI's, "": none
  bool may_be_empty = false;
};
TypePtr<std::string> String(StringRules rules);

// A filter. It is like String, and calls the caller's ParseOptions::check_filter with the place in
// the file.
TypePtr<std::string> FilterString();

TypePtr<bool> Bool();

// A number in [min, max]. It is instantiated for int64_t and uint32_t.
template <typename T>
TypePtr<T> Int(std::int64_t min, std::int64_t max);
// Like Int; the number must also be a power of two.
TypePtr<std::uint32_t> PowerOfTwo(std::uint32_t min, std::uint32_t max);

// A number of bytes in [min, max], such as 10Gi.
TypePtr<std::uint64_t> Quantity(std::uint64_t min, std::uint64_t max);
// Like Quantity; the number of bytes must be a power of two.
TypePtr<std::uint64_t> PowerOfTwoQuantity(std::uint64_t min, std::uint64_t max);

TypePtr<std::chrono::nanoseconds> Duration(std::chrono::nanoseconds min,
                                           std::chrono::nanoseconds max);

struct StringMapRules {
  std::size_t max_entries = 0;  // 0: only what a document may have
  std::size_t max_bytes = 0;    // keys and values; 0: the same
  std::string (*check_key)(std::string_view text) = nullptr;
};
TypePtr<std::map<std::string, std::string>> StringMap(StringMapRules rules,
                                                      TypePtr<std::string> value);

// Returns the index of the name that `value` is; -1, with a diagnostic, if it is none of them.
int ReadEnum(const Value& value, std::span<const std::string_view> names, Reader& reader);
Value EnumOpenApi(std::span<const std::string_view> names);
std::string EnumText(std::span<const std::string_view> names);

// E's values are 0, 1, ... in the order of `names`, which must live for ever.
template <typename E>
class EnumType final : public Type<E> {
 public:
  explicit EnumType(std::span<const std::string_view> names) : names_(names) {}
  void Read(const Value& value, E& out, Reader& reader) const override {
    const int index = ReadEnum(value, names_, reader);
    if (index >= 0) out = static_cast<E>(index);
  }
  Value Write(const E& value) const override {
    return Value::String(names_[static_cast<std::size_t>(value)]);
  }
  Value OpenApi() const override { return EnumOpenApi(names_); }
  std::string TypeName() const override { return "string"; }
  std::string LimitText() const override { return EnumText(names_); }

 private:
  std::span<const std::string_view> names_;
};

template <typename E>
TypePtr<E> Enum(std::span<const std::string_view> names) {
  return std::make_shared<EnumType<E>>(names);
}

}  // namespace weft::api

#endif  // WEFT_LIB_API_SCALAR_TYPES_H_
