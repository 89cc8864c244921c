// SPDX-License-Identifier: Apache-2.0
// The list of a struct's fields, which every walk over the struct goes by: JSON, journal, sums,
// metrics. A struct names its fields once, as a static function beside them:
//
//     struct Gap {
//       uint64_t first = 0;
//       uint64_t last = 0;
//       static constexpr auto Fields() {
//         return std::tuple(Field("first", &Gap::first), Field("last", &Gap::last));
//       }
//     };
//
// A struct of another library gets its list by a specialisation of FieldList. The order is that of
// binary encodings; the names are those of JSON and may differ from the members'. A list that lacks
// a field of its struct does not compile: ForEachField counts both. Thread-safety: it has constants
// and pure functions only.
#ifndef WEFT_LIB_FIELDS_FIELDS_H_
#define WEFT_LIB_FIELDS_FIELDS_H_

#include <cstddef>
#include <tuple>
#include <type_traits>
#include <utility>

namespace weft {

template <typename Struct, typename Member>
struct Field {
  constexpr Field(const char* name_in_text, Member Struct::* pointer, bool may_be_absent = false)
      : name(name_in_text), member(pointer), optional(may_be_absent) {}

  const char* name;
  Member Struct::* member;
  bool optional;  // JSON may lack it: the member keeps its default
};

template <typename Struct, typename Member>
constexpr Field<Struct, Member> OptionalField(const char* name, Member Struct::* member) {
  return {name, member, true};
}

// The list of T: kFields, a tuple of Field.
template <typename T>
struct FieldList;

template <typename T>
  requires requires { T::Fields(); }
struct FieldList<T> {
  static constexpr auto kFields = T::Fields();
};

template <typename T>
concept HasFields = requires { FieldList<std::remove_const_t<T>>::kFields; };

namespace fields_internal {

// Converts to any type, to find out by how many values an aggregate can be initialised.
struct Anything {
  template <typename T>
  operator T() const;  // NOLINT(google-explicit-constructor)
};

template <typename T, std::size_t... kIndices>
constexpr bool TakesValues(std::index_sequence<kIndices...>) {
  return requires { T{((void)kIndices, Anything{})...}; };
}

// Returns how many members an aggregate has.
template <typename T, std::size_t kCount = 0>
constexpr std::size_t CountMembers() {
  if constexpr (TakesValues<T>(std::make_index_sequence<kCount + 1>()))
    return CountMembers<T, kCount + 1>();
  else
    return kCount;
}

}  // namespace fields_internal

// Calls `visit(field, member)` for each field of `value`, which may be const, in their order.
template <typename T, typename Visit>
constexpr void ForEachField(T& value, Visit&& visit) {
  using Struct = std::remove_const_t<T>;
  constexpr auto& kFields = FieldList<Struct>::kFields;
  static_assert(std::tuple_size_v<std::remove_cvref_t<decltype(kFields)>> ==
                    fields_internal::CountMembers<Struct>(),
                "a member of this struct is missing in its list of fields");
  std::apply([&](const auto&... field) { (visit(field, value.*field.member), ...); }, kFields);
}

// Calls `visit(field, member of a, member of b)` for each field.
template <typename T, typename Visit>
constexpr void ForEachField(T& a, const std::remove_const_t<T>& b, Visit&& visit) {
  ForEachField(a, [&](const auto& field, auto& member) { visit(field, member, b.*field.member); });
}

}  // namespace weft

#endif  // WEFT_LIB_FIELDS_FIELDS_H_
