// SPDX-License-Identifier: Apache-2.0
// Reading, writing and describing single values.
#include "lib/api/scalar_types.h"

#include <bit>
#include <charconv>
#include <optional>

#include "lib/api/limits.h"
#include "lib/api/names.h"
#include "lib/api/quantity.h"

namespace weft::api {
namespace {

class StringType : public Type<std::string> {
 public:
  explicit StringType(StringRules rules) : rules_(std::move(rules)) {}

  void Read(const Value& value, std::string& out, Reader& reader) const override {
    if (!ExpectKind(value, Value::Kind::kString, reader)) return;
    if (value.text.empty() && rules_.may_be_empty) return;
    std::string problem = Check(value.text);
    if (problem.empty()) {
      out = value.text;
    } else {
      reader.Fail(value.mark, Quote(value.text) + " " + problem);
    }
  }

  Value Write(const std::string& value) const override { return Value::String(value); }

  Value OpenApi() const override {
    Value out = Value::Map();
    out.Add("type", Value::String("string"));
    if (!rules_.format.empty()) out.Add("format", Value::String(rules_.format));
    if (!rules_.may_be_empty && rules_.allowed.empty()) out.Add("minLength", Value::Number(1));
    out.Add("maxLength", Value::Number(static_cast<std::int64_t>(rules_.max)));
    if (!rules_.allowed.empty()) {
      const std::string& cheap = rules_.cheap_rule;
      AddRules(out, {{cheap.empty() ? "self.matches(r'" + rules_.pattern + "')" : cheap,
                      rules_.allowed, ""}});
    } else if (!rules_.pattern.empty()) {
      out.Add("pattern", Value::String(rules_.pattern));
    }
    return out;
  }

  std::string TypeName() const override { return rules_.type_name; }

 private:
  std::string Check(std::string_view text) const {
    if (text.empty()) return "must not be empty";
    if (text.size() > rules_.max)
      return "must be at most " + std::to_string(rules_.max) + " bytes long";
    return rules_.check == nullptr ? "" : rules_.check(text);
  }

  StringRules rules_;
};

class FilterType final : public StringType {
 public:
  FilterType()
      : StringType({.type_name = "filter", .max = limits::kFilter, .check = CheckFilterText}) {}

  void Read(const Value& value, std::string& out, Reader& reader) const override {
    StringType::Read(value, out, reader);
    const auto& check = reader.options().check_filter;
    if (out.empty() || !check) return;
    std::optional<FilterProblem> problem = check(out);
    if (!problem) return;
    Mark mark = value.mark;
    std::string message = std::move(problem->message);
    if (value.quote >= 0 && reader.has_file()) {
      mark.column += value.quote + static_cast<int>(problem->offset);
    } else {
      message = problem->place + ": " + message;
    }
    reader.Fail(mark, std::move(message), std::move(problem->excerpt));
  }
};

class BoolType final : public Type<bool> {
 public:
  void Read(const Value& value, bool& out, Reader& reader) const override {
    if (!ExpectKind(value, Value::Kind::kBool, reader)) return;
    // kubectl reads YAML 1.1's spellings of booleans: true yes on y, in any case.
    constexpr std::string_view kTrue = "tTyY";
    out = kTrue.find(value.text[0]) != std::string_view::npos || value.text == "on" ||
          value.text == "On" || value.text == "ON";
  }
  Value Write(const bool& value) const override { return Value::Bool(value); }
  Value OpenApi() const override { return Value::Map().Add("type", Value::String("boolean")); }
  std::string TypeName() const override { return "bool"; }
};

std::string RangeText(std::int64_t min, std::int64_t max) {
  return std::to_string(min) + " to " + std::to_string(max);
}

// Returns a decimal number in [min, max], or nothing with a diagnostic.
std::optional<std::int64_t> ReadInt(const Value& value, std::int64_t min, std::int64_t max,
                                    Reader& reader) {
  if (!ExpectKind(value, Value::Kind::kNumber, reader)) return std::nullopt;
  const std::string_view text = value.text;
  const std::string_view digits = text.substr(text.starts_with('-') ? 1 : 0);
  const bool decimal = !digits.empty() &&
                       digits.find_first_not_of("0123456789") == std::string_view::npos &&
                       (digits == "0" || digits[0] != '0');
  if (!decimal) {
    reader.Fail(value.mark, Quote(text) + " must be a whole decimal number");
    return std::nullopt;
  }
  std::int64_t number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc{} || number < min || number > max) {
    reader.Fail(value.mark, Quote(text) + " is out of range, valid: " + RangeText(min, max));
    return std::nullopt;
  }
  return number;
}

Value IntOpenApi(std::int64_t min, std::int64_t max) {
  const bool small = min >= INT32_MIN && max <= INT32_MAX;
  Value out = Value::Map();
  out.Add("type", Value::String("integer"));
  out.Add("format", Value::String(small ? "int32" : "int64"));
  out.Add("minimum", Value::Number(min));
  if (max != INT64_MAX) out.Add("maximum", Value::Number(max));
  return out;
}

template <typename T>
class IntType : public Type<T> {
 public:
  IntType(std::int64_t min, std::int64_t max) : min_(min), max_(max) {}
  void Read(const Value& value, T& out, Reader& reader) const override {
    if (const auto number = ReadInt(value, min_, max_, reader)) out = static_cast<T>(*number);
  }
  Value Write(const T& value) const override {
    return Value::Number(static_cast<std::int64_t>(value));
  }
  Value OpenApi() const override { return IntOpenApi(min_, max_); }
  std::string TypeName() const override { return "integer"; }
  std::string LimitText() const override { return max_ == INT64_MAX ? "" : RangeText(min_, max_); }

