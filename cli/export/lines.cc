// SPDX-License-Identifier: Apache-2.0
// Exports of one line per event: CSV (RFC 4180) and JSON lines.
#include <array>

#include "cli/export/exporter.h"
#include "cli/export/subject.h"
#include "cli/json_printer.h"
#include "cli/view_json.h"

namespace weft::cli {
namespace {

// A text as one field of CSV. Texts that a spreadsheet would take for a formula get an apostrophe.
void AppendCsv(std::string& out, std::string_view text) {
  const bool formula = !text.empty() && std::string_view("=+-@\t\r").contains(text[0]);
  if (!formula && text.find_first_of(",\"\r\n") == std::string_view::npos) {
    out += text;
    return;
  }
  out += formula ? "\"'" : "\"";
  for (const char c : text) {
    if (c == '"') out += '"';
    out += c;
  }
  out += '"';
}

void AppendCsv(std::string& out, std::optional<int64_t> number) {
  if (number) out += std::to_string(*number);
}

class CsvExporter : public Exporter {
 public:
  void Begin(std::string& out) override {
    out += "time_ns,time,host,namespace,pod,container,program,pid,tid,cpu,event,fields\r\n";
  }

  void Item(ctf::StreamReader& stream, std::string& out) override {
    const ctf::Item& item = stream.item();
    if (item.kind != ctf::ItemKind::kEvent) return;
    if (item.time_ns != ctf::kNoTime) {
      out += std::to_string(item.time_ns);
      out += ',';
      time_.clear();
      AppendIsoTime(time_, item.time_ns);
      out += std::string_view(time_).substr(1, time_.size() - 2);
    } else {
      out += ',';
    }
    const Subject& subject = subjects_.Read(stream);
    for (const std::string_view text : {subject.host, subject.kubernetes_namespace, subject.pod,
                                        subject.container, subject.program}) {
      out += ',';
      AppendCsv(out, text);
    }
    for (const std::optional<int64_t> number : {subject.pid, subject.tid, subject.cpu}) {
      out += ',';
      AppendCsv(out, number);
    }
    out += ',';
    AppendCsv(out, item.event->name);
    out += ',';
    fields_.clear();
    JsonPrinter printer(fields_);
    if (stream.Visit(ctf::Scope::kPayload, printer)) AppendCsv(out, fields_);
    out += "\r\n";
  }

 private:
  SubjectReader subjects_;
  std::string time_, fields_;
};

class JsonLinesExporter : public Exporter {
 public:
  void Item(ctf::StreamReader& stream, std::string& out) override { AppendJson(stream, out); }
};

}  // namespace

std::unique_ptr<Exporter> MakeCsvExporter() { return std::make_unique<CsvExporter>(); }

std::unique_ptr<Exporter> MakeJsonLinesExporter() { return std::make_unique<JsonLinesExporter>(); }

}  // namespace weft::cli
