// SPDX-License-Identifier: Apache-2.0
#include "node-agent/kernel/field.h"

#include <algorithm>
#include <array>
#include <utility>

#include "node-agent/kernel/limits.h"

namespace weft::kernel {
namespace {

FetchStep Output(FetchCode code, uint8_t size, int32_t offset = 0, uint8_t flags = 0,
                 uint32_t limit = 0) {
  return {.code = code, .size = size, .flags = flags, .offset = offset, .limit = limit};
}

bool IsStructure(const BtfType& type) {
  return type.kind == BtfKind::kStruct || type.kind == BtfKind::kUnion;
}

bool IsWord(uint64_t size) { return size == 1 || size == 2 || size == 4 || size == 8; }

// Replaces a structure around one value (atomic_t, kuid_t) by that value.
void Unwrap(const Btf& btf, Place* place) {
  for (int depth = 0; depth < kMaxTypeDepth && place->in_memory; ++depth) {
    const BtfType type = btf.Resolve(place->type);
    if (type.kind != BtfKind::kStruct || type.count != 1) return;
    const BtfMember member = btf.Members(type).front();
    if (member.bit_size != 0 || member.bit_offset != 0) return;
    place->type = member.type;
  }
}

// Extends the sign of a label: the highest bit of a catalogue's label is the sign in a field with
// signed values.
void SignExtend(uint32_t size, EnumMapping* mapping) {
  const uint32_t unused = 64 - size * 8;
  for (uint64_t* value : {&mapping->begin, &mapping->end})
    *value = static_cast<uint64_t>(static_cast<int64_t>(*value << unused) >> unused);
}

uint32_t LimitOf(const FieldSpec& spec) {
  return spec.limit == 0 ? kDefaultStringBytes : spec.limit;
}

FieldDescription TextDescription(const FieldSpec& spec) {
  return {.name = spec.name, .kind = FieldKind::kString, .elem_size = 1};
}

std::unexpected<Error> Unsupported(const FieldSpec& spec, const std::string& what) {
  return Fail(ErrorCode::kUnsupported, "'" + spec.name + "' " + what);
}

}  // namespace

bool FieldMaker::IsChar(uint32_t type) const {
  const BtfType resolved = btf.Resolve(type);
  return resolved.kind == BtfKind::kInt && resolved.name == "char";
}

Result<Place> FieldMaker::Find(const FieldSpec& spec) const {
  Result<Place> place = Fail(ErrorCode::kNotFound, "it has no path");
  for (const Path& path : spec.paths) {
    place = Locate(btf, arguments, path);
    if (place) break;
  }
  if (!place) return place;
  if (distrust) place->flags = 0;
  MarkLoads(&*place);
  if (spec.user) place->flags = kFetchUser;
  if (HidesTask(place->argument)) {
    place->ops.insert(place->ops.begin() + 1, FetchStep{.code = FetchCode::kTask});
  } else if (!spec.of.empty()) {
    const auto task = std::ranges::find(arguments, spec.of, &Argument::name);
    const auto number = static_cast<uint32_t>(task - arguments.begin());
    if (task == arguments.end() || !HidesTask(number)) return place;
    place->ops.front().flags |= kFetchKeepOther;
    const std::array<FetchStep, 2> before = {
        FetchStep{.code = FetchCode::kArgument, .arg = static_cast<uint8_t>(number), .size = 8},
        FetchStep{.code = FetchCode::kTask}};
    place->ops.insert(place->ops.begin(), before.begin(), before.end());
  }
  return place;
}

bool FieldMaker::HidesTask(uint32_t number) const {
  const BtfType argument = btf.Resolve(arguments[number].type);
  return argument.kind == BtfKind::kPointer && !distrust && !open_tasks.contains(number) &&
         btf.Resolve(argument.size_or_ref).name == "task_struct";
}

// Sets the flags of the loads on the way to the place.
void FieldMaker::MarkLoads(Place* place) const {
  for (FetchStep& op : place->ops) {
    if (distrust) op.flags &= static_cast<uint8_t>(~uint32_t{kFetchTrusted});
    if (user_arguments && op.code == FetchCode::kLoad) op.flags |= kFetchUser;
  }
}

Result<Field> FieldMaker::Make(const FieldSpec& spec) const {
  WEFT_ASSIGN(Place place, Find(spec));
  if (spec.length && has_socket_addresses) return MakeWithin(spec, *spec.length, std::move(place));
  return MakeAt(spec, std::move(place));
}

// N is set to the length before the place's own operations; the field's last one reads only up to
// there.
Result<Field> FieldMaker::MakeWithin(const FieldSpec& spec, const Path& length, Place place) const {
  if (spec.count || !place.in_memory || place.offset < 0)
    return Unsupported(spec, "has a length and is no value in memory");
  WEFT_ASSIGN(const std::vector<FetchStep> count, CountBy(spec, length));
  if (spec.as != FieldSpec::As::kUnixPath) {
    const uint64_t size = btf.SizeOf(place.type).value_or(0);
    if (size == 0 || size > WEFT_INLINE_ARRAY_MAX)
      return Unsupported(spec, "has a length and is not so few bytes");
    place.ops.push_back(Output(FetchCode::kWithin, 0, place.offset + static_cast<int32_t>(size)));
  }
  Result<Field> field = spec.as == FieldSpec::As::kUnixPath ? MakeUnixPath(spec, std::move(place))
                                                            : MakeAt(spec, std::move(place));
  if (field) field->ops.insert(field->ops.begin(), count.begin(), count.end());
  return field;
}

Result<Field> FieldMaker::MakeUnixPath(const FieldSpec& spec, Place place) const {
  const BtfType type = btf.Resolve(place.type);
  const uint64_t size = btf.SizeOf(place.type).value_or(0);
  if (type.kind != BtfKind::kArray || size == 0 || place.flags != kFetchUser)
    return Unsupported(spec, "is no path in user memory");
  place.ops.push_back(Output(FetchCode::kUnixPath, 0, place.offset, kFetchUser,
                             static_cast<uint32_t>(std::min<uint64_t>(size, LimitOf(spec)))));
  return Field{TextDescription(spec), std::move(place.ops)};
}

Result<Field> FieldMaker::MakeAt(const FieldSpec& spec, Place place) const {
  if (spec.as == FieldSpec::As::kBytes) {
    const uint64_t size = btf.SizeOf(place.type).value_or(0);
    if (!place.in_memory || size == 0 || size > WEFT_INLINE_ARRAY_MAX)
      return Unsupported(spec, "is not so few bytes in memory");
    place.ops.push_back(
        Output(FetchCode::kBytes, static_cast<uint8_t>(size), place.offset, place.flags));
    return Field{{.name = spec.name,
                  .kind = FieldKind::kArray,
                  .flags = WEFT_FIELD_INLINE,
                  .elem_size = 1,
                  .base = spec.base == 0 ? uint8_t{10} : spec.base,
                  .count = static_cast<uint32_t>(size)},
                 std::move(place.ops)};
  }
  if (spec.count) return MakeCounted(spec, *spec.count, std::move(place));
  if (place.stride != 0 || spec.as == FieldSpec::As::kGather)
    return Unsupported(spec, "has no count");
  Unwrap(btf, &place);
  const BtfType type = btf.Resolve(place.type);
  if (spec.as == FieldSpec::As::kAddress && btf.SizeOf(type.id) == sizeof(uint64_t))
    return MakePointer(spec, std::move(place), type);  // also where it is called an integer
  switch (type.kind) {
    case BtfKind::kInt:
    case BtfKind::kEnum:
    case BtfKind::kEnum64:
      return MakeInteger(spec, std::move(place), type);
    case BtfKind::kPointer:
      return MakePointer(spec, std::move(place), type);
    case BtfKind::kArray:
      return MakeArray(spec, std::move(place), type);
    case BtfKind::kVoid:
      if (!place.in_memory) return MakePointer(spec, std::move(place), type);
      [[fallthrough]];
    default:
      return Unsupported(spec, "is of a type that is no value");
  }
}

std::vector<EnumMapping> FieldMaker::LabelsOf(const FieldSpec& spec, const BtfType& type) const {
  BtfType named = type;
  if (!spec.labels.empty()) {
    if (const auto* labels = catalogue.Labels(spec.labels)) return *labels;
    named = btf.Find(BtfKind::kEnum, spec.labels).value_or(BtfType{});
  }
  std::vector<EnumMapping> labels;
  for (const BtfEnumerator& item : btf.Enumerators(named)) {
    labels.push_back({std::string(item.name), item.value, item.value});
    if (labels.size() > kMaxLabels) return {};
  }
  return labels;
}

Result<Field> FieldMaker::MakeInteger(const FieldSpec& spec, Place place,
                                      const BtfType& type) const {
  const uint32_t size = type.size_or_ref;
  if (!IsWord(size)) return Unsupported(spec, "is an integer of an odd size");
  const bool is_enum = type.kind != BtfKind::kInt;
  const bool is_signed = is_enum ? type.flag : btf.IntOf(type).is_signed;
  place.LoadValue(static_cast<uint8_t>(size), is_signed);
  if (spec.bits != 0) place.ops.push_back(Output(FetchCode::kBits, spec.bits, spec.first_bit));
  if (spec.add != 0) place.ops.push_back(Output(FetchCode::kAdd, 0, spec.add));
  place.ops.push_back(Output(FetchCode::kStore, static_cast<uint8_t>(size)));
  FieldDescription description{.name = spec.name,
                               .elem_size = static_cast<uint8_t>(size),
                               .base = spec.base == 0 ? uint8_t{10} : spec.base};
  description.mappings = LabelsOf(spec, type);
  if (!description.mappings.empty()) description.kind = FieldKind::kEnum;
  if (is_signed) {
    description.flags |= WEFT_FIELD_SIGNED;
    for (EnumMapping& mapping : description.mappings) SignExtend(size, &mapping);
  }
  if (spec.network) description.flags |= WEFT_FIELD_NETWORK;
  return Field{std::move(description), std::move(place.ops)};
}

// May a function's argument point to user memory? Its type may say so (a tag, if the compiler
// writes them). A pointer to bytes or integers may point to either memory: its value tells. The
// kernel's own structures are never in user memory.
bool FieldMaker::MayPointToUser(const BtfType& pointer) const {
  if (!has_user_addresses || !distrust || pointer.kind != BtfKind::kPointer) return false;
  const BtfType target = btf.Type(pointer.size_or_ref);
  if (target.kind == BtfKind::kTypeTag && target.name == "user") return true;
  const BtfKind kind = btf.Resolve(pointer.size_or_ref).kind;
  return kind == BtfKind::kVoid || kind == BtfKind::kInt;
}

Result<Field> FieldMaker::MakePointer(const FieldSpec& spec, Place place,
                                      const BtfType& type) const {
  const bool is_text = spec.as == FieldSpec::As::kText ||
                       (spec.as == FieldSpec::As::kValue && type.kind == BtfKind::kPointer &&
                        IsChar(type.size_or_ref));
  const bool is_shown = addresses || spec.user;
  if (!is_text && !is_shown && !MayPointToUser(type))
    return Fail(ErrorCode::kPermission, "an address of the kernel");
  const uint8_t memory = spec.user ? kFetchUser : 0;
  if (place.in_memory || place.bit_size != 0) place.LoadValue(sizeof(uint64_t), false);
  if (is_text) {
    place.ops.push_back(Output(FetchCode::kString, 0, 0, memory, LimitOf(spec)));
    return Field{TextDescription(spec), std::move(place.ops)};
  }
  const uint8_t which = is_shown ? 0 : kFetchUser;
  place.ops.push_back(Output(FetchCode::kStore, sizeof(uint64_t), 0, which));
  return Field{
      {.name = spec.name, .flags = WEFT_FIELD_POINTER, .elem_size = sizeof(uint64_t), .base = 16},
      std::move(place.ops)};
}

Result<Field> FieldMaker::MakeArray(const FieldSpec& spec, Place place, const BtfType& type) const {
  const BtfArray array = btf.ArrayOf(type);
  const BtfType element = btf.Resolve(array.element);
  const uint64_t bytes = btf.SizeOf(place.type).value_or(0);
  const bool is_text = IsChar(array.element) || spec.as == FieldSpec::As::kText;
  if (!place.in_memory || !IsWord(element.size_or_ref) || element.kind != BtfKind::kInt)
    return Unsupported(spec, "is an array of no integers");
  if (bytes == 0 || bytes > WEFT_INLINE_ARRAY_MAX) {
    if (!is_text) return Unsupported(spec, "is an array too long");
    const uint32_t limit = bytes == 0 ? LimitOf(spec) : std::min<uint64_t>(bytes, LimitOf(spec));
    const auto memory = static_cast<uint8_t>(place.flags & kFetchUser);
    place.ops.push_back(Output(FetchCode::kString, 0, place.offset, memory, limit));
    return Field{TextDescription(spec), std::move(place.ops)};
  }
  place.ops.push_back(
      Output(FetchCode::kBytes, static_cast<uint8_t>(bytes), place.offset, place.flags));
  FieldDescription description{.name = spec.name,
                               .kind = FieldKind::kArray,
                               .flags = WEFT_FIELD_INLINE,
                               .elem_size = static_cast<uint8_t>(element.size_or_ref),
                               .base = spec.base == 0 ? uint8_t{10} : spec.base,
                               .count = array.count};
  if (is_text) description.flags |= WEFT_FIELD_TEXT;
  if (btf.IntOf(element).is_signed && !is_text) description.flags |= WEFT_FIELD_SIGNED;
  return Field{std::move(description), std::move(place.ops)};
}

// Sets N to the integer at another path.
Result<std::vector<FetchStep>> FieldMaker::CountBy(const FieldSpec& spec, const Path& path) const {
  WEFT_ASSIGN(Place count, Locate(btf, arguments, path));
  if (spec.user) count.flags = kFetchUser;
  MarkLoads(&count);
  const BtfType type = btf.Resolve(count.type);
  if (IsStructure(type) || count.stride != 0)
    return Unsupported(spec, "has a count that is no number");
  count.LoadValue(type.kind == BtfKind::kInt && IsWord(type.size_or_ref)
                      ? static_cast<uint8_t>(type.size_or_ref)
                      : sizeof(uint64_t),
                  type.kind == BtfKind::kInt && btf.IntOf(type).is_signed);
  count.ops.push_back({.code = FetchCode::kCount});
  return std::move(count.ops);
}

// Makes a sequence with as many elements as another path says: N is set before the place's own
// operations.
Result<Field> FieldMaker::MakeCounted(const FieldSpec& spec, const Path& count_path,
                                      Place place) const {
  const bool gathers = spec.as == FieldSpec::As::kGather;
  if (!has_parts && (gathers || place.stride != 0))
    return Unsupported(spec, "is made by a later weft.ko than the one that is loaded");
  WEFT_ASSIGN(const std::vector<FetchStep> ops, CountBy(spec, count_path));
  Result<Field> field = gathers             ? MakeGather(spec, std::move(place))
                        : place.stride != 0 ? MakeEach(spec, std::move(place))
                                            : MakeSequence(spec, std::move(place));
  if (!field) return field;
  field->ops.insert(field->ops.begin(), ops.begin(), ops.end());
  field->description.name = spec.name;
  field->description.kind = FieldKind::kSequence;
  field->description.length_size = sizeof(uint32_t);
  return field;
}

// Makes a sequence of what a pointer points to.
Result<Field> FieldMaker::MakeSequence(const FieldSpec& spec, Place place) const {
  const BtfType pointer = btf.Resolve(place.type);
  const BtfType target =
      pointer.kind == BtfKind::kPointer ? btf.Resolve(pointer.size_or_ref) : BtfType{};
  const bool is_word = target.kind == BtfKind::kInt && IsWord(target.size_or_ref);
  const auto size = static_cast<uint8_t>(is_word ? target.size_or_ref : 1);
  if (place.in_memory) {
    // A 32-bit program's pointers are integers here.
    const bool is_integer = pointer.kind == BtfKind::kInt && IsWord(pointer.size_or_ref);
    const uint32_t bytes = is_integer ? pointer.size_or_ref : sizeof(uint64_t);
    place.LoadValue(static_cast<uint8_t>(bytes), false);
  }
  const uint32_t limit = LimitOf(spec) / size * size;
  const uint8_t memory = spec.user ? kFetchUser : 0;
  place.ops.push_back(Output(FetchCode::kSequence, size, 0, memory, limit));
  Field field{{.elem_size = size, .base = spec.base == 0 ? uint8_t{16} : spec.base},
              std::move(place.ops)};
  if (spec.as == FieldSpec::As::kText && size == 1) field.description.flags |= WEFT_FIELD_TEXT;
  return field;
}

// Makes a sequence of one integer of each element of an array, at one place in the element.
Result<Field> FieldMaker::MakeEach(const FieldSpec& spec, Place place) const {
  const BtfType type = btf.Resolve(place.type);
  if (type.kind != BtfKind::kInt || !IsWord(type.size_or_ref) || place.bit_size != 0)
    return Unsupported(spec, "is no integer of each element");
  const auto size = static_cast<uint8_t>(type.size_or_ref);
  const auto memory = static_cast<uint8_t>(place.flags & kFetchUser);
  FetchStep op = Output(FetchCode::kSequence, size, place.offset, memory,
                        std::min(LimitOf(spec) / size, WEFT_FETCH_MAX_PARTS) * size);
  op.arg = place.stride;
  place.ops.push_back(op);
  Field field{{.elem_size = size, .base = spec.base == 0 ? uint8_t{10} : spec.base},
              std::move(place.ops)};
  if (btf.IntOf(type).is_signed) field.description.flags |= WEFT_FIELD_SIGNED;
  return field;
}

// Makes the contents of the buffers that an array of structures with an address and a length names.
Result<Field> FieldMaker::MakeGather(const FieldSpec& spec, Place place) const {
  const uint64_t size = btf.SizeOf(place.type).value_or(0) / 2;
  if (!place.in_memory || (size != sizeof(uint32_t) && size != sizeof(uint64_t)) || !spec.user)
    return Unsupported(spec, "is no address and length of user memory");
  FetchStep op = Output(FetchCode::kGather, static_cast<uint8_t>(size), place.offset, kFetchUser,
                        LimitOf(spec));
  op.arg = WEFT_FETCH_NO_ARG;
  if (!spec.total.empty()) {
    const auto total = std::ranges::find(arguments, spec.total, &Argument::name);
    if (total == arguments.end()) return Unsupported(spec, "has a total that is no argument");
    op.arg = static_cast<uint8_t>(total - arguments.begin());
  }
  place.ops.push_back(op);
  return Field{{.elem_size = 1, .base = spec.base == 0 ? uint8_t{16} : spec.base},
               std::move(place.ops)};
}

Result<Field> FieldMaker::MakeArgument(uint32_t number) const {
  const uint32_t type = arguments[number].type;
  const BtfKind kind = btf.Resolve(type).kind;
  // The kernel passes addresses as unsigned long, too; counts have type names (size_t).
  const bool is_address = kind == BtfKind::kPointer || kind == BtfKind::kVoid ||
                          (distrust && btf.Type(type).name == "long unsigned int");
  return Make({.name = arguments[number].name,
               .paths = {{.argument = "$" + std::to_string(number)}},
               .as = is_address ? FieldSpec::As::kAddress : FieldSpec::As::kValue});
}

}  // namespace weft::kernel
