// SPDX-License-Identifier: Apache-2.0
// State of reading one document: the current path, the problems found, and the caller's options.
// Internal to lib/api. Used by one thread.
#ifndef WEFT_LIB_API_READER_H_
#define WEFT_LIB_API_READER_H_

#include <cstddef>
#include <string>
#include <string_view>

#include "lib/api/diagnostic.h"
#include "lib/api/parse.h"
#include "lib/api/value.h"

namespace weft::api {

class Reader {
 public:
  // `file`, `out` and `options` must outlive the reader.
  Reader(std::string_view file, const ParseOptions& options, Diagnostics& out)
      : file_(file), options_(options), out_(out) {}

  // Adds a diagnostic at the current path. Beyond limits::kDiagnostics only the fact is noted.
  void Fail(Mark mark, std::string message, std::string excerpt = "");
  std::size_t failures() const { return failures_; }

  const ParseOptions& options() const { return options_; }
  // Returns false if the text has no name; messages then leave line and column out.
  bool has_file() const { return !file_.empty(); }

  // The path below the current one while it lives: ".name", "[3]", "[app]".
  class Scope {
   public:
    Scope(Reader& reader, std::string_view field);
    Scope(Reader& reader, std::size_t index);
    static Scope Key(Reader& reader, std::string_view key);
    ~Scope() { reader_.path_.resize(size_); }
    Scope(const Scope&) = delete;
    Scope& operator=(const Scope&) = delete;

   private:
    struct Raw {};
    Scope(Reader& reader, Raw, std::string_view text);
    Reader& reader_;
    std::size_t size_;
  };

 private:
  std::string_view file_;
  const ParseOptions& options_;
  Diagnostics& out_;
  std::string path_;
  std::size_t failures_ = 0;
};

}  // namespace weft::api

#endif  // WEFT_LIB_API_READER_H_
