// SPDX-License-Identifier: Apache-2.0
// YAML, by yaml-cpp's event interface: its Node would forget double keys, the difference between
// 1 and "1", and most places.
#include <yaml-cpp/eventhandler.h>
#include <yaml-cpp/yaml.h>

#include <algorithm>
#include <map>
#include <sstream>

#include "lib/api/document.h"
#include "lib/api/limits.h"
#include "lib/api/tree_builder.h"

namespace weft::api {
namespace {

// Is thrown through yaml-cpp to end a parse whose failure the builder holds.
struct Stop {};

Mark ToMark(const YAML::Mark& mark) { return {mark.line + 1, mark.column + 1}; }

bool IsOneOf(std::string_view text, std::initializer_list<std::string_view> words) {
  return std::ranges::find(words, text) != words.end();
}

// Does YAML 1.1 take the word for a boolean?
bool IsBool(std::string_view text) {
  return IsOneOf(
      text, {"y",    "Y",    "yes",   "Yes",   "YES",   "n",  "N",  "no", "No",  "NO",  "true",
             "True", "TRUE", "false", "False", "FALSE", "on", "On", "ON", "off", "Off", "OFF"});
}

bool IsNull(std::string_view text) { return IsOneOf(text, {"", "~", "null", "Null", "NULL"}); }

// Is it a number for YAML 1.1 or 1.2? It accepts a little more: digits with _, 0x, 0o, 0b,
// fractions, exponents, .inf, .nan.
bool IsNumber(std::string_view text) {
  if (text.starts_with('-') || text.starts_with('+')) text.remove_prefix(1);
  if (IsOneOf(text, {".inf", ".Inf", ".INF", ".nan", ".NaN", ".NAN"})) return true;
  if (text.size() > 2 && text[0] == '0' && IsOneOf(text.substr(1, 1), {"x", "X", "o", "b"}))
    return text.find_first_not_of("0123456789abcdefABCDEF_", 2) == std::string_view::npos;
  const auto take_digits = [&] {
    const std::size_t count = std::min(text.find_first_not_of("0123456789_"), text.size());
    const bool real = text.substr(0, count).find_first_not_of('_') < count;
    text.remove_prefix(count);
    return real;
  };
  if (text.starts_with('_')) return false;
  bool digits = take_digits();
  if (text.starts_with('.')) {
    text.remove_prefix(1);
    digits = take_digits() || digits;
  }
  if (!digits) return false;
  if (text.starts_with('e') || text.starts_with('E')) {
    text.remove_prefix(1);
    if (text.starts_with('-') || text.starts_with('+')) text.remove_prefix(1);
    if (!take_digits()) return false;
  }
  return text.empty();
}

Value::Kind PlainKind(std::string_view text) {
  if (IsNull(text)) return Value::Kind::kNull;
  if (IsBool(text)) return Value::Kind::kBool;
  return IsNumber(text) ? Value::Kind::kNumber : Value::Kind::kString;
}

class Handler final : public YAML::EventHandler {
 public:
  explicit Handler(std::string_view text) : text_(text) {}

  TreeBuilder& builder() { return builder_; }

  void OnDocumentStart(const YAML::Mark&) override { anchors_.clear(); }
  void OnDocumentEnd() override {}

  void OnNull(const YAML::Mark& mark, YAML::anchor_t anchor) override {
    if (builder_.NodeIsKey()) Refuse(mark, "a key must not be empty");
    Value value;
    value.mark = NullMark(mark);
    Check(builder_.Scalar(std::move(value)));
    Remember(anchor);
  }

  void OnAlias(const YAML::Mark& mark, YAML::anchor_t anchor) override {
    if (builder_.NodeIsKey()) Refuse(mark, "an alias cannot be a key here");
    const auto at = anchors_.find(anchor);
    if (at == anchors_.end()) Refuse(mark, "this alias refers to a value that contains it");
    Check(builder_.Copy(at->second, ToMark(mark)));
  }

