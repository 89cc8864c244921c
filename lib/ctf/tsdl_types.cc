// SPDX-License-Identifier: Apache-2.0
#include "lib/ctf/tsdl_types.h"

#include <algorithm>
#include <bit>
#include <limits>

#include "lib/ctf/resolve.h"

namespace weft::ctf {
namespace {

// Counts nesting of the parser's own calls.
class Nesting {
 public:
  explicit Nesting(int& depth) : depth_(depth) { depth_++; }
  ~Nesting() { depth_--; }
  Nesting(const Nesting&) = delete;
  Nesting& operator=(const Nesting&) = delete;

 private:
  int& depth_;
};

bool IsText(const Type& element) {
  return element.kind == TypeKind::kInteger && element.text && element.bits == 8 &&
         element.align == 8;
}

}  // namespace

Result<uint64_t> TsdlTypes::SignedNumber() {
  const bool negative = tokens_.Accept("-");
  if (!negative) tokens_.Accept("+");
  if (tokens_.Peek().kind != TokenKind::kNumber) return tokens_.Bad("a number is missing");
  const uint64_t number = tokens_.Take().number;
  return negative ? 0 - number : number;
}

Result<Type> TsdlTypes::Lookup(const std::string& name) {
  for (size_t i = scopes_.size(); i-- > 0;) {
    const auto found = scopes_[i].find(name);
    if (found == scopes_[i].end()) continue;
    WEFT_TRY(TakeNodes(found->second, budget_));
    return found->second;
  }
  return tokens_.Bad("there is no type '" + name + "'");
}

Status TsdlTypes::Define(const std::string& name, const Type& type) {
  WEFT_TRY(TakeNodes(type, budget_));
  scopes_.back().insert_or_assign(name, type);
  return {};
}

Result<Type> TsdlTypes::ParseType(bool declares) {
  if (depth_ >= kMaxTypeDepth) {
    return Fail(ErrorCode::kLimit, tokens_.Bad("types are nested too deeply").error().message);
  }
  const Nesting nesting(depth_);
  while (tokens_.Accept("const")) {
  }
  if (tokens_.Accept("integer")) return Integer();
  if (tokens_.Accept("floating_point")) return Float();
  if (tokens_.Accept("string")) return String();
  if (tokens_.Accept("enum")) return Enum();
  if (tokens_.Accept("struct")) return Struct();
  if (tokens_.Accept("variant")) return Variant();
  return Alias(declares);
}

// Reads words up to the end, or up to the last one, which is the name that is declared.
Result<Type> TsdlTypes::Alias(bool declares) {
  size_t words = 0;
  while (tokens_.Peek(words).kind == TokenKind::kWord) words++;
  if (declares && words > 0) words--;
  if (words == 0) return tokens_.Bad("a type is missing");
  std::string name = tokens_.Take().text;
  for (size_t i = 1; i < words; i++) name += " " + tokens_.Take().text;
  return Lookup(name);
}

Result<bool> TsdlTypes::Boolean() {
  if (tokens_.Peek().kind == TokenKind::kNumber) return tokens_.Take().number != 0;
  for (const auto* word : {"true", "TRUE"}) {
    if (tokens_.Accept(word)) return true;
  }
  for (const auto* word : {"false", "FALSE"}) {
    if (tokens_.Accept(word)) return false;
  }
  return tokens_.Bad("true or false is missing");
}

Result<bool> TsdlTypes::ByteOrder() {
  WEFT_ASSIGN(const std::string order, tokens_.Word());
  if (order == "be" || order == "network") return true;
  if (order == "le") return false;
  if (order == "native") return big_endian_;
  return tokens_.Bad("unknown byte order");
}

Result<uint32_t> TsdlTypes::Align() {
  WEFT_ASSIGN(const uint64_t align, SignedNumber());
  if (align > 4096 || !std::has_single_bit(align)) return tokens_.Bad("no alignment");
  return static_cast<uint32_t>(align);
}

Result<uint8_t> TsdlTypes::Base() {
  if (tokens_.Peek().kind == TokenKind::kNumber) {
    const uint64_t base = tokens_.Take().number;
    if (base != 2 && base != 8 && base != 10 && base != 16) return tokens_.Bad("no base");
    return static_cast<uint8_t>(base);
  }
  WEFT_ASSIGN(const std::string word, tokens_.Word());
  static const std::map<std::string, uint8_t, std::less<>> kWords = {
      {"decimal", 10},     {"dec", 10}, {"d", 10}, {"i", 10},     {"u", 10},
      {"hexadecimal", 16}, {"hex", 16}, {"x", 16}, {"X", 16},     {"p", 16},
      {"octal", 8},        {"oct", 8},  {"o", 8},  {"binary", 2}, {"b", 2}};
  const auto found = kWords.find(word);
  if (found == kWords.end()) return tokens_.Bad("no base");
  return found->second;
}

Result<std::string> TsdlTypes::Path() {
  WEFT_ASSIGN(std::string path, tokens_.Word());
  while (tokens_.Accept(".")) {
    WEFT_ASSIGN(const std::string part, tokens_.Word());
    path += "." + part;
  }
  return path;
}

// Reads one "name = value;" of an integer, floating_point or string, from behind the "=".
Status TsdlTypes::Attribute(Type& type, const std::string& name) {
  if (name == "size") {
    WEFT_ASSIGN(const uint64_t size, SignedNumber());
    if (size == 0 || size > 64) return tokens_.Bad("integers have 1 to 64 bits");
    type.bits = static_cast<uint8_t>(size);
  } else if (name == "align") {
    WEFT_ASSIGN(type.align, Align());
  } else if (name == "signed") {
    WEFT_ASSIGN(type.is_signed, Boolean());
  } else if (name == "base") {
    WEFT_ASSIGN(type.base, Base());
  } else if (name == "byte_order") {
    WEFT_ASSIGN(type.big_endian, ByteOrder());
  } else if (name == "encoding") {
    WEFT_ASSIGN(const std::string encoding, tokens_.Word());
    type.text = encoding != "none";
  } else if (name == "map") {
    WEFT_ASSIGN(type.reference, Path());  // "clock.NAME.value"
    if (type.reference.starts_with("clock.")) type.reference.erase(0, 6);
    if (type.reference.ends_with(".value")) type.reference.resize(type.reference.size() - 6);
    type.clocked = true;
  } else if (name == "exp_dig" || name == "mant_dig") {
    WEFT_ASSIGN(const uint64_t digits, SignedNumber());
    if (name == "exp_dig") type.length = digits;
    if (name == "mant_dig" && digits <= 64) type.bits = static_cast<uint8_t>(digits);
  } else if (tokens_.Peek().kind == TokenKind::kWord) {
    WEFT_TRY(Path());  // an attribute of a later version: passed over
  } else if (tokens_.Peek().kind == TokenKind::kString) {
    tokens_.Take();
  } else {
    WEFT_TRY(SignedNumber());
  }
  return {};
}

Result<Type> TsdlTypes::Integer() {
  Type type = IntegerType(0, false, 10, big_endian_);
  type.align = 0;
  WEFT_TRY(tokens_.Expect("{"));
  while (!tokens_.Accept("}")) {
    WEFT_ASSIGN(const std::string name, tokens_.Word());
    WEFT_TRY(tokens_.Expect("="));
    WEFT_TRY(Attribute(type, name));
    WEFT_TRY(tokens_.Expect(";"));
  }
  if (type.bits == 0) return tokens_.Bad("an integer has no size");
  if (type.align == 0) type.align = type.bits % 8 == 0 ? 8 : 1;
  return type;
}

Result<Type> TsdlTypes::Float() {
  Type type = FloatType(0, big_endian_);
  WEFT_TRY(tokens_.Expect("{"));
  while (!tokens_.Accept("}")) {
    WEFT_ASSIGN(const std::string name, tokens_.Word());
    WEFT_TRY(tokens_.Expect("="));
    WEFT_TRY(Attribute(type, name));
    WEFT_TRY(tokens_.Expect(";"));
  }
  const uint64_t bits = type.length + type.bits;  // digits of exponent and mantissa
  if (bits != 32 && bits != 64) return tokens_.Bad("floats have 32 or 64 bits");
  type.bits = static_cast<uint8_t>(bits);
  type.length = 0;
  return type;
}

Result<Type> TsdlTypes::String() {
  Type type = StringType();
  if (!tokens_.Accept("{")) return type;
  while (!tokens_.Accept("}")) {
    WEFT_ASSIGN(const std::string name, tokens_.Word());
    WEFT_TRY(tokens_.Expect("="));
    WEFT_TRY(Attribute(type, name));
    WEFT_TRY(tokens_.Expect(";"));
  }
  type.text = true;
  return type;
}

Status TsdlTypes::Mappings(Type& type) {
  std::map<std::string, size_t> index;
  uint64_t next = 0;
  while (!tokens_.Accept("}")) {
    const Token label = tokens_.Take();
    if (label.kind != TokenKind::kWord && label.kind != TokenKind::kString) {
      return tokens_.Bad("a label is missing");
    }
    Range range{next, next};
    if (tokens_.Accept("=")) {
      WEFT_ASSIGN(range.begin, SignedNumber());
      range.end = range.begin;
      if (tokens_.Accept("...")) {
        WEFT_ASSIGN(range.end, SignedNumber());
      }
    }
    next = range.end + 1;
    const auto [found, added] = index.try_emplace(label.text, type.mappings.size());
    if (added) type.mappings.push_back({label.text, {}});
    type.mappings[found->second].ranges.push_back(range);
    if (!tokens_.Accept(",") && !tokens_.At("}")) return tokens_.Bad("',' or '}' is missing");
  }
  return {};
}

Result<Type> TsdlTypes::Enum() {
  std::string name;
  if (tokens_.Peek().kind == TokenKind::kWord) name = tokens_.Take().text;
  if (!name.empty() && !tokens_.At("{") && !tokens_.At(":")) return Lookup("enum " + name);
  Type type;
  if (tokens_.Accept(":")) {
    WEFT_ASSIGN(type, ParseType(false));
  } else {
    WEFT_ASSIGN(type, Lookup("int"));
  }
  if (type.kind != TypeKind::kInteger) return tokens_.Bad("an enum is no integer");
  type.kind = TypeKind::kEnum;
  type.text = false;
  WEFT_TRY(tokens_.Expect("{"));
  WEFT_TRY(Mappings(type));
  if (!name.empty()) WEFT_TRY(Define("enum " + name, type));
  return type;
}

// Reads a struct's or variant's members, from behind "{" to "}".
Status TsdlTypes::Members(Type& type) {
  OpenScope();
  while (!tokens_.Accept("}")) {
    if (tokens_.At("typealias") || tokens_.At("typedef")) {
      WEFT_TRY(Definition());
      continue;
    }
    WEFT_ASSIGN(Type member, ParseType(true));
    if (tokens_.Accept(";")) continue;  // a named type, defined only
    WEFT_ASSIGN(std::string name, tokens_.Word());
    WEFT_ASSIGN(member, Dimensions(std::move(member)));
    WEFT_TRY(tokens_.Expect(";"));
    uint32_t one = budget_;
    WEFT_TRY(TakeNodes(member, one));
    if (budget_-- == 0) return tokens_.Bad("too many fields");
    type.members.push_back({std::move(name), std::move(member), {}});
  }
  CloseScope();
  return {};
}

// Reads the "[n]" and "[path]" behind a name; the first one is the outermost.
Result<Type> TsdlTypes::Dimensions(Type type) {
  std::vector<Type> dimensions;
  while (tokens_.Accept("[")) {
    Type array;
    if (tokens_.Peek().kind == TokenKind::kNumber) {
      array.kind = TypeKind::kArray;
      array.length = tokens_.Take().number;
    } else {
      array.kind = TypeKind::kSequence;
      WEFT_ASSIGN(array.reference, Path());
    }
    if (dimensions.size() >= static_cast<size_t>(kMaxTypeDepth))
      return tokens_.Bad("too many dimensions");
    dimensions.push_back(std::move(array));
    WEFT_TRY(tokens_.Expect("]"));
  }
  for (size_t i = dimensions.size(); i-- > 0;) {
    Type& array = dimensions[i];
    array.align = type.align;
    array.text = IsText(type);
    array.element.push_back(std::move(type));
    type = std::move(array);
  }
  return type;
}

Result<Type> TsdlTypes::Struct() {
  std::string name;
  if (tokens_.Peek().kind == TokenKind::kWord && !tokens_.At("align")) name = tokens_.Take().text;
  if (!tokens_.Accept("{")) {
    if (name.empty()) return tokens_.Bad("a struct has neither name nor members");
    return Lookup("struct " + name);
  }
  Type type = StructType();
  type.align = 1;
  WEFT_TRY(Members(type));
  if (tokens_.Accept("align")) {
    WEFT_TRY(tokens_.Expect("("));
    WEFT_ASSIGN(type.align, Align());
    WEFT_TRY(tokens_.Expect(")"));
  }
  for (const Member& member : type.members) type.align = std::max(type.align, member.type.align);
  if (!name.empty()) WEFT_TRY(Define("struct " + name, type));
  return type;
}

Result<Type> TsdlTypes::Variant() {
  std::string name;
  std::string tag;
  if (tokens_.Peek().kind == TokenKind::kWord) name = tokens_.Take().text;
  if (tokens_.Accept("<")) {
    WEFT_ASSIGN(tag, Path());
    WEFT_TRY(tokens_.Expect(">"));
  }
  Type type;
  if (tokens_.Accept("{")) {
    type.kind = TypeKind::kVariant;
    type.align = 1;
    WEFT_TRY(Members(type));
    if (!name.empty()) WEFT_TRY(Define("variant " + name, type));
  } else {
    WEFT_ASSIGN(type, Lookup("variant " + name));
  }
  if (!tag.empty()) type.reference = tag;
  return type;
}

// typealias TYPE := WORDS;
Status TsdlTypes::Typealias() {
  WEFT_ASSIGN(const Type type, ParseType(false));
  WEFT_TRY(tokens_.Expect(":="));
  WEFT_ASSIGN(std::string name, tokens_.Word());
  while (tokens_.Peek().kind == TokenKind::kWord) name += " " + tokens_.Take().text;
  WEFT_TRY(tokens_.Expect(";"));
  return Define(name, type);
}

// typedef TYPE NAME[..];
Status TsdlTypes::Typedef() {
  WEFT_ASSIGN(Type type, ParseType(true));
  WEFT_ASSIGN(const std::string name, tokens_.Word());
  WEFT_ASSIGN(type, Dimensions(std::move(type)));
  WEFT_TRY(tokens_.Expect(";"));
  return Define(name, type);
}

Result<bool> TsdlTypes::Definition() {
  if (tokens_.Accept("typealias")) {
    WEFT_TRY(Typealias());
    return true;
  }
  if (tokens_.Accept("typedef")) {
    WEFT_TRY(Typedef());
    return true;
  }
  if (!tokens_.At("struct") && !tokens_.At("variant") && !tokens_.At("enum")) return false;
  WEFT_TRY(ParseType(false));
  WEFT_TRY(tokens_.Expect(";"));
  return true;
}

}  // namespace weft::ctf
