// SPDX-License-Identifier: Apache-2.0
#include "lib/ctf/resolve.h"

#include <algorithm>
#include <array>
#include <string_view>
#include <utility>

namespace weft::ctf {
namespace {

Status Count(const Type& type, int depth, uint32_t& budget) {
  if (depth > kMaxTypeDepth) return Fail(ErrorCode::kLimit, "types are nested too deeply");
  if (budget == 0) return Fail(ErrorCode::kLimit, "too many fields in the metadata");
  budget--;
  for (const Member& member : type.members) WEFT_TRY(Count(member.type, depth + 1, budget));
  for (const Type& element : type.element) WEFT_TRY(Count(element, depth + 1, budget));
  return {};
}

// The scopes of an event as references name them, in the order in which they are decoded.
enum ReferenceScope {
  kPacketHeader,
  kPacketContext,
  kEventHeader,
  kStreamContext,
  kEventContext,
  kFields,
  kScopes
};
constexpr std::array<std::string_view, kScopes> kScopeNames = {
    "trace.packet.header",  "stream.packet.context", "stream.event.header",
    "stream.event.context", "event.context",         "event.fields"};

class Resolver {
 public:
  explicit Resolver(uint32_t& saved_values) : saved_values_(saved_values) {}

  Status ResolveScope(ReferenceScope scope, std::optional<Type>& type) {
    roots_[scope] = type ? &*type : nullptr;
    if (!type) return {};
    scope_ = scope;
    enclosing_.clear();
    return Walk(*type);
  }

 private:
  Status Walk(Type& type) {
    if (type.kind == TypeKind::kVariant || type.kind == TypeKind::kSequence ||
        type.kind == TypeKind::kOptional) {
      WEFT_TRY(Bind(type));
    }
    if (!type.members.empty()) {
      enclosing_.push_back({&type, 0});
      for (size_t i = 0; i < type.members.size(); i++) {
        enclosing_.back().second = i;
        WEFT_TRY(Walk(type.members[i].type));
      }
      enclosing_.pop_back();
    }
    for (Type& element : type.element) WEFT_TRY(Walk(element));
    return {};
  }

  Status Bind(Type& type) {
    Type* target = Find(type.reference);
    const bool integer = target != nullptr &&
                         (target->kind == TypeKind::kInteger || target->kind == TypeKind::kEnum ||
                          (target->kind == TypeKind::kBool && type.kind == TypeKind::kOptional));
    if (!integer || (type.kind == TypeKind::kSequence && target->is_signed)) {
      return Fail(ErrorCode::kCorrupt,
                  "metadata: '" + type.reference + "' is no integer that stands before its use");
    }
    if (target->saved == kNotSaved) target->saved = saved_values_++;
    type.reference_saved = target->saved;
    if (type.kind == TypeKind::kVariant) SelectByLabels(type, *target);
    return {};
  }

  static void SelectByLabels(Type& variant, const Type& tag) {
    for (Member& option : variant.members) {
      if (!option.selectors.empty()) continue;  // CTF 2 says the ranges itself
      for (const EnumMapping& mapping : tag.mappings) {
        if (mapping.label == option.name) option.selectors = mapping.ranges;
      }
    }
  }

  Type* Find(std::string_view path) {
    for (int scope = 0; scope <= scope_; scope++) {
      const std::string_view name = kScopeNames[static_cast<size_t>(scope)];
      if (!path.starts_with(name) || path.size() <= name.size() || path[name.size()] != '.') {
        continue;
      }
      Type* root = roots_[static_cast<size_t>(scope)];
      return root == nullptr ? nullptr : Descend(*root, path.substr(name.size() + 1));
    }
    for (size_t i = enclosing_.size(); i-- > 0;) {
      auto [type, before] = enclosing_[i];
      if (type->kind != TypeKind::kStruct) continue;
      if (Type* found = Descend(*type, path, before)) return found;
    }
    return nullptr;
  }

  // Returns the member that `path` names below a structure, among its first `limit` members.
  static Type* Descend(Type& from, std::string_view path, size_t limit = SIZE_MAX) {
    Type* type = &from;
    while (true) {
      const size_t dot = std::min(path.find('.'), path.size());
      const std::string_view name = path.substr(0, dot);
      Type* next = nullptr;
      if (type->kind != TypeKind::kStruct) return nullptr;
      for (size_t i = 0; i < type->members.size() && i < limit; i++) {
        if (type->members[i].name == name) next = &type->members[i].type;
      }
      if (next == nullptr || dot == path.size()) return next;
      type = next;
      path.remove_prefix(dot + 1);
      limit = SIZE_MAX;
    }
  }

