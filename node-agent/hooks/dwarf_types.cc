// SPDX-License-Identifier: Apache-2.0
// See dwarf_types.h. DWARF 5, sections 3.3 (subprograms) and 5 (types); System V ABI for x86-64,
// 3.2.3.
//
// A type that takes several registers, or none, ends what is recorded: the place of the arguments
// behind it would be a guess.
#include "node-agent/hooks/dwarf_types.h"

#include <dwarf.h>
#include <elfutils/libdw.h>

#include <algorithm>
#include <memory>
#include <optional>
#include <string_view>

#include "lib/abi/hooks.h"
#include "lib/api/function_args.h"
#include "node-agent/hooks/limits.h"

namespace weft::hooks {
namespace {

using api::ValueType;

enum class Place : uint8_t { kRegisters, kMemory, kUnknown };

constexpr uint64_t kRegistersOfResult = 16;  // bytes

bool IsC(int language) {
  switch (language) {
    case DW_LANG_C:
    case DW_LANG_C89:
    case DW_LANG_C99:
    case DW_LANG_C11:
    case DW_LANG_ObjC:
      return true;
    default:
      return false;
  }
}

bool IsCpp(int language) {
  switch (language) {
    case DW_LANG_C_plus_plus:
    case DW_LANG_C_plus_plus_03:
    case DW_LANG_C_plus_plus_11:
    case DW_LANG_C_plus_plus_14:
    case DW_LANG_ObjC_plus_plus:
      return true;
    default:
      return false;
  }
}

bool IsAggregate(int tag) {
  return tag == DW_TAG_structure_type || tag == DW_TAG_class_type || tag == DW_TAG_union_type;
}

// Returns the type of a DIE without names and qualifiers; false: it has none (void), or one that
// cannot be read.
bool TypeOf(Dwarf_Die* die, Dwarf_Die& type) {
  Dwarf_Attribute attribute;
  if (dwarf_attr_integrate(die, DW_AT_type, &attribute) == nullptr ||
      dwarf_formref_die(&attribute, &type) == nullptr)
    return false;
  for (int i = 0; i < kMaxTypeDepth; ++i) {
    switch (dwarf_tag(&type)) {
      case DW_TAG_typedef:
      case DW_TAG_const_type:
      case DW_TAG_volatile_type:
      case DW_TAG_restrict_type:
      case DW_TAG_atomic_type:
        break;
      default:
        return true;
    }
    Dwarf_Die next;
    if (dwarf_attr(&type, DW_AT_type, &attribute) == nullptr ||
        dwarf_formref_die(&attribute, &next) == nullptr)
      return false;
    type = next;
  }
  return false;
}

std::optional<uint64_t> NumberOf(Dwarf_Die* die, unsigned name) {
  Dwarf_Attribute attribute;
  Dwarf_Word value = 0;
  if (dwarf_attr_integrate(die, name, &attribute) == nullptr ||
      dwarf_formudata(&attribute, &value) != 0)
    return std::nullopt;
  return value;
}

std::optional<ValueType> Integer(uint64_t size, bool is_signed) {
  switch (size) {
    case 1:
      return is_signed ? ValueType::kInt8 : ValueType::kUint8;
    case 2:
      return is_signed ? ValueType::kInt16 : ValueType::kUint16;
    case 4:
      return is_signed ? ValueType::kInt32 : ValueType::kUint32;
    case 8:
      return is_signed ? ValueType::kInt64 : ValueType::kUint64;
    default:
      return std::nullopt;
  }
}

std::optional<ValueType> BaseType(Dwarf_Die* type) {
  const uint64_t size = NumberOf(type, DW_AT_byte_size).value_or(0);
  switch (NumberOf(type, DW_AT_encoding).value_or(0)) {
    case DW_ATE_signed:
    case DW_ATE_signed_char:
      return Integer(size, true);
    case DW_ATE_unsigned:
    case DW_ATE_unsigned_char:
    case DW_ATE_boolean:
    case DW_ATE_UTF:
      return Integer(size, false);
    case DW_ATE_float:
      if (size == 4) return ValueType::kFloat;
      if (size == 8) return ValueType::kDouble;
      return std::nullopt;
    default:
      return std::nullopt;
  }
}

// Returns the type of a value that lies in one register or in 8 bytes of the stack.
std::optional<ValueType> Scalar(Dwarf_Die* type) {
  switch (dwarf_tag(type)) {
    case DW_TAG_base_type:
      return BaseType(type);
    case DW_TAG_enumeration_type: {
      Dwarf_Die underlying;
      if (TypeOf(type, underlying) && dwarf_tag(&underlying) == DW_TAG_base_type)
        return BaseType(&underlying);
      return Integer(NumberOf(type, DW_AT_byte_size).value_or(0), false);
    }
    case DW_TAG_pointer_type:
    case DW_TAG_reference_type:
    case DW_TAG_rvalue_reference_type:
      return ValueType::kPointer;
    default:
      return std::nullopt;
  }
}

// Has a class nothing but scalars, so that it can be copied bit by bit? False: this is not known.
bool IsPlain(Dwarf_Die* type) {
  Dwarf_Die die;
  if (dwarf_child(type, &die) != 0) return true;
  do {
    Dwarf_Die member;
    if (dwarf_tag(&die) != DW_TAG_member || !TypeOf(&die, member) || !Scalar(&member)) return false;
  } while (dwarf_siblingof(&die, &die) == 0);
  return true;
}

// Where a struct or a class is when it is returned. C++ returns a small class in registers if it
// can be copied bit by bit; clang writes that down, gcc does not.
Place PlaceOf(Dwarf_Die* type, bool is_cpp) {
  const auto size = NumberOf(type, DW_AT_byte_size);
  if (!size) return Place::kUnknown;
  if (*size > kRegistersOfResult) return Place::kMemory;
  if (!is_cpp) return Place::kRegisters;
  const auto convention = NumberOf(type, DW_AT_calling_convention);
  if (convention == DW_CC_pass_by_reference) return Place::kMemory;
  if (convention == DW_CC_pass_by_value || IsPlain(type)) return Place::kRegisters;
  return Place::kUnknown;
}

// Sections that are not read for types. libdw makes all sections that are compressed whole, which
// takes memory.
constexpr std::string_view kUnused[] = {"aranges", "frame", "line",     "loc",     "loclists",
                                        "macinfo", "macro", "pubnames", "pubtypes"};

// libdw ignores sections that have no bytes in the file. The headers that libelf has are copies.
void HideUnused(Elf* elf) {
  size_t names = 0;
  if (elf_getshdrstrndx(elf, &names) != 0) return;
  for (Elf_Scn* section = nullptr; (section = elf_nextscn(elf, section)) != nullptr;) {
    GElf_Shdr header;
    if (gelf_getshdr(section, &header) == nullptr) continue;
    const char* text = elf_strptr(elf, names, header.sh_name);
    std::string_view name = text == nullptr ? "" : text;
    for (const std::string_view prefix : {".debug_", ".zdebug_"}) {
      if (!name.starts_with(prefix)) continue;
      name.remove_prefix(prefix.size());
      if (std::ranges::find(kUnused, name) == std::end(kUnused)) continue;
      header.sh_type = SHT_NOBITS;
      (void)gelf_update_shdr(section, &header);
    }
  }
}

// Finds a member of a struct by its name, also in members without one, and in base classes.
// `offset`: its own is added.
bool FindMember(Dwarf_Die* aggregate, const std::string& name, int depth, Dwarf_Die& type,
                uint64_t& offset) {
  Dwarf_Die die;
  if (depth > kMaxTypeDepth || dwarf_child(aggregate, &die) != 0) return false;
  do {
    const bool is_base = dwarf_tag(&die) == DW_TAG_inheritance;
    if (dwarf_tag(&die) != DW_TAG_member && !is_base) continue;
    Dwarf_Attribute attribute;
    // A bit field has no place of its own, and a static member is elsewhere.
    if (dwarf_attr(&die, DW_AT_bit_size, &attribute) != nullptr ||
        dwarf_attr(&die, DW_AT_external, &attribute) != nullptr || !TypeOf(&die, type))
      continue;
    const bool is_union = dwarf_tag(aggregate) == DW_TAG_union_type;
    const auto place = NumberOf(&die, DW_AT_data_member_location);
    if (!place && !is_union) continue;
    const char* text = dwarf_attr(&die, DW_AT_name, &attribute) == nullptr
                           ? nullptr
                           : dwarf_formstring(&attribute);
    uint64_t at = offset + place.value_or(0);
    const bool is_inside = (text == nullptr || is_base) && IsAggregate(dwarf_tag(&type));
    Dwarf_Die inner = type;
    if (text != nullptr && !is_base ? name == text
                                    : is_inside && FindMember(&inner, name, depth + 1, type, at)) {
      offset = at;
      return true;
    }
  } while (dwarf_siblingof(&die, &die) == 0);
  return false;
}

bool HasMember(Dwarf_Die type, const std::string& name) {
  Dwarf_Die member;
  uint64_t offset = 0;
  return IsAggregate(dwarf_tag(&type)) && FindMember(&type, name, 0, member, offset);
}

// Returns how a path is written that has "." behind a pointer, or "->" behind a struct, before this
// member; "": that is not its mistake. `before`: the name of the one with this type.
std::string WriteInstead(const std::string& before, Dwarf_Die type, const std::string& member) {
  Dwarf_Die target;
  if (before.empty()) return "";
  if (HasMember(type, member)) return before + "." + member;
  const bool leads = Scalar(&type) == ValueType::kPointer && TypeOf(&type, target);
  return leads && HasMember(target, member) ? before + "->" + member : "";
}

// Follows the steps of a path from an argument of this type.
MemberPlace Follow(const std::vector<std::vector<std::string>>& steps, Dwarf_Die type) {
  MemberPlace place;
  bool is_known = true;  // the type; behind a number it is not
  std::string before;    // the last member, if it has a name
  for (const auto& members : steps) {
    Dwarf_Die target;
    const bool is_pointer =
        is_known && Scalar(&type) == ValueType::kPointer && TypeOf(&type, target);
    if (is_known && !is_pointer) place.instead = WriteInstead(before, type, members.front());
    before.clear();
    is_known = is_pointer;
    if (is_known) type = target;
    uint64_t offset = 0;
    for (const std::string& member : members) {
      if (const auto number = api::ParseCount(member)) {
        offset += *number;
        is_known = false;
        before.clear();
        continue;
      }
      Dwarf_Die of = type;
      if (!is_known || !IsAggregate(dwarf_tag(&of)) || !FindMember(&of, member, 0, type, offset)) {
        place.unknown = member;
        if (is_known) place.instead = WriteInstead(before, of, member);
        return place;
      }
      before = member;
    }
    if (!place.steps.empty()) place.steps += "->";
    place.steps += std::to_string(offset);
  }
  if (!is_known) return place;
  place.type = Scalar(&type);
  place.is_array = dwarf_tag(&type) == DW_TAG_array_type;
  return place;
}

// gcc makes several versions of a constructor or destructor from one origin. These parameters of
// the origin are passed to some versions only, or to none.
bool IsOfSomeVersions(std::string_view parameter) {
  return parameter == "__in_chrg" || parameter == "__vtt_parm";
}

// Is this parameter a child of the function, or the origin of one?
bool HasParameter(Dwarf_Die* function, const Dwarf_Die& parameter) {
  Dwarf_Die die;
  if (dwarf_child(function, &die) != 0) return false;
  do {
    Dwarf_Attribute attribute;
    Dwarf_Die origin = die;
    if (dwarf_attr(&die, DW_AT_abstract_origin, &attribute) != nullptr &&
        dwarf_formref_die(&attribute, &origin) == nullptr)
      continue;
    if (origin.addr == parameter.addr) return true;
  } while (dwarf_siblingof(&die, &die) == 0);
  return false;
}

// A file with DWARF, while it is open.
class DwarfFile {
 public:
  // -1: there is none.
  explicit DwarfFile(int file)
      : elf_(file < 0 ? nullptr : elf_begin(file, ELF_C_READ_MMAP, nullptr), elf_end),
        dwarf_(nullptr, dwarf_end) {
    if (elf_ == nullptr) {
      why_not_ = elf_errmsg(-1);
      return;
    }
    HideUnused(elf_.get());
    dwarf_.reset(dwarf_begin_elf(elf_.get(), DWARF_C_READ, nullptr));
    if (dwarf_ == nullptr) why_not_ = dwarf_errmsg(-1);
  }

