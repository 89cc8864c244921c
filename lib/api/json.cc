// SPDX-License-Identifier: Apache-2.0
// JSON, by nlohmann's event interface. It gives no places, so the iterator counts what the lexer
// has taken: at an event that is the token's end, or one byte more behind a number.
#include <algorithm>
#include <cstddef>
#include <iterator>
#include <nlohmann/json.hpp>

#include "lib/api/document.h"
#include "lib/api/limits.h"
#include "lib/api/tree_builder.h"

namespace weft::api {
namespace {

class CountingIterator {
 public:
  using iterator_category = std::input_iterator_tag;
  using value_type = char;
  using difference_type = std::ptrdiff_t;
  using pointer = const char*;
  using reference = const char&;

  CountingIterator(std::string_view::const_iterator at, std::size_t* count)
      : at_(at), count_(count) {}
  reference operator*() const { return *at_; }
  CountingIterator& operator++() {
    ++at_;
    ++*count_;
    return *this;
  }
  CountingIterator operator++(int) {
    CountingIterator old = *this;
    ++*this;
    return old;
  }
  bool operator==(const CountingIterator& other) const { return at_ == other.at_; }

 private:
  std::string_view::const_iterator at_;
  std::size_t* count_;
};

using Json = nlohmann::ordered_json;

class Handler {
 public:
  Handler(std::string_view text, const std::size_t& taken) : text_(text), taken_(taken) {}

  TreeBuilder& builder() { return builder_; }

  bool null() { return Scalar(Value::Kind::kNull, ""); }
  bool boolean(bool value) { return Scalar(Value::Kind::kBool, value ? "true" : "false"); }
  bool number_integer(Json::number_integer_t value) {
    return Scalar(Value::Kind::kNumber, std::to_string(value));
  }
  bool number_unsigned(Json::number_unsigned_t value) {
    return Scalar(Value::Kind::kNumber, std::to_string(value));
  }
  bool number_float(Json::number_float_t, const std::string& text) {
    return Scalar(Value::Kind::kNumber, text);
  }
  bool string(std::string& text) { return Scalar(Value::Kind::kString, text); }
  bool binary(Json::binary_t&) { return false; }  // JSON text has none
  bool start_object(std::size_t) { return builder_.Begin(Value::Kind::kMap, Start()); }
  bool start_array(std::size_t) { return builder_.Begin(Value::Kind::kList, Start()); }
  bool end_object() { return builder_.End(); }
  bool end_array() { return builder_.End(); }
  bool key(std::string& text) {
    const Mark mark = Start();
    return builder_.Key(text, mark);
  }
  bool parse_error(std::size_t, const std::string&, const nlohmann::detail::exception& error) {
    // The message is "[json...] parse error at line 1, column 5: what". The diagnostic states the
    // place itself.
    std::string what = error.what();
    if (const std::size_t colon = what.find(": "); colon != std::string::npos)
      what.erase(0, colon + 2);
    constexpr std::size_t kLongest = 200;
    if (what.size() > kLongest) what.resize(kLongest);
    return builder_.Fail(MarkAt(text_, taken_ == 0 ? 0 : taken_ - 1), "not JSON: " + what);
  }

 private:
  // Returns where the token of the current event begins. Lines and columns are counted on from the
  // last.
  Mark Start() {
    const std::size_t start = std::min(text_.find_first_not_of(" \t\r\n:,", previous_end_), taken_);
    previous_end_ = taken_;
    for (; counted_ < start; ++counted_) {
      if (text_[counted_] == '\n') {
        ++mark_.line;
        mark_.column = 1;
      } else {
        ++mark_.column;
      }
    }
    start_ = start;
    return mark_;
  }

  bool Scalar(Value::Kind kind, std::string_view text) {
    Value value;
    value.kind = kind;
    value.mark = Start();
    value.text = text;
    if (kind == Value::Kind::kString && text_.substr(start_ + 1, text.size()) == text)
      value.quote = 1;
    return builder_.Scalar(std::move(value));
  }

  std::string_view text_;
  const std::size_t& taken_;
  std::size_t previous_end_ = 0;
  std::size_t counted_ = 0;
  std::size_t start_ = 0;
  Mark mark_ = {1, 1};
  TreeBuilder builder_;
};

Json ToJsonValue(const Value& value) {
  switch (value.kind) {
    case Value::Kind::kNull:
      return nullptr;
    case Value::Kind::kBool:
      return value.text == "true";
    case Value::Kind::kNumber:
      return std::stoll(value.text);
    case Value::Kind::kString:
      return value.text;
    case Value::Kind::kList: {
      Json out = Json::array();
      for (const Value& item : value.list) out.push_back(ToJsonValue(item));
      return out;
    }
    case Value::Kind::kMap: {
      Json out = Json::object();
      for (const Entry& entry : value.map) out[entry.key] = ToJsonValue(entry.value);
      return out;
    }
  }
  return nullptr;
}

}  // namespace

Documents ReadJson(std::string_view text) {
  std::size_t taken = 0;
  Handler handler(text, taken);
  std::size_t end_count = 0;  // of the end iterator, which never moves
  const CountingIterator begin(text.begin(), &taken);
  const CountingIterator end(text.end(), &end_count);
  try {
    if (!Json::sax_parse(begin, end, &handler)) {
      const auto& failure = handler.builder().failure();
      return std::unexpected(failure ? *failure : Diagnostic{"", 0, 0, "", "not JSON"});
    }
  } catch (const std::exception& error) {
    return std::unexpected(Diagnostic{"", 0, 0, "", std::string("not JSON: ") + error.what()});
  }
  return std::vector<Value>{handler.builder().Take()};
}

std::string WriteJson(const Value& value, int indent) {
  // Strings that are not UTF-8 cannot come from a checked Trace; they are mended, not thrown at.
  return ToJsonValue(value).dump(indent, ' ', false, Json::error_handler_t::replace);
}

}  // namespace weft::api