  void OnScalar(const YAML::Mark& mark, const std::string& tag, YAML::anchor_t anchor,
                const std::string& text) override {
    if (builder_.NodeIsKey()) {
      if (text == "<<" && tag == "?") Refuse(mark, "merge keys (<<) are not supported");
      Check(builder_.Key(text, ToMark(mark)));
      return;
    }
    Value value;
    value.kind = ScalarKind(mark, tag, text);
    value.mark = ToMark(mark);
    value.text = text;
    value.quote = Quotation(mark, text);
    Check(builder_.Scalar(std::move(value)));
    Remember(anchor);
  }

  void OnSequenceStart(const YAML::Mark& mark, const std::string& tag, YAML::anchor_t anchor,
                       YAML::EmitterStyle::value) override {
    Begin(mark, tag, "seq", anchor, Value::Kind::kList);
  }
  void OnSequenceEnd() override { End(); }

  void OnMapStart(const YAML::Mark& mark, const std::string& tag, YAML::anchor_t anchor,
                  YAML::EmitterStyle::value) override {
    Begin(mark, tag, "map", anchor, Value::Kind::kMap);
  }
  void OnMapEnd() override { End(); }

 private:
  static constexpr std::string_view kTagPrefix = "tag:yaml.org,2002:";

  void Check(bool good) {
    if (!good) throw Stop();
  }
  [[noreturn]] void Refuse(const YAML::Mark& mark, std::string message) {
    builder_.Fail(ToMark(mark), std::move(message));
    throw Stop();
  }

  Value::Kind ScalarKind(const YAML::Mark& mark, std::string_view tag, std::string_view text) {
    if (tag == "!") return Value::Kind::kString;  // quoted, or a block
    if (tag.empty() || tag == "?") return PlainKind(text);
    if (tag.starts_with(kTagPrefix)) {
      const std::string_view type = tag.substr(kTagPrefix.size());
      if (type == "str") return Value::Kind::kString;
      const Value::Kind kind = PlainKind(text);
      if ((type == "bool" && kind == Value::Kind::kBool) ||
          (IsOneOf(type, {"int", "float"}) && kind == Value::Kind::kNumber) ||
          (type == "null" && kind == Value::Kind::kNull))
        return kind;
    }
    Refuse(mark, "the tag " + Quote(tag) + " is not supported here");
  }

  // yaml-cpp puts a node that is not there where the next token begins, often lines below. This
  // goes back over the blanks. It passes each blank once, and looks for the beginning of each line
  // once.
  Mark NullMark(const YAML::Mark& mark) const {
    Mark out = ToMark(mark);
    std::size_t at = std::min(static_cast<std::size_t>(std::max(mark.pos, 0)), text_.size());
    int lines = 0;
    while (at > 0 && std::string_view(" \r\n").find(text_[at - 1]) != std::string_view::npos) {
      --at;
      if (text_[at] == '\n') ++lines;
    }
    if (lines == 0) return out;
    const std::size_t newline = at == 0 ? std::string_view::npos : text_.rfind('\n', at - 1);
    const std::size_t line_start = newline == std::string_view::npos ? 0 : newline + 1;
    return {out.line - lines, static_cast<int>(at - line_start) + 1};
  }

  // See Value::quote.
  int Quotation(const YAML::Mark& mark, const std::string& text) const {
    if (mark.pos < 0 || text.find('\n') != std::string::npos) return -1;
    const auto position = static_cast<std::size_t>(mark.pos);
    for (const int quote : {0, 1}) {
      const std::size_t at = position + static_cast<std::size_t>(quote);
      if (at < text_.size() && text_.substr(at, text.size()) == text) return quote;
    }
    return -1;
  }

  void Begin(const YAML::Mark& mark, std::string_view tag, std::string_view type,
             YAML::anchor_t anchor, Value::Kind kind) {
    if (builder_.NodeIsKey()) Refuse(mark, "a key must be a string");
    if (!tag.empty() && tag != "?" && tag != "!" &&
        tag != std::string(kTagPrefix) + std::string(type))
      Refuse(mark, "the tag " + Quote(tag) + " is not supported here");
    Check(builder_.Begin(kind, ToMark(mark)));
    open_anchors_.push_back(anchor);
  }

  void End() {
    Check(builder_.End());
    const YAML::anchor_t anchor = open_anchors_.back();
    open_anchors_.pop_back();
    Remember(anchor);
  }