  uint32_t& saved_values_;
  std::array<Type*, kScopes> roots_{};
  int scope_ = 0;
  std::vector<std::pair<Type*, size_t>> enclosing_;  // structures, and the member that is walked
};

// Larger sizes are no packet's.
constexpr uint64_t kMaxConstantBits = uint64_t{1} << 40;

constexpr uint64_t AlignUp(uint64_t bits, uint32_t align) {
  return (bits + align - 1) & ~uint64_t{align - 1};
}

uint64_t ConstantBits(const Type& type) {
  switch (type.kind) {
    case TypeKind::kInteger:
    case TypeKind::kEnum:
    case TypeKind::kFloat:
    case TypeKind::kBool:
    case TypeKind::kBitMap:
      return type.variable || type.clocked || type.saved != kNotSaved ? 0 : type.bits;
    case TypeKind::kStruct: {
      uint64_t bits = 0;
      for (const Member& member : type.members) {
        const uint64_t more = member.type.constant_bits;
        // A member's place depends on where the structure begins, if its alignment is greater.
        if (more == 0 || member.type.align > type.align || bits > kMaxConstantBits) return 0;
        bits = AlignUp(bits, member.type.align) + more;
      }
      return bits;
    }
    case TypeKind::kArray: {
      const Type& element = type.element.front();
      if (element.constant_bits == 0 || type.length == 0 || element.align > type.align) return 0;
      const uint64_t stride = AlignUp(element.constant_bits, element.align);
      if (type.length > kMaxConstantBits / stride) return 0;
      return stride * (type.length - 1) + element.constant_bits;
    }
    case TypeKind::kString:
    case TypeKind::kVariant:
    case TypeKind::kSequence:
    case TypeKind::kOptional:
      return 0;
  }
  return 0;
}

bool IsPlain(const Type& type) {
  const bool is_remembered = type.clocked || type.saved != kNotSaved;
  const bool is_usual = !type.variable && !type.reversed && !type.big_endian && type.base == 10;
  return type.kind == TypeKind::kInteger && is_usual && !is_remembered && type.bits % 8 == 0 &&
         type.align % 8 == 0;
}

bool IsPrintable(std::string_view name) {
  return std::ranges::all_of(name, [](char c) { return c >= ' ' && c <= '~'; });
}

// Sets what depends on the whole trace: constant_bits, plain, printable.
void Finish(Type& type) {
  for (Member& member : type.members) {
    Finish(member.type);
    member.printable = IsPrintable(member.name);
  }
  for (Type& element : type.element) Finish(element);
  type.constant_bits = ConstantBits(type);
  type.plain = IsPlain(type);
}

void Finish(std::optional<Type>& type) {
  if (type) Finish(*type);
}

}  // namespace

Status TakeNodes(const Type& type, uint32_t& budget) { return Count(type, 0, budget); }

Status ResolveReferences(TraceClass& trace) {
  Resolver resolver(trace.saved_values);
  WEFT_TRY(resolver.ResolveScope(kPacketHeader, trace.packet_header));
  for (auto& [id, stream] : trace.streams) {
    if (!stream.unreadable.empty()) continue;
    Status status = resolver.ResolveScope(kPacketContext, stream.packet_context);
    if (status) status = resolver.ResolveScope(kEventHeader, stream.event_header);
    if (status) status = resolver.ResolveScope(kStreamContext, stream.event_context);
    if (!status) {
      MarkUnreadable(trace, stream, status.error().message);
      continue;
    }
    for (auto& [event_id, event] : stream.events) {
      if (!event.unreadable.empty()) continue;
      status = resolver.ResolveScope(kEventContext, event.context);
      if (status) status = resolver.ResolveScope(kFields, event.payload);
      if (!status) MarkUnreadable(trace, event, status.error().message);
    }
  }
  // An event's reference may lead to a field of its stream: sizes come last.
  for (auto& [id, stream] : trace.streams) {
    Finish(stream.packet_context);
    Finish(stream.event_context);
    for (auto& [event_id, event] : stream.events) {
      Finish(event.context);
      Finish(event.payload);
    }
  }
  return {};
}

void MarkUnreadable(TraceClass& trace, DataStreamClass& stream, const std::string& reason) {
  stream.unreadable = reason;
  stream.packet_context.reset();
  stream.event_header.reset();
  stream.event_context.reset();
  trace.AddProblem(reason + ": streams of class " + std::to_string(stream.id) + " are not shown");
}

void MarkUnreadable(TraceClass& trace, EventRecordClass& event, const std::string& reason) {
  event.unreadable = reason;
  event.context.reset();
  event.payload.reset();
  trace.AddProblem(reason + ": events '" + event.name + "' (id " + std::to_string(event.id) +
                   ") are not shown");
}

}  // namespace weft::ctf