 protected:
  std::int64_t min_;
  std::int64_t max_;
};

// Returns the powers of two in [min, max], as CEL and openAPI want them.
Value PowersOfTwo(std::uint64_t min, std::uint64_t max) {
  Value out = Value::List();
  for (std::uint64_t power = min; power <= max; power *= 2)
    out.list.push_back(Value::Number(static_cast<std::int64_t>(power)));
  return out;
}

class PowerOfTwoType final : public IntType<std::uint32_t> {
 public:
  using IntType::IntType;
  void Read(const Value& value, std::uint32_t& out, Reader& reader) const override {
    const auto number = ReadInt(value, min_, max_, reader);
    if (!number) return;
    const auto given = static_cast<std::uint32_t>(*number);
    if (std::has_single_bit(given)) {
      out = given;
    } else {
      reader.Fail(value.mark, std::to_string(given) + " is not a power of two, use " +
                                  std::to_string(std::bit_floor(given)) + " or " +
                                  std::to_string(std::bit_ceil(given)));
    }
  }
  Value OpenApi() const override {
    Value out = Value::Map();
    out.Add("type", Value::String("integer"));
    out.Add("format", Value::String("int32"));
    out.Add("enum",
            PowersOfTwo(static_cast<std::uint64_t>(min_), static_cast<std::uint64_t>(max_)));
    return out;
  }
  std::string LimitText() const override { return "a power of two, " + RangeText(min_, max_); }
};

// An exact number below 2^64 needs far fewer characters.
constexpr std::size_t kMaxQuantityLength = 32;

class QuantityType final : public Type<std::uint64_t> {
 public:
  enum class Which { kAny, kPowersOfTwo };
  QuantityType(std::uint64_t min, std::uint64_t max, Which which)
      : min_(min), max_(max), which_(which) {}

  void Read(const Value& value, std::uint64_t& out, Reader& reader) const override {
    if (!ExpectKind(value, Value::Kind::kString, reader)) return;
    const Result<std::uint64_t> number = ParseQuantity(value.text);
    if (value.text.size() > kMaxQuantityLength) {
      reader.Fail(value.mark, Quote(value.text) + " is longer than any quantity");
    } else if (!number) {
      reader.Fail(value.mark, Quote(value.text) + ": " + number.error().message);
    } else if (*number < min_ || *number > max_) {
      reader.Fail(value.mark, Quote(value.text) + " is out of range, valid: " + LimitText());
    } else if (which_ == Which::kPowersOfTwo && !std::has_single_bit(*number)) {
      reader.Fail(value.mark, Quote(value.text) + " is not a power of two, use " +
                                  FormatQuantity(std::bit_floor(*number)) + " or " +
                                  FormatQuantity(std::bit_ceil(*number)));
    } else {
      out = *number;
    }
  }