  [[nodiscard]] Dwarf* dwarf() const { return dwarf_.get(); }  // nullptr: it cannot be read
  [[nodiscard]] const std::string& why_not() const { return why_not_; }

 private:
  std::unique_ptr<Elf, int (*)(Elf*)> elf_;
  std::unique_ptr<Dwarf, int (*)(Dwarf*)> dwarf_;
  std::string why_not_;
};

class Reader {
 public:
  Reader(Dwarf* dwarf, const std::vector<uint64_t>& addresses,
         const std::vector<std::string>& paths)
      : dwarf_(dwarf), addresses_(addresses) {
    for (const std::string& text : paths) {
      // The argument may be a number, which is no name.
      const size_t end = text.find("->");
      std::string why;
      if (end == std::string::npos) continue;
      auto path = api::ParseMemberPath("a" + text.substr(end), why);
      if (path) paths_.push_back({text, text.substr(0, end), std::move(path->steps)});
    }
  }

  TypesByAddress Read() {
    Dwarf_CU* unit = nullptr;
    Dwarf_Die die;
    uint8_t kind = 0;
    while (dwarf_get_units(dwarf_, unit, &unit, nullptr, &kind, &die, nullptr) == 0) {
      if (kind == DW_UT_skeleton) is_split_ = true;
      const int language = kind == DW_UT_compile ? dwarf_srclang(&die) : -1;
      if (!IsC(language) && !IsCpp(language)) continue;
      is_cpp_ = IsCpp(language);
      has_types_ = false;
      TypesByAddress all;
      all.swap(types_);
      if (Concerns(&die)) ReadChildren(&die, 0);
      if (!has_types_) types_.clear();
      types_.merge(all);
    }
    return std::move(types_);
  }

