// SPDX-License-Identifier: Apache-2.0
// From text to Traces: which language, which kind, then the schema.
#include "lib/api/parse.h"

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <memory>
#include <set>
#include <utility>

#include "lib/api/document.h"
#include "lib/api/limits.h"
#include "lib/api/nearest.h"
#include "lib/api/reader.h"
#include "lib/api/trace_schema.h"
#include "lib/api/write.h"

namespace weft::api {
namespace {

std::unexpected<Diagnostics> Fail(std::string_view file, std::string message) {
  return std::unexpected(Diagnostics{{std::string(file), 0, 0, "", std::move(message)}});
}

// An object in JSON begins with a brace and a quoted key; behind a lone brace is YAML in flow
// style.
Documents ReadDocuments(std::string_view text) {
  constexpr std::string_view kBlank = " \t\r\n";
  const std::size_t first = text.find_first_not_of(kBlank);
  if (first == std::string_view::npos || text[first] != '{') return ReadYaml(text);
  const std::size_t second = text.find_first_not_of(kBlank, first + 1);
  const bool json = second != std::string_view::npos && text[second] == '"';
  return json ? ReadJson(text) : ReadYaml(text);
}

// Checks one of the two fields that say what the object is.
bool CheckHeaderField(const Value& document, std::string_view field, std::string_view wanted,
                      Reader& reader) {
  const Value* value = document.Find(field);
  if (value != nullptr && value->kind == Value::Kind::kString && value->text == wanted) return true;
  const Reader::Scope scope(reader, field);
  if (value == nullptr) {
    reader.Fail(document.mark, "missing, but required: " + std::string(wanted));
  } else {
    reader.Fail(value->mark,
                (value->kind == Value::Kind::kString ? Quote(value->text)
                                                     : std::string(Describe(value->kind))) +
                    " is not supported here, use " + std::string(wanted));
  }
  return false;
}

// Returns false if it is another kind of document: nothing more about it is worth a message.
bool CheckHeader(const Value& document, std::string_view wanted, Reader& reader) {
  if (!ExpectKind(document, Value::Kind::kMap, reader)) return false;
  const bool version = CheckHeaderField(document, "apiVersion", kApiVersion, reader);
  const bool kind = CheckHeaderField(document, "kind", wanted, reader);
  return version || kind;
}

Traces ParseAll(std::string_view file, std::string_view text, const ParseOptions& options,
                std::string_view kind, const Type<Trace>& schema) {
  if (text.size() > limits::kDocumentBytes)
    return Fail(file, "is larger than " + std::to_string(limits::kDocumentBytes) + " bytes");
  Documents documents = ReadDocuments(text);
  if (!documents) {
    documents.error().file = file;
    return std::unexpected(Diagnostics{std::move(documents.error())});
  }
  if (documents->empty()) return Fail(file, "there is no " + std::string(kind) + " in it");

  Diagnostics diagnostics;
  Reader reader(file, options, diagnostics);
  std::vector<Trace> traces;
  std::set<std::pair<std::string, std::string>> names;
  for (const Value& document : *documents) {
    if (!CheckHeader(document, kind, reader)) continue;
    Trace& trace = traces.emplace_back();
    schema.Read(document, trace, reader);
    const Metadata& metadata = trace.metadata;
    if (metadata.name.empty() || names.insert({metadata.name_space, metadata.name}).second)
      continue;
    const Reader::Scope scope(reader, "metadata.name");
    reader.Fail(document.mark,
                "there are two " + std::string(kind) + "s named " + Quote(metadata.name));
  }
  if (!diagnostics.empty()) return std::unexpected(std::move(diagnostics));
  return traces;
}

}  // namespace

Mark MarkAt(std::string_view text, std::size_t offset) {
  const std::string_view before = text.substr(0, offset);
  const std::size_t newline = before.rfind('\n');
  const std::size_t line_start = newline == std::string_view::npos ? 0 : newline + 1;
  return {static_cast<int>(std::ranges::count(before, '\n')) + 1,
          static_cast<int>(before.size() - line_start) + 1};
}

Traces ParseTraces(std::string_view file, std::string_view text, const ParseOptions& options) {
  return ParseAll(file, text, options, kTraceKind, TraceSchema());
}

Traces ParseClusterTraces(std::string_view file, std::string_view text,
                          const ParseOptions& options) {
  return ParseAll(file, text, options, kClusterTraceKind, ClusterTraceSchema());
}

Traces LoadTraces(const std::string& path, const ParseOptions& options) {
  const bool standard_input = path == "-";
  const std::string name = standard_input ? "standard input" : path;
  const auto close = [](std::FILE* file) {
    if (file != stdin) std::fclose(file);
  };
  const std::unique_ptr<std::FILE, decltype(close)> file(
      standard_input ? stdin : std::fopen(path.c_str(), "re"), close);
  if (file == nullptr) return Fail(name, std::strerror(errno));

  std::string text;
  std::array<char, 16384> chunk;
  // One chunk more than allowed is enough for ParseTraces to refuse the text.
  while (text.size() <= limits::kDocumentBytes) {
    const std::size_t got = std::fread(chunk.data(), 1, chunk.size(), file.get());
    if (got == 0) break;
    text.append(chunk.data(), got);
  }
  if (std::ferror(file.get()) != 0) return Fail(name, std::strerror(errno));
  return ParseTraces(name, text, options);
}

std::expected<LabelSelector, Diagnostics> ParseLabelSelector(std::string_view source,
                                                             std::string_view text) {
  if (text.size() > limits::kDocumentBytes)
    return Fail(source, "is larger than " + std::to_string(limits::kDocumentBytes) + " bytes");
  Documents documents = ReadJson(text);
  if (!documents) {
    documents.error().file = source;
    return std::unexpected(Diagnostics{std::move(documents.error())});
  }
  if (documents->size() != 1) return Fail(source, "is not one object");
  Diagnostics diagnostics;
  const ParseOptions options;
  Reader reader(source, options, diagnostics);
  LabelSelector selector;
  LabelSelectorSchema()->Read(documents->front(), selector, reader);
  if (!diagnostics.empty()) return std::unexpected(std::move(diagnostics));
  return selector;
}

Diagnostics Validate(const Trace& trace, const ParseOptions& options) {
  Diagnostics diagnostics;
  Reader reader("", options, diagnostics);
  Trace again;
  TraceSchema().Read(TraceSchema().Write(trace), again, reader);
  return diagnostics;
}

}  // namespace weft::api
