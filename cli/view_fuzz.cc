// SPDX-License-Identifier: Apache-2.0
// Any bytes as a trace: metadata up to a NUL, then a stream; printed as text and as JSON, and
// reported as calls of functions.
#include <sys/mman.h>
#include <unistd.h>

#include <cstdlib>
#include <string>

#include "cli/report/call_reader.h"
#include "cli/report/report_formats.h"
#include "cli/view_json.h"
#include "cli/view_text.h"
#include "lib/ctf/stream_reader.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace weft;
  const std::string_view bytes(reinterpret_cast<const char*>(data), size);
  const size_t nul = bytes.find('\0');
  if (nul == std::string_view::npos) return 0;
  const auto trace = ctf::ParseMetadata(bytes.substr(0, nul));
  if (!trace) return 0;
  const std::string_view stream = bytes.substr(nul + 1);
  UniqueFd fd(::memfd_create("stream", MFD_CLOEXEC));
  if (::write(fd.get(), stream.data(), stream.size()) != static_cast<ssize_t>(stream.size())) {
    std::abort();
  }
  ctf::StreamReader reader(*trace, "stream", std::move(fd));
  std::vector<std::string> problems;
  cli::TextPrinter printer(true);
  std::string out;
  cli::CallTree tree;
  cli::CallReader calls(tree);
  while (reader.Next(problems)) {
    out.clear();
    if (reader.item().kind == ctf::ItemKind::kEvent) {
      printer.Event(reader, out);
      calls.Take(reader);
    }
    (void)cli::TextPrinter::Discarded(reader);
    cli::AppendJson(reader, out);
  }
  calls.Finish();
  (void)cli::ReportText(tree);
  (void)cli::ReportJson(tree);
  (void)cli::ReportFolded(tree);
  return 0;
}
