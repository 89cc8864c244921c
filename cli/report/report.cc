// SPDX-License-Identifier: Apache-2.0
// See report.h.
#include "cli/report/report.h"

#include <cinttypes>

#include "cli/open_trace.h"
#include "cli/report/call_reader.h"
#include "cli/report/report_formats.h"

namespace weft::cli {
namespace {

constexpr const char* kName = "report";

void Note(std::FILE* err, uint64_t count, const char* what) {
  if (count != 0) std::fprintf(err, "weft report: %" PRIu64 " %s\n", count, what);
}

void ShowMissing(const CallReader& calls, const CallTree& tree, uint64_t discarded,
                 bool discarded_unknown, std::FILE* err) {
  Note(err, calls.unfinished(),
       "calls have an entry, but no exit: they count as calls, without a time");
  Note(err, calls.without_entry(), "exits have no entry: they do not count");
  Note(err, calls.left_out(), "events are of more threads or open calls than a report counts");
  Note(err, tree.left_out(), "calls are not in the tree, which would have become too large");
  Note(err, discarded, "events were discarded by the tracer: calls are missing");
  if (discarded_unknown)
    std::fprintf(err, "weft report: the tracer may have discarded events: calls may be missing\n");
  if (calls.lacks_thread())
    std::fprintf(err,
                 "weft report: the events do not say which thread they are of, so all count as one "
                 "thread's; record with the contexts vpid and vtid\n");
}

}  // namespace

int RunReport(const ReportOptions& options, std::FILE* out, std::FILE* err) {
  auto reader = OpenTrace(options.folder);
  if (!reader) {
    std::fprintf(err, "weft report: %s\n", reader.error().message.c_str());
    return kNoTrace;
  }
  CallTree tree;
  CallReader calls(tree);
  uint64_t discarded = 0;
  bool discarded_unknown = false;
  while (ctf::StreamReader* stream = reader->Next()) {
    const ctf::Item& item = stream->item();
    if (item.kind == ctf::ItemKind::kEvent) {
      calls.Take(*stream);
    } else if (item.count && item.kind == ctf::ItemKind::kDiscardedEvents) {
      discarded += *item.count;
    } else {
      discarded_unknown = true;
    }
  }
  calls.Finish();
  const bool is_empty = calls.calls() + calls.unfinished() == 0;
  if (is_empty)
    std::fprintf(err,
                 "weft report: the trace has no calls of functions; record some with --function, "
                 "or spec.user.functions of a Trace\n");
  std::string text = options.format == "json"     ? ReportJson(tree)
                     : options.format == "folded" ? ReportFolded(tree)
                     : is_empty                   ? ""
                                                  : ReportText(tree);
  if (!Flush(text, out) || std::fflush(out) != 0) return WriteFailed(kName, err);
  ShowMissing(calls, tree, discarded, discarded_unknown, err);
  return ShowProblems(*reader, kName, err);
}

}  // namespace weft::cli
