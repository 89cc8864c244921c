// SPDX-License-Identifier: Apache-2.0
#include "cli/view.h"

#include <sys/resource.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <string_view>

#include "cli/view_json.h"
#include "cli/view_text.h"
#include "lib/ctf/trace_reader.h"

namespace weft::cli {
namespace {

constexpr size_t kFlushBytes = 64 * 1024;
constexpr size_t kShownProblems = 20;

bool UseColor(ViewColor color, std::FILE* out) {
  if (color != ViewColor::kAuto) return color == ViewColor::kAlways;
  const char* term = std::getenv("TERM");
  return ::isatty(::fileno(out)) == 1 && term != nullptr && std::string_view(term) != "dumb" &&
         std::getenv("NO_COLOR") == nullptr;
}

bool Write(std::string& text, std::FILE* out) {
  const bool ok = std::fwrite(text.data(), 1, text.size(), out) == text.size();
  text.clear();
  return ok;
}

int WriteFailed(std::FILE* err) {
  if (errno == EPIPE) return kViewOk;
  std::fprintf(err, "weft view: the output cannot be written: %s\n", std::strerror(errno));
  return kViewWriteFailed;
}

int ShowProblems(const ctf::TraceReader& reader, std::FILE* err) {
  const auto& problems = reader.problems();
  for (size_t i = 0; i < problems.size() && i < kShownProblems; i++) {
    std::string line;
    AppendName(line, problems[i]);
    std::fprintf(err, "weft view: %s\n", line.c_str());
  }
  if (problems.size() > kShownProblems) {
    std::fprintf(err, "weft view: and %zu more problems\n", problems.size() - kShownProblems);
  }
  return problems.empty() ? kViewOk : kViewCorrupt;
}

// A stream is an open file, and a trace of a large machine has more than the usual 1024.
void RaiseFileLimit() {
  rlimit limit{};
  if (::getrlimit(RLIMIT_NOFILE, &limit) != 0) return;
  limit.rlim_cur = limit.rlim_max;
  (void)::setrlimit(RLIMIT_NOFILE, &limit);
}

}  // namespace

int RunView(const ViewOptions& options, std::FILE* out, std::FILE* err) {
  RaiseFileLimit();
  auto reader = ctf::TraceReader::Open(options.folder);
  if (!reader) {
    std::fprintf(err, "weft view: %s\n", reader.error().message.c_str());
    return kViewNoTrace;
  }
  TextPrinter text(UseColor(options.color, out));
  std::string buffer;
  uint64_t events = 0;
  while (ctf::StreamReader* stream = reader->Next()) {
    const bool event = stream->item().kind == ctf::ItemKind::kEvent;
    if (event && options.limit && events++ == *options.limit) break;
    if (options.json) {
      AppendJson(*stream, buffer);
    } else if (event) {
      text.Event(*stream, buffer);
    } else {
      if (!Write(buffer, out)) return WriteFailed(err);
      std::fflush(out);
      std::fprintf(err, "%s\n", TextPrinter::Discarded(*stream).c_str());
    }
    if (buffer.size() >= kFlushBytes && !Write(buffer, out)) return WriteFailed(err);
  }
  if (!Write(buffer, out) || std::fflush(out) != 0) return WriteFailed(err);
  return ShowProblems(*reader, err);
}

}  // namespace weft::cli