  // An anchored node is kept apart, so that an alias may stand anywhere behind it.
  void Remember(YAML::anchor_t anchor) {
    if (anchor == YAML::NullAnchor) return;
    Check(builder_.Charge(*builder_.last()));
    anchors_.insert_or_assign(anchor, *builder_.last());
  }

  std::string_view text_;
  TreeBuilder builder_;
  std::map<YAML::anchor_t, Value> anchors_;
  std::vector<YAML::anchor_t> open_anchors_;
};

// yaml-cpp takes byte 4 for the end of the file, and tabs where YAML forbids them; a NUL may make
// it guess UTF-16. YAML allows none of these control characters.
std::optional<Diagnostic> FindControl(std::string_view text) {
  for (std::size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    if (static_cast<unsigned char>(c) >= ' ' ? c != '\x7f' : c == '\n' || c == '\r' || c == '\t')
      continue;
    const Mark mark = MarkAt(text, i);
    return Diagnostic{"", mark.line, mark.column, "",
                      "a control character, " + Quote({&c, 1}) + ", is not YAML"};
  }
  return std::nullopt;
}

Diagnostic SyntaxError(const YAML::Exception& error) {
  Diagnostic out;
  if (!error.mark.is_null()) {
    out.line = error.mark.line + 1;
    out.column = error.mark.column + 1;
  }
  out.message = "not YAML: " + error.msg;
  // Many users write `name: *:*` first.
  if (error.msg == YAML::ErrorMsg::ALIAS_NOT_FOUND || error.msg == YAML::ErrorMsg::UNKNOWN_ANCHOR)
    out.message += "; a pattern that begins with * must be in quotes";
  return out;
}

bool NeedsQuotes(std::string_view text) {
  const auto safe = [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
           std::string_view("_-./$").find(c) != std::string_view::npos;
  };
  const auto letter = [](char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z'); };
  if (text.empty() || PlainKind(text) != Value::Kind::kString) return true;
  if (!letter(text.front()) && text.front() != '_') return true;
  return !std::ranges::all_of(text, safe);
}

void EmitString(YAML::Emitter& out, const std::string& text) {
  if (NeedsQuotes(text)) out << YAML::DoubleQuoted;
  out << text;
}

void Emit(YAML::Emitter& out, const Value& value) {
  switch (value.kind) {
    case Value::Kind::kNull:
      out << YAML::Null;
      return;
    case Value::Kind::kBool:
    case Value::Kind::kNumber:
      out << value.text;
      return;
    case Value::Kind::kString:
      EmitString(out, value.text);
      return;
    case Value::Kind::kList:
      if (value.list.empty()) out << YAML::Flow;
      out << YAML::BeginSeq;
      for (const Value& item : value.list) Emit(out, item);
      out << YAML::EndSeq;
      return;
    case Value::Kind::kMap:
      if (value.map.empty()) out << YAML::Flow;
      out << YAML::BeginMap;
      for (const Entry& entry : value.map) {
        out << YAML::Key;
        EmitString(out, entry.key);
        out << YAML::Value;
        Emit(out, entry.value);
      }
      out << YAML::EndMap;
      return;
  }
}

}  // namespace

Documents ReadYaml(std::string_view text) {
  if (auto control = FindControl(text)) return std::unexpected(std::move(*control));
  std::vector<Value> documents;
  Handler handler(text);
  try {
    std::istringstream stream{std::string(text)};
    YAML::Parser parser(stream);
    while (parser.HandleNextDocument(handler)) {
      Value document = handler.builder().Take();
      if (document.kind == Value::Kind::kNull) continue;
      documents.push_back(std::move(document));
      if (documents.size() > limits::kDocuments)
        return std::unexpected(Diagnostic{
            "", 0, 0, "", "has more than " + std::to_string(limits::kDocuments) + " documents"});
    }
  } catch (const Stop&) {
    return std::unexpected(*handler.builder().failure());
  } catch (const YAML::Exception& error) {
    return std::unexpected(SyntaxError(error));
  } catch (const std::exception& error) {
    return std::unexpected(Diagnostic{"", 0, 0, "", std::string("not YAML: ") + error.what()});
  }
  return documents;
}

std::string WriteYaml(const Value& value) {
  YAML::Emitter out;
  Emit(out, value);
  return std::string(out.c_str(), out.size()) + "\n";
}

}  // namespace weft::api
