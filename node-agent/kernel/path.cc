// SPDX-License-Identifier: Apache-2.0
#include "node-agent/kernel/path.h"

#include <charconv>
#include <limits>
#include <utility>

#include "lib/base/ascii.h"

namespace weft::kernel {
namespace {

class Parser {
 public:
  explicit Parser(std::string_view text) : text_(text) {}

  Result<Path> Run() {
    Path path;
    if (Take('(')) {
      WEFT_ASSIGN(path.type, Name());
      if (Take(':')) {
        WEFT_ASSIGN(path.member, Name());
      }
      if (!Take(')')) return Wrong("expected ')'");
    }
    if (Take('$')) path.argument = "$";
    WEFT_ASSIGN(const std::string name, Name());
    path.argument += name;
    while (at_ < text_.size()) {
      PathStep step;
      if (Take('.')) {
        WEFT_ASSIGN(step.member, Name());
      } else if (Take('[')) {
        step.each = Take(']');
        if (!step.each) {
          WEFT_ASSIGN(step.index, Number());
          if (!Take(']')) return Wrong("expected ']'");
        }
      } else if (Take('(')) {
        WEFT_ASSIGN(step.type, Name());
        if (!Take(')')) return Wrong("expected ')'");
      } else {
        return Wrong("expected '.', '[' or '('");
      }
      path.steps.push_back(std::move(step));
    }
    return path;
  }

 private:
  bool Take(char c) {
    if (at_ >= text_.size() || text_[at_] != c) return false;
    ++at_;
    return true;
  }

  Result<std::string> Name() {
    const size_t begin = at_;
    while (at_ < text_.size() && IsWord(text_[at_])) ++at_;
    if (at_ == begin) return Wrong("expected a name");
    return std::string(text_.substr(begin, at_ - begin));
  }

  Result<uint32_t> Number() {
    uint32_t number = 0;
    const char* begin = text_.data() + at_;
    const auto [end, error] = std::from_chars(begin, text_.data() + text_.size(), number);
    if (error != std::errc()) return Wrong("expected a number");
    at_ += static_cast<size_t>(end - begin);
    return number;
  }

  [[nodiscard]] std::unexpected<Error> Wrong(std::string_view what) const {
    return Fail(ErrorCode::kInvalid, "path '" + std::string(text_) + "', character " +
                                         std::to_string(at_ + 1) + ": " + std::string(what));
  }

  std::string_view text_;
  size_t at_ = 0;
};

// Follows one path from its argument.
class Walker {
 public:
  Walker(const Btf& btf, const Path& path) : btf_(btf), path_(path) {}

  Result<Place> Run(const std::vector<Argument>& arguments) {
    WEFT_TRY(Start(arguments));
    if (!path_.type.empty()) WEFT_TRY(Cast());
    for (const PathStep& step : path_.steps) WEFT_TRY(Take(step));
    return std::move(place_);
  }

 private:
  Status Take(const PathStep& step) {
    const bool behind_cast = std::exchange(behind_cast_, false);
    if (!step.type.empty()) return Retype(step.type);
    if (step.each) return Each(behind_cast);
    return step.member.empty() ? Index(step.index, behind_cast) : Member(step.member);
  }

  Status Start(const std::vector<Argument>& arguments) {
    size_t number = arguments.size();
    const std::string& name = path_.argument;
    if (name.starts_with('$')) {
      std::from_chars(name.data() + 1, name.data() + name.size(), number);
    } else {
      for (size_t i = 0; i < arguments.size() && number == arguments.size(); ++i)
        if (arguments[i].name == name) number = i;
    }
    if (number >= arguments.size()) return Missing("argument '" + name + "'");
    place_.argument = static_cast<uint32_t>(number);
    place_.type = arguments[number].type;
    const uint64_t size = place_.type == 0 ? 8 : btf_.SizeOf(place_.type).value_or(0);
    if (size != 1 && size != 2 && size != 4 && size != 8) return Senseless("fits no register");
    place_.ops.push_back({.code = FetchCode::kArgument,
                          .arg = static_cast<uint8_t>(number),
                          .size = static_cast<uint8_t>(size),
                          .flags = SignFlag(place_.type)});
    return {};
  }

