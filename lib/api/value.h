// SPDX-License-Identifier: Apache-2.0
// A document as a tree, for YAML and JSON alike: readers build it, and the
// schema reads and writes it. Internal to lib/api.
//
// Invariants: a tree from a reader is nested at most limits::kDepth deep, so that recursion over it
// is bounded. The keys of a map keep their order and may be double (the schema refuses that, with
// the place). Thread-safety: they are plain values.
#ifndef WEFT_LIB_API_VALUE_H_
#define WEFT_LIB_API_VALUE_H_

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace weft::api {

struct Mark {
  int line = 0;  // from 1; 0: not from a text
  int column = 0;
};

struct Entry;

struct Value {
  enum class Kind { kNull, kBool, kNumber, kString, kList, kMap };

  Kind kind = Kind::kNull;
  std::string text;         // of scalars; "true" or "false" for kBool; digits for kNumber
  std::vector<Value> list;  // kList
  std::vector<Entry> map;   // kMap
  Mark mark;
  // Bytes of quotation before the text; -1: the text is not byte for byte in the source.
  int quote = -1;

  // Out of line: a vector of the still incomplete Entry cannot be destroyed here.
  Value();
  ~Value();
  Value(const Value&);
  Value(Value&&) noexcept;
  Value& operator=(const Value&);
  Value& operator=(Value&&) noexcept;

  static Value Bool(bool value);
  static Value Number(std::int64_t value);
  static Value String(std::string_view value);
  static Value List(std::vector<Value> items = {});
  static Value Map();

  // For writers: appends key and value to a map, and returns *this.
  Value& Add(std::string_view key, Value value);
  const Value* Find(std::string_view key) const;  // nullptr: no such key, or no map
};

struct Entry {
  std::string key;
  Mark mark;
  Value value;
};

// Returns "a string", "a list": for messages.
std::string_view Describe(Value::Kind kind);

}  // namespace weft::api

#endif  // WEFT_LIB_API_VALUE_H_