  Value Write(const std::uint64_t& value) const override {
    return Value::String(FormatQuantity(value));
  }

  Value OpenApi() const override {
    Value out = Value::Map();
    // The type is not int-or-string, which is usual for quantities: the API server would assume an
    // unlimited length and refuse every rule about it as too costly.
    out.Add("type", Value::String("string"));
    out.Add("maxLength", Value::Number(kMaxQuantityLength));
    AddRules(out, {{"isQuantity(self) && quantity(self).isInteger() && " + Bounds(),
                    "must be a quantity of bytes that is " + LimitText(), ""}});
    return out;
  }

  std::string TypeName() const override { return "quantity"; }
  std::string LimitText() const override {
    return (which_ == Which::kPowersOfTwo ? "a power of two, " : "") + FormatQuantity(min_) +
           " to " + FormatQuantity(max_);
  }

 private:
  [[nodiscard]] std::string Bounds() const {
    const std::string number = "quantity(self).asInteger()";
    if (which_ == Which::kAny) {
      return number + " >= " + std::to_string(min_) + " && " + number +
             " <= " + std::to_string(max_);
    }
    std::string powers;
    for (const Value& power : PowersOfTwo(min_, max_).list)
      powers += (powers.empty() ? "" : ", ") + power.text;
    return number + " in [" + powers + "]";
  }

  std::uint64_t min_;
  std::uint64_t max_;
  Which which_;
};

class DurationType final : public Type<std::chrono::nanoseconds> {
 public:
  DurationType(std::chrono::nanoseconds min, std::chrono::nanoseconds max) : min_(min), max_(max) {}

  void Read(const Value& value, std::chrono::nanoseconds& out, Reader& reader) const override {
    if (value.kind == Value::Kind::kNumber) {
      reader.Fail(value.mark, Quote(value.text) + " has no unit, write " + Quote(value.text + "s") +
                                  " for seconds");
      return;
    }
    if (!ExpectKind(value, Value::Kind::kString, reader)) return;
    const Result<std::chrono::nanoseconds> duration = ParseDuration(value.text);
    if (!duration) {
      reader.Fail(value.mark, Quote(value.text) + ": " + duration.error().message);
    } else if (*duration < min_ || *duration > max_) {
      reader.Fail(value.mark, Quote(value.text) + " is out of range, valid: " + LimitText());
    } else {
      out = *duration;
    }
  }

  Value Write(const std::chrono::nanoseconds& value) const override {
    return Value::String(FormatDuration(value));
  }

  Value OpenApi() const override {
    Value out = Value::Map();
    // A number gets the message that it has no unit; as a string it would be refused without that
    // advice.
    out.Add("x-kubernetes-int-or-string", Value::Bool(true));
    out.Add("maxLength", Value::Number(64));
    const std::string pattern =
        "^\\+?([0-9]+(\\.[0-9]*)?|\\.[0-9]+)(ns|us|\u00b5s|\u03bcs|ms|s|m|h)"
        "(([0-9]+(\\.[0-9]*)?|\\.[0-9]+)(ns|us|\u00b5s|\u03bcs|ms|s|m|h))*$";
    AddRules(out, {{"type(self) == string && self.matches(r'" + pattern + "')",
                    "must be a number with a unit, such as 10s, 500ms or 1h30m", ""},
                   {"type(self) != string || !self.matches(r'" + pattern +
                        "') || (duration(self) >= duration('" + FormatDuration(min_) +
                        "') && duration(self) <= duration('" + FormatDuration(max_) + "'))",
                    "must be " + LimitText(), ""}});
    return out;
  }

  std::string TypeName() const override { return "duration"; }
  std::string LimitText() const override {
    return FormatDuration(min_) + " to " + FormatDuration(max_);
  }

 private:
  std::chrono::nanoseconds min_;
  std::chrono::nanoseconds max_;
};

class StringMapType final : public Type<std::map<std::string, std::string>> {
 public:
  StringMapType(StringMapRules rules, TypePtr<std::string> value)
      : rules_(rules), value_(std::move(value)) {}