  [[nodiscard]] uint8_t SignFlag(uint32_t type) const {
    const BtfType resolved = btf_.Resolve(type);
    const bool is_enum = resolved.kind == BtfKind::kEnum || resolved.kind == BtfKind::kEnum64;
    const bool is_signed = is_enum ? resolved.flag : btf_.IntOf(resolved).is_signed;
    return is_signed ? kFetchSigned : 0;
  }

  // Takes the argument for a pointer to another structure, or into one.
  Status Cast() {
    WEFT_TRY(PointTo(path_.type));
    if (path_.member.empty()) return {};
    const auto member = btf_.FindMember(btf_.Resolve(place_.type), path_.member);
    if (!member) return Missing("member '" + path_.member + "'");
    place_.offset = -static_cast<int32_t>(member->bit_offset / 8);
    return {};
  }

  // Makes A the address of a structure, an integer, or another type of that name.
  Status PointTo(const std::string& name) {
    auto type = btf_.Find(BtfKind::kStruct, name);
    if (!type) type = btf_.Find(BtfKind::kInt, name);
    if (!type) type = btf_.Find(BtfKind::kTypedef, name);
    if (!type) return Missing("struct " + name);
    place_.in_memory = true;
    place_.offset = 0;
    place_.type = type->id;
    behind_cast_ = true;
    return {};
  }

  // Changes the current pointer's type to a pointer to the named type. Pointers of 32-bit programs
  // are integers.
  Status Retype(const std::string& name) {
    const BtfType here = btf_.Resolve(place_.type);
    const bool is_pointer = here.kind == BtfKind::kPointer;
    const uint32_t size = is_pointer ? sizeof(uint64_t) : here.size_or_ref;
    const bool is_address = is_pointer || (here.kind == BtfKind::kInt && (size == 4 || size == 8));
    if (place_.stride != 0) return Senseless("is a pointer of each element");
    if (!place_.in_memory || place_.bit_size != 0 || !is_address) return Senseless("is no pointer");
    place_.LoadValue(static_cast<uint8_t>(size), false);
    place_.flags = 0;
    return PointTo(name);
  }

  // Goes from a pointer to the object that it points to.
  Status Enter() {
    const BtfType pointer = btf_.Resolve(place_.type);
    if (pointer.kind != BtfKind::kPointer) return Senseless("is no pointer");
    if (place_.stride != 0) return Senseless("is a pointer of each element");
    const BtfType target = btf_.Resolve(pointer.size_or_ref);
    if (place_.in_memory) {
      place_.LoadValue(sizeof(uint64_t), false);
      place_.flags = 0;
    } else {
      // The object that a tracepoint's own argument points to exists, as far as its type goes.
      const bool whole = target.kind == BtfKind::kStruct || target.kind == BtfKind::kUnion;
      place_.flags = whole ? kFetchTrusted : 0;
    }
    place_.in_memory = true;
    place_.offset = 0;
    place_.type = pointer.size_or_ref;
    return {};
  }

  Status Member(const std::string& name) {
    if (place_.bit_size != 0) return Senseless("is a bit-field");
    BtfType type = btf_.Resolve(place_.type);
    if (!place_.in_memory || type.kind == BtfKind::kPointer) {
      WEFT_TRY(Enter());
      type = btf_.Resolve(place_.type);
    }
    if (type.kind != BtfKind::kStruct && type.kind != BtfKind::kUnion)
      return Senseless("is no structure with a member '" + name + "'");
    const auto member = btf_.FindMember(type, name);
    if (!member) return Missing("member '" + name + "' of struct " + std::string(type.name));
    place_.type = member->type;
    WEFT_TRY(Advance(member->bit_offset / 8));
    if (member->bit_size == 0) return {};
    place_.bit_size = member->bit_size;
    place_.bit_offset = member->bit_offset % 8;
    if ((place_.offset & 7) * 8 + place_.bit_offset + place_.bit_size > 64)
      return Senseless("is a bit-field across words");
    return {};
  }

