// SPDX-License-Identifier: Apache-2.0
#include "lib/ctf/event_header.h"

#include <algorithm>

#include "lib/ctf/decoder.h"

namespace weft::ctf {
namespace {

constexpr uint32_t kWordBits = 64;
constexpr uint32_t kMaxTagBits = 5;  // LTTng's compact headers have 5

bool IsInteger(const Type& type) {
  return type.kind == TypeKind::kInteger || type.kind == TypeKind::kEnum;
}

}  // namespace

EventHeader::EventHeader(const std::optional<Type>& type) {
  if (!type || type->kind != TypeKind::kStruct || type->members.empty() || type->align < 8) return;
  align_ = type->align;
  const Type& first = type->members.front().type;
  if (IsInteger(first) && first.saved != kNotSaved) {
    if (first.bits > kMaxTagBits) return;
    tag_ = {.at = 0, .bits = first.bits};
    tag_saved_ = first.saved;
  }
  for (uint64_t tag = 0; tag < uint64_t{1} << tag_.bits; tag++) {
    Form form;
    const bool is_known = Add(*type, tag, form) && form.event_class.bits != 0;
    forms_.push_back(is_known ? form : Form{});
  }
}

// Adds the fields of `type` behind those that the form has. Returns false if Decoder has to read
// headers with this tag.
bool EventHeader::Add(const Type& type, uint64_t tag, Form& form) const {
  if (type.align > align_) return false;  // its place depends on where the header begins
  form.bits = (form.bits + type.align - 1) & ~(type.align - 1);
  switch (type.kind) {
    case TypeKind::kInteger:
    case TypeKind::kEnum:
      return AddInteger(type, form);
    case TypeKind::kStruct:
      return std::ranges::all_of(type.members,
                                 [&](const Member& member) { return Add(member.type, tag, form); });
    case TypeKind::kVariant: {
      if (tag_.bits == 0 || type.reference_saved != tag_saved_) return false;
      const auto selected = std::ranges::find_if(
          type.members, [&](const Member& option) { return Decoder::Selects(option, tag); });
      return selected != type.members.end() && Add(selected->type, tag, form);
    }
    case TypeKind::kFloat:
    case TypeKind::kString:
    case TypeKind::kArray:
    case TypeKind::kSequence:
    case TypeKind::kBool:
    case TypeKind::kBitMap:
    case TypeKind::kOptional:
      return false;
  }
  return false;
}

bool EventHeader::AddInteger(const Type& type, Form& form) const {
  const Field field{.at = form.bits, .bits = type.bits};
  if (type.big_endian || type.reversed || type.variable || type.is_signed) return false;
  if (field.at + field.bits > kWordBits) return false;
  if (type.saved != kNotSaved && (field.at != 0 || type.saved != tag_saved_)) return false;
  if (type.clocked && form.time.bits != 0) return false;
  if (type.clocked) form.time = field;
  if (type.role == Role::kEventClass) form.event_class = field;
  form.bits += field.bits;
  return true;
}

}  // namespace weft::ctf