  // Is there a unit whose contents are in another file?
  [[nodiscard]] bool is_split() const { return is_split_; }

 private:
  // Is one of the addresses in this unit?
  bool Concerns(Dwarf_Die* unit) const {
    Dwarf_Addr base = 0, begin = 0, end = 0;
    for (ptrdiff_t at = 0; (at = dwarf_ranges(unit, at, &base, &begin, &end)) > 0;) {
      const auto first = std::ranges::lower_bound(addresses_, begin);
      if (first != addresses_.end() && *first < end) return true;
    }
    return false;
  }

  void ReadChildren(Dwarf_Die* parent, int depth) {
    Dwarf_Die die;
    if (depth > kMaxTypeDepth || dwarf_child(parent, &die) != 0) return;
    do {
      if (dwarf_tag(&die) == DW_TAG_base_type) has_types_ = true;
      if (dwarf_tag(&die) == DW_TAG_subprogram) ReadFunction(&die);
      if (dwarf_tag(&die) == DW_TAG_namespace) ReadChildren(&die, depth + 1);
    } while (dwarf_siblingof(&die, &die) == 0);
  }

  [[nodiscard]] bool IsWanted(Dwarf_Addr address) const {
    return std::ranges::binary_search(addresses_, address);
  }

  // Returns the address of a function if its types are wanted. A function that the compiler split
  // into a hot and a cold part has a range for each, and no low_pc.
  std::optional<Dwarf_Addr> WantedAddress(Dwarf_Die* function) const {
    Dwarf_Addr base = 0, begin = 0, end = 0;
    if (dwarf_entrypc(function, &begin) == 0 || dwarf_lowpc(function, &begin) == 0)
      return IsWanted(begin) ? std::optional(begin) : std::nullopt;
    for (ptrdiff_t at = 0; (at = dwarf_ranges(function, at, &base, &begin, &end)) > 0;)
      if (IsWanted(begin)) return begin;
    return std::nullopt;
  }

