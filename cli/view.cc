// SPDX-License-Identifier: Apache-2.0
#include "cli/view.h"

#include "cli/block_writer.h"
#include "cli/open_trace.h"
#include "cli/view_json.h"
#include "cli/view_text.h"

namespace weft::cli {
namespace {

constexpr const char* kName = "view";
constexpr size_t kBlockBytes = 256 * 1024;

bool UseColor(ViewColor color, std::FILE* out) {
  if (color != ViewColor::kAuto) return color == ViewColor::kAlways;
  return IsColorTerminal(out);
}

}  // namespace

int RunView(const ViewOptions& options, std::FILE* out, std::FILE* err) {
  auto reader = OpenTrace(options.folder);
  if (!reader) {
    std::fprintf(err, "weft view: %s\n", reader.error().message.c_str());
    return kNoTrace;
  }
  TextPrinter text(UseColor(options.color, out), options.indent);
  BlockWriter writer(out);
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
      if (!writer.Write(buffer) || !writer.Flush()) return WriteFailed(kName, err);
      std::fprintf(err, "%s\n", TextPrinter::Discarded(*stream).c_str());
    }
    if (buffer.size() >= kBlockBytes && !writer.Write(buffer)) return WriteFailed(kName, err);
  }
  if (!writer.Write(buffer) || !writer.Flush()) return WriteFailed(kName, err);
  return ShowProblems(*reader, kName, err);
}

}  // namespace weft::cli
