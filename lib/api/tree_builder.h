// SPDX-License-Identifier: Apache-2.0
// Builds a document tree from a parser's events, within the limits. Internal to lib/api; used by
// yaml.cc and json.cc.
//
// Invariant: the stack holds the containers that are open; a map on it with has_key waits for a
// value. The first failure sticks: every later call returns false.
#ifndef WEFT_LIB_API_TREE_BUILDER_H_
#define WEFT_LIB_API_TREE_BUILDER_H_

#include <cstddef>
#include <optional>
#include <string>
#include <vector>

#include "lib/api/diagnostic.h"
#include "lib/api/value.h"

namespace weft::api {

class TreeBuilder {
 public:
  // Every call returns false if a limit is reached; failure() says which.
  bool Scalar(Value value);
  bool Begin(Value::Kind kind, Mark mark);  // kList or kMap
  bool End();
  bool Key(std::string key, Mark mark);

  // Is the next node a key? For parsers that have no separate event for keys.
  bool NodeIsKey() const;

  // Returns the node that ended last. It is valid until the next call.
  const Value* last() const { return last_; }
  std::size_t depth() const { return stack_.size(); }

  // Adds a copy of `value`, which counts against the limits like the original.
  bool Copy(const Value& value, Mark mark);

  // Counts a copy that the caller keeps.
  bool Charge(const Value& value) { return CountAll(value, value.mark, 0); }

  bool Fail(Mark mark, std::string message);
  const std::optional<Diagnostic>& failure() const { return failure_; }

  // Returns the finished document. The builder is ready for the next; its counts go on.
  Value Take();

 private:
  bool Count(Mark mark, std::size_t bytes);
  bool CountAll(const Value& value, Mark mark, std::size_t depth);
  bool Attach(Value value);

  struct Open {
    Value value;
    bool has_key = false;
    std::string key;
    Mark key_mark;
  };
  std::vector<Open> stack_;
  Value root_;
  const Value* last_ = nullptr;
  std::size_t nodes_ = 0;
  std::size_t bytes_ = 0;
  std::optional<Diagnostic> failure_;
};

}  // namespace weft::api

#endif  // WEFT_LIB_API_TREE_BUILDER_H_
