// SPDX-License-Identifier: Apache-2.0
#include "cli/open_trace.h"

#include <cerrno>
#include <cstring>

#include "cli/view_text.h"
#include "lib/base/open_file_limit.h"

namespace weft::cli {
namespace {

constexpr size_t kShownProblems = 20;

}  // namespace

Result<ctf::TraceReader> OpenTrace(const std::string& folder) {
  RaiseOpenFileLimit();
  return ctf::TraceReader::Open(folder);
}

int ShowProblems(const ctf::TraceReader& reader, const char* name, std::FILE* err) {
  const auto& problems = reader.problems();
  for (size_t i = 0; i < problems.size() && i < kShownProblems; i++) {
    std::string line;
    AppendName(line, problems[i]);
    std::fprintf(err, "weft %s: %s\n", name, line.c_str());
  }
  if (problems.size() > kShownProblems) {
    std::fprintf(err, "weft %s: and %zu more problems\n", name, problems.size() - kShownProblems);
  }
  return problems.empty() ? kShownAll : kDamaged;
}

bool Flush(std::string& text, std::FILE* out) {
  const bool ok = std::fwrite(text.data(), 1, text.size(), out) == text.size();
  text.clear();
  return ok;
}

int WriteFailed(const char* name, std::FILE* err) {
  if (errno == EPIPE) return kShownAll;
  std::fprintf(err, "weft %s: the output cannot be written: %s\n", name, std::strerror(errno));
  return kNotWritten;
}

}  // namespace weft::cli
