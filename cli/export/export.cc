// SPDX-License-Identifier: Apache-2.0
#include "cli/export/export.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cinttypes>
#include <cstring>
#include <memory>
#include <optional>

#include "cli/exit_status.h"
#include "cli/export/exporter.h"
#include "cli/open_trace.h"

namespace weft::cli {
namespace {

constexpr const char* kName = "export";
constexpr size_t kFlushBytes = 256 * 1024;

// A line on a terminal that shows how far the export is.
class Progress {
 public:
  Progress(const ctf::TraceReader& reader, std::FILE* err, bool shown)
      : reader_(reader), err_(err), shown_(shown) {}

  void Show(uint64_t events) {
    const auto now = std::chrono::steady_clock::now();
    if (!shown_ || now < next_) return;
    next_ = now + std::chrono::milliseconds(200);
    const uint64_t total = std::max<uint64_t>(reader_.bytes(), 1);
    const auto percent = static_cast<int>(reader_.bytes_read() * 100 / total);
    constexpr int kWidth = 30;
    const std::string bar(static_cast<size_t>(percent * kWidth / 100), '#');
    std::fprintf(err_, "\r[%-*s] %3d %%  %" PRIu64 " events", kWidth, bar.c_str(), percent, events);
  }
  void End() {
    if (shown_) std::fprintf(err_, "\r\033[K");
  }

 private:
  const ctf::TraceReader& reader_;
  std::FILE* err_;
  bool shown_;
  std::chrono::steady_clock::time_point next_;
};

std::unique_ptr<Exporter> MakeExporter(const std::string& format, const CounterFields& counters) {
  if (format == "csv") return MakeCsvExporter();
  if (format == "jsonl") return MakeJsonLinesExporter();
  if (format == "chrome-json") return MakeChromeJsonExporter(counters);
  return MakePerfettoExporter(counters);
}

// False: one is wrong, and `err` was told so.
bool ParseCounters(const ExportOptions& options, CounterFields& counters, std::FILE* err) {
  for (const std::string& text : options.counters) {
    const size_t dot = text.rfind('.');
    if (dot == std::string::npos || dot == 0 || dot + 1 == text.size()) {
      std::fprintf(err,
                   "weft export: --counter '%s': it is EVENT.FIELD, such as shop:order.total\n",
                   text.c_str());
      return false;
    }
    counters[text.substr(0, dot)] = text.substr(dot + 1);
  }
  return true;
}

int Export(ctf::TraceReader& reader, Exporter& exporter, Progress progress, std::FILE* out,
           std::FILE* err) {
  std::string buffer;
  uint64_t events = 0;
  exporter.Begin(buffer);
  while (ctf::StreamReader* stream = reader.Next()) {
    exporter.Item(*stream, buffer);
    events++;
    if (buffer.size() < kFlushBytes) continue;
    if (!Flush(buffer, out)) return WriteFailed(kName, err);
    progress.Show(events);
  }
  exporter.End(buffer);
  progress.End();
  if (!Flush(buffer, out) || std::fflush(out) != 0) return WriteFailed(kName, err);
  return ShowProblems(reader, kName, err);
}

int ExportToFile(ctf::TraceReader& reader, Exporter& exporter, const std::string& path,
                 std::FILE* err) {
  const int fd = ::open(path.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
  std::FILE* file = fd < 0 ? nullptr : ::fdopen(fd, "w");
  if (file == nullptr) {
    const char* advice = errno == EEXIST ? ": remove it, or name another file" : "";
    std::fprintf(err, "weft export: %s: %s%s\n", path.c_str(), std::strerror(errno), advice);
    return kExitOutput;
  }
  const Progress progress(reader, err, ::isatty(::fileno(err)) == 1);
  int status = Export(reader, exporter, progress, file, err);
  if (std::fclose(file) != 0 && status != kNotWritten) status = WriteFailed(kName, err);
  if (status == kNotWritten) (void)::unlink(path.c_str());
  return status;
}

}  // namespace

int RunExport(const ExportOptions& options, std::FILE* out, std::FILE* err) {
  CounterFields counters;
  if (!ParseCounters(options, counters, err)) return kExitUsage;
  if (options.output.empty() && options.format == "perfetto" && ::isatty(::fileno(out)) == 1) {
    std::fprintf(err, "weft export: perfetto's format is not for terminals: name a file with -o\n");
    return kExitUsage;
  }
  auto reader = OpenTrace(options.folder);
  if (!reader) {
    std::fprintf(err, "weft export: %s\n", reader.error().message.c_str());
    return kNoTrace;
  }
  const std::unique_ptr<Exporter> exporter = MakeExporter(options.format, counters);
  if (!options.output.empty()) return ExportToFile(*reader, *exporter, options.output, err);
  return Export(*reader, *exporter, Progress(*reader, err, false), out, err);
}

}  // namespace weft::cli