  void ReadFunction(Dwarf_Die* function) {
    const auto address = WantedAddress(function);
    if (!address || NumberOf(function, DW_AT_calling_convention) == DW_CC_nocall) return;
    FunctionTypes types;
    if (!ReadResult(function, types)) return;
    // A copy of an inline function may have fewer parameters, in another order.
    Dwarf_Attribute attribute;
    Dwarf_Die origin = *function;
    if (dwarf_attr(function, DW_AT_abstract_origin, &attribute) != nullptr &&
        dwarf_formref_die(&attribute, &origin) == nullptr)
      return;
    ReadParameters(&origin, function, types);
    if (types.returns || !types.args.empty()) has_types_ = true;
    types_.emplace(*address, std::move(types));
  }

  // False: where the arguments are is not known.
  bool ReadResult(Dwarf_Die* function, FunctionTypes& types) const {
    Dwarf_Die type;
    if (!TypeOf(function, type)) {
      Dwarf_Attribute attribute;
      return dwarf_attr_integrate(function, DW_AT_type, &attribute) == nullptr;
    }
    types.returns = Scalar(&type);
    if (!IsAggregate(dwarf_tag(&type))) return true;
    const Place place = PlaceOf(&type, is_cpp_);
    if (place == Place::kMemory) types.args.push_back({kResultAddress, ValueType::kPointer});
    return place != Place::kUnknown;
  }

