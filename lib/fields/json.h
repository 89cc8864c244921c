// SPDX-License-Identifier: Apache-2.0
// Structs with a list of fields to JSON and back, and variants of them as messages: an object whose
// member "type" is the struct's kName. A file descriptor is its index among the descriptors that
// travel with the text, null where there is none.
// What is read may be foreign: a value of another type, out of range, or missing is refused, as are
// lists and maps beyond the limits. Members that a struct does not have are passed over.
// Thread-safety: pure functions; one thread per object.
#ifndef WEFT_LIB_FIELDS_JSON_H_
#define WEFT_LIB_FIELDS_JSON_H_

#include <array>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <map>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <variant>
#include <vector>

#include "lib/base/result.h"
#include "lib/base/unique_fd.h"
#include "lib/fields/fields.h"

namespace weft::fields {

using Json = nlohmann::json;

// Maps of JSON: counts by reason.
using CountsByName = std::map<std::string, uint64_t>;

template <typename T>
concept IsArray = requires { std::tuple_size<T>::value; } && requires(T t) { t.fill(t[0]); };

class JsonWriter {
 public:
  // Descriptors move to the end of `fds`. nullptr: the structs have none.
  explicit JsonWriter(std::vector<UniqueFd>* fds = nullptr) : fds_(fds) {}

  template <typename T>
  Json Value(T& value) {
    using Plain = std::remove_const_t<T>;
    if constexpr (std::is_same_v<Plain, UniqueFd>) {
      if (!value.valid()) return nullptr;
      fds_->push_back(std::move(value));
      return fds_->size() - 1;
    } else if constexpr (std::is_enum_v<Plain>) {
      return static_cast<std::underlying_type_t<Plain>>(value);
    } else if constexpr (HasFields<Plain>) {
      Json object = Json::object();
      ForEachField(value,
                   [&](const auto& field, auto& member) { object[field.name] = Value(member); });
      return object;
    } else if constexpr (std::is_arithmetic_v<Plain> || std::is_same_v<Plain, std::string> ||
                         std::is_same_v<Plain, CountsByName>) {
      return value;
    } else {
      Json list = Json::array();
      for (auto& entry : value) list.push_back(Value(entry));
      return list;
    }
  }

 private:
  std::vector<UniqueFd>* fds_;
};

// For foreign text.
struct JsonLimits {
  size_t list = SIZE_MAX;  // entries
  size_t map = SIZE_MAX;   // entries
  size_t key = SIZE_MAX;   // bytes of a map's key
};

class JsonReader {
 public:
  // Descriptors are taken out of `fds`. nullptr: the structs have none.
  explicit JsonReader(JsonLimits limits = {}, std::vector<UniqueFd>* fds = nullptr)
      : limits_(limits), fds_(fds) {}

  // "", or the name of the first field that is wrong or missing; `value` is useless then.
  template <HasFields T>
  std::string Fields(const Json& json, T& value) {
    std::string wrong;
    ForEachField(value, [&](const auto& field, auto& member) {
      const auto found = json.find(field.name);
      const bool absent = found == json.end() || (field.optional && found->is_null());
      const bool fine = absent ? field.optional : Value(*found, member);
      if (!fine && wrong.empty()) wrong = field.name;
    });
    return wrong;
  }

 private:
  template <typename T>
  bool Value(const Json& json, T& value) {
    if constexpr (std::is_same_v<T, UniqueFd>) {
      size_t index = 0;
      if (!Value(json, index) || index >= fds_->size() || !(*fds_)[index].valid()) return false;
      value = std::move((*fds_)[index]);
      return true;
    } else if constexpr (std::is_same_v<T, bool>) {
      value = json.is_boolean() && json.get<bool>();
      return json.is_boolean();
    } else if constexpr (std::is_enum_v<T>) {
      std::underlying_type_t<T> number = 0;
      value = static_cast<T>(0);
      if (!Value(json, number) || number > static_cast<decltype(number)>(LastOf(value)))
        return false;
      value = static_cast<T>(number);
      return true;
    } else if constexpr (std::is_integral_v<T>) {
      return Integer(json, value);
    } else if constexpr (std::is_same_v<T, std::string>) {
      if (!json.is_string()) return false;
      value = json.get<std::string>();
      return true;
    } else if constexpr (HasFields<T>) {
      return json.is_object() && Fields(json, value).empty();
    } else {
      return Entries(json, value);
    }
  }

  template <std::integral T>
  static bool Integer(const Json& json, T& value) {
    if (json.is_number_unsigned()) {
      const auto number = json.get<uint64_t>();
      value = static_cast<T>(number);
      return std::in_range<T>(number);
    }
    if (!json.is_number_integer()) return false;
    const auto number = json.get<int64_t>();
    value = static_cast<T>(number);
    return std::in_range<T>(number);
  }

  template <typename T>
  bool Entries(const Json& json, T& value) {
    if constexpr (std::is_same_v<T, CountsByName>) {
      if (!json.is_object() || json.size() > limits_.map) return false;
      for (const auto& [key, entry] : json.items())
        if (key.size() > limits_.key || !Integer(entry, value[key])) return false;
    } else if constexpr (IsArray<T>) {
      if (!json.is_array() || json.size() != value.size()) return false;
      for (size_t i = 0; i < value.size(); ++i)
        if (!Value(json[i], value[i])) return false;
    } else {
      if (!json.is_array() || json.size() > limits_.list) return false;
      for (const Json& entry : json)
        if (!Value(entry, value.emplace_back())) return false;
    }
    return true;
  }

  JsonLimits limits_;
  std::vector<UniqueFd>* fds_;
};

// --- messages: variants of structs that have a kName -----------------------------------------

template <typename Message>
std::string_view MessageName(const Message& message) {
  return std::visit([](const auto& m) { return std::remove_cvref_t<decltype(m)>::kName; }, message);
}

// Descriptors move out of a message that is not const.
template <typename Message>
Json MessageToJson(Message& message, JsonWriter writer) {
  Json json = std::visit([&](auto& m) { return writer.Value(m); }, message);
  json["type"] = MessageName(message);
  return json;
}

// kCorrupt: `json` is no message, or a field is wrong or missing.
template <typename Message>
Result<Message> MessageFromJson(const Json& json, JsonReader reader) {
  if (!json.is_object()) return Fail(ErrorCode::kCorrupt, "message is no JSON object");
  const auto type = json.find("type");
  if (type == json.end() || !type->is_string())
    return Fail(ErrorCode::kCorrupt, "message without a type");
  const auto& name = type->template get_ref<const std::string&>();
  Result<Message> message = Fail(ErrorCode::kCorrupt, "unknown message");
  const auto read_if_named = [&]<typename T>(std::type_identity<T>) {
    if (name != T::kName) return false;
    T value;
    const std::string wrong = reader.Fields(json, value);
    if (wrong.empty())
      message = Message(std::move(value));
    else
      message = Fail(ErrorCode::kCorrupt, name + ": wrong or missing: " + wrong);
    return true;
  };
  [&]<typename... T>(std::type_identity<std::variant<T...>>) {
    (void)(read_if_named(std::type_identity<T>()) || ...);
  }(std::type_identity<Message>());
  return message;
}

}  // namespace weft::fields

#endif  // WEFT_LIB_FIELDS_JSON_H_
