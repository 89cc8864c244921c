// SPDX-License-Identifier: Apache-2.0
// The short form becomes a document and is read like a file, so there is one set of checks; only
// the paths in the diagnostics become flags again.
#include "lib/api/builder.h"

#include <algorithm>
#include <cctype>
#include <optional>
#include <ranges>
#include <utility>

#include "lib/api/limits.h"
#include "lib/api/names.h"
#include "lib/api/reader.h"
#include "lib/api/trace_schema.h"

namespace weft::api {
namespace {

Value Strings(const std::vector<std::string>& texts) {
  Value out = Value::List();
  for (const std::string& text : texts) out.list.push_back(Value::String(text));
  return out;
}

void AddUnlessEmpty(Value& map, std::string_view key, Value value) {
  if (!value.text.empty() || !value.list.empty() || !value.map.empty())
    map.Add(key, std::move(value));
}

// Reads LEVEL, =LEVEL or FROM..TO, as in spec.user.events[].logLevel. Unknown names are left as
// they are for the schema to refuse.
Value LogLevel(std::string_view text) {
  const auto level = [](std::string_view name) {
    const std::optional<api::LogLevel> known = ParseLogLevel(name);
    return Value::String(known ? LogLevelNames()[static_cast<std::size_t>(*known)] : name);
  };
  if (const std::size_t dots = text.find(".."); dots != std::string_view::npos)
    return Value::Map().Add("range", Value::Map()
                                         .Add("from", level(text.substr(0, dots)))
                                         .Add("to", level(text.substr(dots + 2))));
  if (text.starts_with('=')) return Value::Map().Add("exactly", level(text.substr(1)));
  return Value::Map().Add("atLeast", level(text));
}

// Takes "a,b" as two texts, as LTTng does. No name of an event or a context has a comma.
std::vector<std::string> WithoutCommas(const std::vector<std::string>& texts) {
  std::vector<std::string> out;
  for (const std::string& text : texts) {
    if (text.empty()) out.emplace_back();
    for (const auto part : std::views::split(text, ',')) out.emplace_back(part.begin(), part.end());
  }
  return out;
}

Value Events(const ShortForm& form) {
  Value out = Value::List();
  for (const std::string& name : WithoutCommas(form.events)) {
    Value event = Value::Map().Add("name", Value::String(name));
    AddUnlessEmpty(event, "exclude", Strings(WithoutCommas(form.exclude)));
    if (!form.log_level.empty()) event.Add("logLevel", LogLevel(form.log_level));
    out.list.push_back(std::move(event));
  }
  return out;
}

// Returns how many characters at `at` belong to the name of a C++ operator, such as "operator->".
std::size_t OperatorLength(std::string_view text, std::size_t at) {
  constexpr std::string_view kWord = "operator";
  const auto is_word = [&](std::size_t i) {
    return i < text.size() && (std::isalnum(static_cast<unsigned char>(text[i])) || text[i] == '_');
  };
  if (!text.substr(at).starts_with(kWord) || (at > 0 && is_word(at - 1)) ||
      is_word(at + kWord.size()))
    return 0;
  const std::string_view rest = text.substr(at + kWord.size());
  if (rest.starts_with("()")) return kWord.size() + 2;
  if (rest.starts_with(',')) return kWord.size() + 1;
  return kWord.size() + std::min(rest.find_first_not_of("<>=-!+*/%^&|~[]"), rest.size());
}

// As WithoutCommas, but commas of arguments and of templates stay: "f(int, int),g". So does a path.
std::vector<std::string> FunctionTexts(const ShortForm& form) {
  std::vector<std::string> out;
  for (const std::string& text : form.functions) {
    out.emplace_back();
    if (text.starts_with('/')) {
      out.back() = text;
      continue;
    }
    int depth = 0;
    for (std::size_t i = 0; i < text.size(); ++i) {
      if (const std::size_t length = OperatorLength(text, i)) {
        out.back().append(text, i, length);
        i += length - 1;
        continue;
      }
      if (text[i] == '(' || text[i] == '<') ++depth;
      if (text[i] == ')' || text[i] == '>') --depth;
      if (text[i] == ',' && depth <= 0)
        out.emplace_back();
      else
        out.back() += text[i];
    }
  }
  return out;
}

// Does the short form record functions of user space, and nothing else?
bool RecordsFunctionsOnly(const ShortForm& form) {
  const bool none_of_the_kernel = std::ranges::none_of(
      FunctionTexts(form), [](const auto& text) { return text.starts_with('/'); });
  return (!form.functions.empty() || !form.function_sets.empty()) && none_of_the_kernel &&
         form.events.empty() && form.kernel.empty() && form.syscalls.empty() && form.usdt.empty();
}

// A colon of a C++ name is double; a single one ends the object.
Value Functions(const ShortForm& form) {
  Value out = Value::List();
  for (const std::string& text : FunctionTexts(form)) {
    if (text.starts_with('/')) continue;  // seen by the kernel
    const std::size_t colon = text.find(':');
    const bool single =
        colon != std::string::npos && !std::string_view(text).substr(colon).starts_with("::");
    Value function = Value::Map();
    function.Add("name", Value::String(single ? text.substr(colon + 1) : text));
    if (single) function.Add("object", Value::String(text.substr(0, colon)));
    out.list.push_back(std::move(function));
  }
  for (const std::string& set : WithoutCommas(form.function_sets))
    out.list.push_back(Value::Map().Add("set", Value::String(set)));
  // As the functions' own, it chooses calls with their exits, and unknown names are refused.
  if (RecordsFunctionsOnly(form))
    for (Value& function : out.list) AddUnlessEmpty(function, "filter", Value::String(form.filter));
  return out;
}

// Makes a name for the event that is recorded.
Value IdentifierOf(std::string_view text) {
  std::string name(text.substr(0, limits::kIdentifier - 1));
  for (char& c : name)
    if (!CheckIdentifier("_" + std::string(1, c)).empty()) c = '_';
  return Value::String(CheckIdentifier(name).empty() ? name : "_" + name);
}

// A text without a colon becomes a path without a function, which the schema refuses.
Value UserProbes(const ShortForm& form) {
  Value out = Value::List();
  for (const std::string& text : FunctionTexts(form)) {
    if (!text.starts_with('/')) continue;
    const std::size_t colon = text.find(':');
    const std::string symbol = colon == std::string::npos ? "" : text.substr(colon + 1);
    Value probe = Value::Map().Add("name", IdentifierOf(symbol));
    probe.Add("object", Value::String(text.substr(0, colon)));
    probe.Add("function", Value::String(symbol)).Add("at", Value::String("both"));
    out.list.push_back(std::move(probe));
  }
  for (const std::string& text : form.usdt) {
    const std::size_t last = text.rfind(':');
    const std::size_t colon =
        last == 0 || last == std::string::npos ? last : text.rfind(':', last - 1);
    const std::string usdt = colon == std::string::npos ? "" : text.substr(colon + 1);
    Value probe = Value::Map().Add("name", IdentifierOf(usdt));
    probe.Add("object", Value::String(text.substr(0, colon))).Add("usdt", Value::String(usdt));
    out.list.push_back(std::move(probe));
  }
  return out;
}

Value Names(const std::vector<std::string>& names) {
  Value out = Value::List();
  for (const std::string& name : WithoutCommas(names))
    out.list.push_back(Value::Map().Add("name", Value::String(name)));
  return out;
}

void AddNumberUnlessEmpty(Value& map, std::string_view key, const std::string& text) {
  if (text.empty()) return;
  Value number = Value::String(text);
  number.kind = Value::Kind::kNumber;
  map.Add(key, std::move(number));
}

Value Buffer(const ShortForm& form) {
  Value out = Value::Map();
  AddUnlessEmpty(out, "size", Value::String(form.buffer_size));
  AddNumberUnlessEmpty(out, "count", form.buffer_count);
  if (form.overwrite || form.snapshot) out.Add("mode", Value::String("overwrite"));
  return out;
}

// Without the thread, calls of several threads could not be told apart afterwards.
Value Contexts(const ShortForm& form, bool has_functions) {
  if (form.context.empty() && has_functions) return Strings({"vpid", "vtid"});
  return Strings(WithoutCommas(form.context));
}

Value Spec(const ShortForm& form) {
  Value functions = Functions(form);
  Value contexts = Contexts(form, !functions.list.empty());
  Value user = Value::Map();
  AddUnlessEmpty(user, "events", Events(form));
  AddUnlessEmpty(user, "functions", std::move(functions));
  Value kernel = Value::Map();
  AddUnlessEmpty(kernel, "tracepoints", Names(form.kernel));
  AddUnlessEmpty(kernel, "syscalls", Names(form.syscalls));
  AddNumberUnlessEmpty(kernel, "syscallBuffer", form.syscall_buffer);
  AddUnlessEmpty(kernel, "userProbes", UserProbes(form));
  Value out = Value::Map();
  AddUnlessEmpty(out, "user", std::move(user));
  AddUnlessEmpty(out, "kernel", std::move(kernel));
  if (!RecordsFunctionsOnly(form)) AddUnlessEmpty(out, "filter", Value::String(form.filter));
  AddUnlessEmpty(out, "context", std::move(contexts));
  AddUnlessEmpty(out, "buffer", Buffer(form));
  if (form.snapshot) out.Add("output", Value::Map().Add("mode", Value::String("snapshot")));
  AddUnlessEmpty(out, "duration", Value::String(form.duration));
  return out;
}

struct FlagOfPath {
  std::string_view prefix;
  std::string_view inside;  // somewhere in the path behind the prefix; "": anything
  std::string_view flag;
};
// The first that fits counts.
constexpr FlagOfPath kFlags[] = {
    {"metadata.name", "", "--name"},
    {"spec.user.events", ".exclude", "--exclude"},
    {"spec.user.events", ".logLevel", "--log-level"},
    {"spec.user.events", "", "--event"},
    {"spec.user.functions", ".set", "--function-set"},
    {"spec.user.functions", ".filter", "--filter"},
    {"spec.user.functions", "", "--function"},
    {"spec.kernel.tracepoints", "", "--kernel"},
    {"spec.kernel.syscalls", "", "--syscall"},
    {"spec.kernel.syscallBuffer", "", "--syscall-buffer"},
    {"spec.kernel.userProbes", ".usdt", "--usdt"},
    {"spec.kernel.userProbes", ".function", "--function"},
    {"spec.kernel.userProbes", "", "--function or --usdt"},
    {"spec.filter", "", "--filter"},
    {"spec.context", "", "--context"},
    {"spec.buffer.count", "", "--subbufs or --buffer-count"},
    {"spec.buffer", "", "--subbuf-size or --buffer-size"},
    {"spec.duration", "", "--duration"},
};

std::string FlagFor(const std::string& path) {
  for (const FlagOfPath& entry : kFlags) {
    if (!path.starts_with(entry.prefix)) continue;
    if (path.find(entry.inside, entry.prefix.size()) == std::string::npos) continue;
    return std::string(entry.flag);
  }
  return path == "spec" ? "" : path;
}

}  // namespace

std::expected<Trace, Diagnostics> BuildTrace(const ShortForm& form, const ParseOptions& options) {
  Value document = Value::Map();
  document.Add("metadata", Value::Map().Add("name", Value::String(form.name)));
  document.Add("spec", Spec(form));

  Diagnostics diagnostics;
  Trace trace;
  if (form.events.empty() && form.functions.empty() && form.function_sets.empty() &&
      form.kernel.empty() && form.syscalls.empty() && form.usdt.empty()) {
    diagnostics.push_back(
        {.message = "nothing to record: give --event, --function, --function-set, --kernel, "
                    "--syscall or --usdt"});
    return std::unexpected(std::move(diagnostics));
  }
  Reader reader("", options, diagnostics);
  TraceSchema().Read(document, trace, reader);
  if (diagnostics.empty()) return trace;

  Diagnostics flags;
  for (Diagnostic& diagnostic : diagnostics) {
    diagnostic.path = FlagFor(diagnostic.path);
    // A flag that was given once for all events is reported once.
    if (std::ranges::find(flags, diagnostic) == flags.end()) flags.push_back(diagnostic);
  }
  return std::unexpected(std::move(flags));
}

}  // namespace weft::api