  Status Index(uint32_t index, bool behind_cast) {
    if (place_.bit_size != 0) return Senseless("is a bit-field");
    BtfType type = btf_.Resolve(place_.type);
    uint32_t element = 0;
    if (place_.in_memory && type.kind == BtfKind::kArray) {
      const BtfArray array = btf_.ArrayOf(type);
      if (array.count == 0) place_.flags = 0;  // at a structure's end: how long?
      if (array.count != 0 && index >= array.count)
        return Missing("element " + std::to_string(index));
      element = array.element;
    } else if (behind_cast) {
      element = place_.type;
    } else {
      WEFT_TRY(Enter());
      element = place_.type;
      if (index > 0) place_.flags = 0;  // an array behind a pointer: how long?
    }
    const auto size = btf_.SizeOf(element);
    if (!size) return Senseless("has elements without a size");
    place_.type = element;
    return Advance(*size * index);
  }

  // Begins a sequence with each element of an array of the type that was cast to.
  Status Each(bool behind_cast) {
    const uint64_t size = btf_.SizeOf(place_.type).value_or(0);
    if (!behind_cast || size == 0 || size > std::numeric_limits<uint8_t>::max())
      return Senseless("is no array of small elements behind a cast");
    place_.stride = static_cast<uint8_t>(size);
    return {};
  }

  Status Advance(uint64_t bytes) {
    const uint64_t offset = static_cast<uint64_t>(int64_t{place_.offset}) + bytes;
    if (static_cast<int64_t>(offset) > std::numeric_limits<int32_t>::max())
      return Senseless("is too far away");
    place_.offset = static_cast<int32_t>(offset);
    return {};
  }

  [[nodiscard]] std::unexpected<Error> Missing(const std::string& what) const {
    return Fail(ErrorCode::kNotFound, "this kernel has no " + what);
  }
  [[nodiscard]] std::unexpected<Error> Senseless(const std::string& what) const {
    return Fail(ErrorCode::kUnsupported,
                "in this kernel a part of '" + path_.argument + "...' " + what);
  }

  const Btf& btf_;
  const Path& path_;
  Place place_;
  bool behind_cast_ = false;  // that was the last step
};

}  // namespace

Result<Path> Path::Parse(std::string_view text) { return Parser(text).Run(); }

void Place::LoadValue(uint8_t size, bool is_signed) {
  const auto sign = static_cast<uint8_t>(is_signed ? kFetchSigned : 0);
  if (bit_size == 0) {
    if (in_memory)
      ops.push_back({.code = FetchCode::kLoad,
                     .size = size,
                     .flags = static_cast<uint8_t>(flags | sign),
                     .offset = offset});
  } else {
    // The smallest word that has all bits; a bit-field never crosses its type's own.
    uint8_t word = 1;
    int32_t begin = offset;
    int32_t from = bit_offset;
    while (from + bit_size > word * 8 && word < sizeof(uint64_t)) {
      word = static_cast<uint8_t>(word * 2);
      begin = offset & ~(word - 1);
      from = bit_offset + (offset - begin) * 8;
    }
    ops.push_back({.code = FetchCode::kLoad, .size = word, .flags = flags, .offset = begin});
    ops.push_back({.code = FetchCode::kBits, .size = bit_size, .flags = sign, .offset = from});
  }
  in_memory = false;
  offset = 0;
  bit_size = 0;
}

Result<Place> Locate(const Btf& btf, const std::vector<Argument>& arguments, const Path& path) {
  return Walker(btf, path).Run(arguments);
}

}  // namespace weft::kernel
