// SPDX-License-Identifier: Apache-2.0
// Types of contexts and fields: names, sizes and shapes as LTTng-UST's traces have them, so that
// readers show the same text.
#include "lib/ctf/event_class.h"

#include <map>
#include <set>
#include <utility>

#include "lib/ctf/text.h"

namespace weft::ctf {
namespace {

// Names of one structure. Readers refuse a name that is there twice; babeltrace2 2.0 also "x"
// behind "_x", since it compares the one with its TSDL underscore and the other without.
class Names {
 public:
  std::string Unique(std::string_view wanted) {
    const std::string plain = IdentifierName(wanted);
    std::string name = plain;
    for (int n = 2; used_.contains("_" + name) || !used_.insert(name).second; n++) {
      name = plain + "_" + std::to_string(n);
    }
    return name;
  }

 private:
  std::set<std::string> used_;
};

struct DynamicOption {
  const char* name;
  Type type;
};

std::vector<DynamicOption> DynamicOptions() {
  return {{"none", StructType()},
          {"int8", IntegerType(8, true)},
          {"int16", IntegerType(16, true)},
          {"int32", IntegerType(32, true)},
          {"int64", IntegerType(64, true)},
          {"uint8", IntegerType(8, false)},
          {"uint16", IntegerType(16, false)},
          {"uint32", IntegerType(32, false)},
          {"uint64", IntegerType(64, false)},
          {"float", FloatType(32)},
          {"double", FloatType(64)},
          {"string", StringType()}};
}

// Adds an application context: a tag and a variant, with LTTng's names.
void AddDynamic(Type& context, Names& names, const std::string& name) {
  const std::string tag_name = names.Unique(name + "_tag");
  Type tag = IntegerType(8, true);
  tag.kind = TypeKind::kEnum;
  Type value;
  value.kind = TypeKind::kVariant;
  value.reference = tag_name;
  uint64_t number = 0;
  for (DynamicOption& option : DynamicOptions()) {
    const Range range{number, number};
    number++;
    tag.mappings.push_back({std::string("_") + option.name, {range}});
    value.members.push_back({option.name, std::move(option.type), {range}});
  }
  context.members.push_back({tag_name, std::move(tag), {}});
  context.members.push_back({names.Unique(name), std::move(value), {}});
}

Type TextArray(uint32_t bytes) {
  Type array;
  array.kind = TypeKind::kArray;
  array.length = bytes;
  array.text = true;
  array.element.push_back(IntegerType(8, true));
  array.element.back().text = true;
  return array;
}

// Adds a call stack, with LTTng's names.
void AddAddresses(Type& context, Names& names, const weft_context_info& info) {
  Type stack;
  stack.kind = TypeKind::kSequence;
  stack.reference = names.Unique(std::string(info.name) + "_length");
  stack.element.push_back(IntegerType(64, false, info.base));
  context.members.push_back({stack.reference, IntegerType(32, false), {}});
  context.members.push_back({names.Unique(info.name), std::move(stack), {}});
}

// Returns the context's name in the trace, which is LTTng's.
std::string ContextName(const weft_context_info& info, const ContextField& field) {
  if (info.id == WEFT_CONTEXT_PERF_THREAD) return "perf_thread_" + field.name;
  if (info.id == WEFT_CONTEXT_PERF_CPU) return "perf_cpu_" + field.name;
  return info.name;
}

void AddContext(Type& context, Names& names, const weft_context_info& info,
                const ContextField& field) {
  const auto bits = static_cast<uint8_t>(info.size * 8);
  const auto add = [&](Type type) {
    context.members.push_back({names.Unique(ContextName(info, field)), std::move(type), {}});
  };
  switch (static_cast<weft_context_type>(info.type)) {
    case WEFT_CONTEXT_DYNAMIC:
      return AddDynamic(context, names, "_app_" + IdentifierName(field.name));
    case WEFT_CONTEXT_ADDRESSES:
      return AddAddresses(context, names, info);
    case WEFT_CONTEXT_TEXT:
      return add(TextArray(info.size));
    case WEFT_CONTEXT_INT:
    case WEFT_CONTEXT_UINT:
      return add(IntegerType(bits, info.type == WEFT_CONTEXT_INT, info.base));
  }
}

bool IsIntegerSize(uint8_t bytes) { return bytes == 1 || bytes == 2 || bytes == 4 || bytes == 8; }

// Checks what plans and types rely on.
bool IsValid(const FieldDescription& field) {
  const bool is_float =
      field.kind == FieldKind::kFloat || (field.flags & WEFT_FIELD_FLOAT_ELEMENTS) != 0;
  const bool text = (field.flags & WEFT_FIELD_TEXT) != 0;
  switch (field.kind) {
    case FieldKind::kString:
      return true;
    case FieldKind::kSequence:
      if (!IsIntegerSize(field.length_size)) return false;
      break;
    case FieldKind::kArray:
      if (field.count > WEFT_EVENT_DESC_MAX_BYTES) return false;
      break;
    case FieldKind::kInteger:
    case FieldKind::kEnum:
    case FieldKind::kFloat:
      break;
    default:
      return false;
  }
  if ((text || field.blob) && (field.elem_size != 1 || is_float)) return false;
  if (field.blob && (text || field.is_signed())) return false;
  if (is_float) return field.elem_size == 4 || field.elem_size == 8;
  return IsIntegerSize(field.elem_size);
}

// Returns the type of one value of the field, or of one element of it.
Type ElementType(const FieldDescription& field) {
  const bool big_endian = (field.flags & WEFT_FIELD_NETWORK) != 0;
  const auto bits = static_cast<uint8_t>(field.elem_size * 8);
  if (field.kind == FieldKind::kFloat || (field.flags & WEFT_FIELD_FLOAT_ELEMENTS) != 0) {
    return FloatType(bits, big_endian);
  }
  uint8_t base = field.base;
  if (base != 2 && base != 8 && base != 16) base = 10;
  Type type = IntegerType(bits, (field.flags & WEFT_FIELD_SIGNED) != 0, base, big_endian);
  type.text = (field.flags & WEFT_FIELD_TEXT) != 0;
  return type;
}

// Mappings with the same label are one label with several ranges, as readers see them.
Type EnumType(const FieldDescription& field) {
  Type type = ElementType(field);
  std::map<std::string, size_t> index;
  for (const weft::EnumMapping& mapping : field.mappings) {
    const bool ordered =
        type.is_signed ? static_cast<int64_t>(mapping.begin) <= static_cast<int64_t>(mapping.end)
                       : mapping.begin <= mapping.end;
    if (!ordered) continue;
    const auto [found, added] = index.try_emplace(mapping.label, type.mappings.size());
    if (added) type.mappings.push_back({mapping.label, {}});
    type.mappings[found->second].ranges.push_back({mapping.begin, mapping.end});
  }
  // TSDL's grammar has no enumeration without a mapping.
  if (!type.mappings.empty()) type.kind = TypeKind::kEnum;
  return type;
}

void AddField(Type& payload, Names& names, const FieldDescription& field) {
  Type type;
  switch (field.kind) {
    case FieldKind::kString:
      type = StringType();
      break;
    case FieldKind::kEnum:
      type = EnumType(field);
      break;
    case FieldKind::kArray:
    case FieldKind::kSequence:
      type.kind = field.kind == FieldKind::kArray ? TypeKind::kArray : TypeKind::kSequence;
      if (field.blob) {
        type = BlobType(type.kind, PrintableName(field.media_type));
      } else {
        type.element.push_back(ElementType(field));
        type.text = type.element.back().text;
      }
      type.length = field.count;
      break;
    default:
      type = ElementType(field);
  }
  if (type.kind == TypeKind::kSequence) {
    type.reference = names.Unique("_" + field.name + "_length");
    const auto bits = static_cast<uint8_t>(FileLengthSize(field.length_size) * 8);
    payload.members.push_back({type.reference, IntegerType(bits, false), {}});
  }
  payload.members.push_back({names.Unique(field.name), std::move(type), {}});
}

}  // namespace

Result<Channel> MakeChannel(const ChannelSchema& schema) {
  Channel channel{.id = schema.id, .name = schema.name, .context = StructType()};
  Names names;
  for (const ContextField& field : schema.contexts) {
    const weft_context_info* info = weft_context_by_id(field.id);
    if (info == nullptr) {
      return Fail(ErrorCode::kUnsupported, "channel " + PrintableName(schema.name) +
                                               ": unknown context " + std::to_string(field.id));
    }
    AddContext(channel.context, names, *info, field);
  }
  channel.context_plan = MakeContextPlan(schema);
  return channel;
}

Result<EventClass> MakeEventClass(uint32_t id, const Channel& channel,
                                  const EventDescription& schema) {
  EventClass event{.id = id,
                   .channel = channel.id,
                   .name = PrintableName(schema.name),
                   .uri = PrintableName(schema.uri),
                   .loglevel = schema.loglevel,
                   .payload = StructType()};
  Names names;
  for (const FieldDescription& field : schema.fields) {
    if (!IsValid(field)) {
      return Fail(ErrorCode::kInvalid, "event " + event.name + ", field " +
                                           PrintableName(field.name) + ": size or kind is wrong");
    }
    if ((field.flags & WEFT_FIELD_NOWRITE) == 0) AddField(event.payload, names, field);
  }
  event.plan = MakePayloadPlan(schema);
  return event;
}

}  // namespace weft::ctf
