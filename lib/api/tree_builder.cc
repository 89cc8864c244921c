// SPDX-License-Identifier: Apache-2.0
// Building document trees within the limits.
#include "lib/api/tree_builder.h"

#include <utility>

#include "lib/api/limits.h"

namespace weft::api {
namespace {

// Limit in bytes of the scalars that aliases may make of a text.
constexpr std::size_t kMaxBytes = 4 * limits::kDocumentBytes;

}  // namespace

bool TreeBuilder::Fail(Mark mark, std::string message) {
  if (!failure_) failure_ = Diagnostic{"", mark.line, mark.column, "", std::move(message)};
  return false;
}

bool TreeBuilder::Count(Mark mark, std::size_t bytes) {
  if (failure_) return false;
  bytes_ += bytes;
  if (++nodes_ > limits::kNodes)
    return Fail(mark, "has more than " + std::to_string(limits::kNodes) + " values");
  if (bytes_ > kMaxBytes)
    return Fail(mark, "is longer than " + std::to_string(kMaxBytes) +
                          " bytes after its aliases are expanded");
  return true;
}

bool TreeBuilder::CountAll(const Value& value, Mark mark, std::size_t depth) {
  if (depth > limits::kDepth)
    return Fail(mark, "is nested deeper than " + std::to_string(limits::kDepth));
  if (!Count(mark, value.text.size())) return false;
  for (const Value& item : value.list) {
    if (!CountAll(item, mark, depth + 1)) return false;
  }
  for (const Entry& entry : value.map) {
    if (!Count(mark, entry.key.size()) || !CountAll(entry.value, mark, depth + 1)) return false;
  }
  return true;
}

bool TreeBuilder::NodeIsKey() const {
  return !stack_.empty() && stack_.back().value.kind == Value::Kind::kMap && !stack_.back().has_key;
}

bool TreeBuilder::Attach(Value value) {
  if (stack_.empty()) {
    root_ = std::move(value);
    last_ = &root_;
    return true;
  }
  Open& open = stack_.back();
  if (open.value.kind == Value::Kind::kList) {
    open.value.list.push_back(std::move(value));
    last_ = &open.value.list.back();
    return true;
  }
  open.has_key = false;
  open.value.map.push_back({std::move(open.key), open.key_mark, std::move(value)});
  last_ = &open.value.map.back().value;
  return true;
}

bool TreeBuilder::Scalar(Value value) {
  return Count(value.mark, value.text.size()) && Attach(std::move(value));
}

bool TreeBuilder::Begin(Value::Kind kind, Mark mark) {
  if (!Count(mark, 0)) return false;
  if (stack_.size() >= limits::kDepth)
    return Fail(mark, "is nested deeper than " + std::to_string(limits::kDepth));
  Open open;
  open.value.kind = kind;
  open.value.mark = mark;
  stack_.push_back(std::move(open));
  return true;
}

bool TreeBuilder::End() {
  if (failure_) return false;
  Value value = std::move(stack_.back().value);
  stack_.pop_back();
  return Attach(std::move(value));
}

bool TreeBuilder::Key(std::string key, Mark mark) {
  if (!Count(mark, key.size())) return false;
  Open& open = stack_.back();
  open.has_key = true;
  open.key = std::move(key);
  open.key_mark = mark;
  return true;
}

bool TreeBuilder::Copy(const Value& value, Mark mark) {
  if (failure_ || !CountAll(value, mark, stack_.size() + 1)) return false;
  return Attach(value);
}

Value TreeBuilder::Take() {
  last_ = nullptr;
  return std::exchange(root_, Value{});
}

}  // namespace weft::api