  // `function`: the DIE with addresses. `origin`: the one with the parameters of the source.
  void ReadParameters(Dwarf_Die* origin, Dwarf_Die* function, FunctionTypes& types) const {
    Dwarf_Die die;
    if (dwarf_child(origin, &die) != 0) return;
    do {
      if (dwarf_tag(&die) == DW_TAG_unspecified_parameters) types.is_variable = true;
      if (dwarf_tag(&die) != DW_TAG_formal_parameter) continue;
      if (!types.not_recorded.empty() || types.args.size() == WEFT_HOOK_MAX_VALUES) continue;
      Dwarf_Attribute attribute;
      const char* text = dwarf_attr_integrate(&die, DW_AT_name, &attribute) == nullptr
                             ? nullptr
                             : dwarf_formstring(&attribute);
      const std::string_view name = text == nullptr ? "" : text;
      if (IsOfSomeVersions(name) && !HasParameter(function, die)) continue;
      const std::string field = FieldNameLike(name, types.args);
      Dwarf_Die type;
      const auto scalar = TypeOf(&die, type) ? Scalar(&type) : std::nullopt;
      if (!scalar) {
        types.not_recorded = field;
        continue;
      }
      for (const Path& path : paths_)
        if (path.argument == field || path.argument == std::to_string(types.args.size()))
          types.members.insert_or_assign(path.text, Follow(path.steps, type));
      types.args.push_back({.name = field, .type = *scalar});
    } while (dwarf_siblingof(&die, &die) == 0);
  }

  struct Path {
    std::string text, argument;
    std::vector<std::vector<std::string>> steps;
  };

  Dwarf* const dwarf_;
  const std::vector<uint64_t>& addresses_;
  std::vector<Path> paths_;
  bool is_split_ = false;
  bool is_cpp_ = false;     // the unit
  bool has_types_ = false;  // likewise: with -g1 a unit has functions, but no types
  TypesByAddress types_;
};

}  // namespace

Result<TypesByAddress> ReadDwarfTypes(int file, const std::vector<uint64_t>& addresses,
                                      const std::vector<std::string>& paths, int shared) {
  elf_version(EV_CURRENT);
  const DwarfFile main(file);
  if (main.dwarf() == nullptr) return Fail(ErrorCode::kInvalid, main.why_not());
  const DwarfFile parts(shared);
  if (parts.dwarf() != nullptr) dwarf_setalt(main.dwarf(), parts.dwarf());
  Reader reader(main.dwarf(), addresses, paths);
  TypesByAddress types = reader.Read();
  if (types.empty() && reader.is_split())
    return Fail(ErrorCode::kUnsupported,
                "it is split DWARF (.dwo, .dwp), which is not supported: compile without "
                "-gsplit-dwarf, or give the types in the Trace");
  return types;
}

}  // namespace weft::hooks
