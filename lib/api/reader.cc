// SPDX-License-Identifier: Apache-2.0
// Paths and diagnostics of a reading.
#include "lib/api/reader.h"

#include <algorithm>

#include "lib/api/limits.h"

namespace weft::api {
namespace {

// Names in a path are shown as they are if they are harmless and short, else quoted.
std::string PathName(std::string_view name) {
  const auto harmless = [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
           std::string_view("_-./:$*").find(c) != std::string_view::npos;
  };
  if (!name.empty() && name.size() <= 80 && std::ranges::all_of(name, harmless))
    return std::string(name);
  return Quote(name);
}

}  // namespace

void Reader::Fail(Mark mark, std::string message, std::string excerpt) {
  if (++failures_ > limits::kDiagnostics) return;
  if (failures_ == limits::kDiagnostics) {
    out_.push_back(
        {.file = std::string(file_), .message = "there are more problems; the rest is not listed"});
    return;
  }
  out_.push_back({.file = std::string(file_),
                  .line = mark.line,
                  .column = mark.column,
                  .path = path_,
                  .message = std::move(message),
                  .excerpt = std::move(excerpt)});
}

Reader::Scope::Scope(Reader& reader, Raw, std::string_view text)
    : reader_(reader), size_(reader.path_.size()) {
  reader_.path_ += text;
}

Reader::Scope::Scope(Reader& reader, std::string_view field)
    : Scope(reader, Raw{}, (reader.path_.empty() ? "" : ".") + PathName(field)) {}

Reader::Scope::Scope(Reader& reader, std::size_t index)
    : Scope(reader, Raw{}, "[" + std::to_string(index) + "]") {}

Reader::Scope Reader::Scope::Key(Reader& reader, std::string_view key) {
  return Scope(reader, Raw{}, "[" + PathName(key) + "]");
}

}  // namespace weft::api