  void Read(const Value& value, std::map<std::string, std::string>& out,
            Reader& reader) const override {
    if (!ExpectKind(value, Value::Kind::kMap, reader)) return;
    if (!CheckDoubleKeys(value, reader)) return;
    if (rules_.max_entries != 0 && value.map.size() > rules_.max_entries) {
      reader.Fail(value.mark, "has " + std::to_string(value.map.size()) + " entries, at most " +
                                  std::to_string(rules_.max_entries) + " are allowed");
      return;
    }
    std::size_t bytes = 0;
    for (const Entry& entry : value.map) {
      bytes += entry.key.size() + entry.value.text.size();
      const auto scope = Reader::Scope::Key(reader, entry.key);
      if (std::string problem = rules_.check_key(entry.key); !problem.empty())
        reader.Fail(entry.mark, "the key " + problem);
      if (entry.value.kind != Value::Kind::kNull) value_->Read(entry.value, out[entry.key], reader);
    }
    if (rules_.max_bytes != 0 && bytes > rules_.max_bytes)
      reader.Fail(value.mark, "is longer than " + std::to_string(rules_.max_bytes) + " bytes");
  }

  Value Write(const std::map<std::string, std::string>& map) const override {
    Value out = Value::Map();
    for (const auto& [key, value] : map) out.Add(key, Value::String(value));
    return out;
  }

  Value OpenApi() const override {
    Value out = Value::Map();
    out.Add("type", Value::String("object"));
    if (rules_.max_entries != 0)
      out.Add("maxProperties", Value::Number(static_cast<std::int64_t>(rules_.max_entries)));
    out.Add("additionalProperties", value_->OpenApi());
    return out;
  }

  std::string TypeName() const override { return "map of strings"; }
  std::string LimitText() const override {
    return rules_.max_entries == 0 ? "" : "at most " + std::to_string(rules_.max_entries);
  }

 private:
  StringMapRules rules_;
  TypePtr<std::string> value_;
};

}  // namespace

TypePtr<std::string> String(StringRules rules) {
  return std::make_shared<StringType>(std::move(rules));
}

TypePtr<std::string> FilterString() { return std::make_shared<FilterType>(); }

TypePtr<bool> Bool() { return std::make_shared<BoolType>(); }

template <typename T>
TypePtr<T> Int(std::int64_t min, std::int64_t max) {
  return std::make_shared<IntType<T>>(min, max);
}
template TypePtr<std::int64_t> Int(std::int64_t, std::int64_t);
template TypePtr<std::uint32_t> Int(std::int64_t, std::int64_t);

TypePtr<std::uint32_t> PowerOfTwo(std::uint32_t min, std::uint32_t max) {
  return std::make_shared<PowerOfTwoType>(min, max);
}

TypePtr<std::uint64_t> Quantity(std::uint64_t min, std::uint64_t max) {
  return std::make_shared<QuantityType>(min, max, QuantityType::Which::kAny);
}

TypePtr<std::uint64_t> PowerOfTwoQuantity(std::uint64_t min, std::uint64_t max) {
  return std::make_shared<QuantityType>(min, max, QuantityType::Which::kPowersOfTwo);
}

TypePtr<std::chrono::nanoseconds> Duration(std::chrono::nanoseconds min,
                                           std::chrono::nanoseconds max) {
  return std::make_shared<DurationType>(min, max);
}

TypePtr<std::map<std::string, std::string>> StringMap(StringMapRules rules,
                                                      TypePtr<std::string> value) {
  return std::make_shared<StringMapType>(rules, std::move(value));
}

int ReadEnum(const Value& value, std::span<const std::string_view> names, Reader& reader) {
  if (!ExpectKind(value, Value::Kind::kString, reader)) return -1;
  for (std::size_t i = 0; i < names.size(); ++i) {
    if (names[i] == value.text) return static_cast<int>(i);
  }
  reader.Fail(value.mark, Quote(value.text) + " is not valid" + DidYouMean(value.text, names));
  return -1;
}

Value EnumOpenApi(std::span<const std::string_view> names) {
  Value values = Value::List();
  for (const std::string_view name : names) values.list.push_back(Value::String(name));
  Value out = Value::Map();
  out.Add("type", Value::String("string"));
  out.Add("enum", std::move(values));
  return out;
}

std::string EnumText(std::span<const std::string_view> names) {
  std::string out = "one of ";
  for (std::size_t i = 0; i < names.size(); ++i)
    out += (i == 0 ? "" : ", ") + std::string(names[i]);
  return out;
}

}  // namespace weft::api
