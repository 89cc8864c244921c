// SPDX-License-Identifier: Apache-2.0
#include "node-agent/kernel/btf.h"

#include <algorithm>
#include <fstream>
#include <iterator>

#include "node-agent/kernel/limits.h"

namespace weft::kernel {

struct Btf::Header {
  uint16_t magic;
  uint8_t version;
  uint8_t flags;
  uint32_t header_size;
  uint32_t type_offset;  // behind the header
  uint32_t type_size;
  uint32_t string_offset;
  uint32_t string_size;
};

namespace {

constexpr uint16_t kMagic = 0xeb9f;
constexpr uint8_t kVersion = 1;

struct Record {
  uint32_t name;
  uint32_t info;
  uint32_t size_or_ref;
};

struct MemberRecord {
  uint32_t name;
  uint32_t type;
  uint32_t offset;  // bits; with the structure's flag: 24 bits, then 8 of the size of a bit-field
};

BtfKind KindOf(uint32_t info) { return static_cast<BtfKind>((info >> 24) & 0x1f); }

// Returns the size of the data behind a record; nothing: there is no such kind.
std::optional<size_t> BodySize(BtfKind kind, size_t count) {
  switch (kind) {
    case BtfKind::kPointer:
    case BtfKind::kForward:
    case BtfKind::kTypedef:
    case BtfKind::kVolatile:
    case BtfKind::kConst:
    case BtfKind::kRestrict:
    case BtfKind::kFunction:
    case BtfKind::kFloat:
    case BtfKind::kTypeTag:
      return 0;
    case BtfKind::kInt:
    case BtfKind::kVariable:
    case BtfKind::kDeclarationTag:
      return 4;
    case BtfKind::kArray:
      return 12;
    case BtfKind::kStruct:
    case BtfKind::kUnion:
    case BtfKind::kSection:
    case BtfKind::kEnum64:
      return 12 * count;
    case BtfKind::kEnum:
    case BtfKind::kPrototype:
      return 8 * count;
    case BtfKind::kVoid:
      break;
  }
  return std::nullopt;
}

bool IsStructure(const BtfType& type) {
  return type.kind == BtfKind::kStruct || type.kind == BtfKind::kUnion;
}

std::unexpected<Error> Corrupt(std::string what) {
  return Fail(ErrorCode::kCorrupt, "BTF: " + std::move(what));
}

}  // namespace

std::string_view IntegerName(std::string_view name) {
  static constexpr std::pair<std::string_view, std::string_view> kNames[] = {
      {"unsigned", "unsigned int"},
      {"long", "long int"},
      {"unsigned long", "long unsigned int"},
      {"unsigned short", "short unsigned int"},
      {"short", "short int"},
      {"long long", "long long int"},
      {"unsigned long long", "long long unsigned int"},
      {"unsigned __int128", "__int128 unsigned"}};
  for (const auto& [c, gcc] : kNames)
    if (name == c) return gcc;
  return name;
}

Result<Btf> Btf::Load(const std::string& path, std::shared_ptr<const Btf> base) {
  std::ifstream file(path, std::ios::binary);
  if (!file) return FailErrno(path);
  std::vector<uint8_t> bytes;
  std::vector<char> chunk(1u << 20);
  while (file.read(chunk.data(), static_cast<std::streamsize>(chunk.size())) || file.gcount() > 0) {
    bytes.insert(bytes.end(), chunk.begin(), chunk.begin() + file.gcount());
    if (bytes.size() > kMaxBtfBytes) return Fail(ErrorCode::kLimit, path + ": too large for a BTF");
  }
  Result<Btf> btf = Parse(std::move(bytes), std::move(base));
  if (!btf) return std::unexpected(std::move(btf.error()).Context(path));
  return btf;
}

Result<Btf> Btf::Parse(std::vector<uint8_t> bytes, std::shared_ptr<const Btf> base) {
  Btf btf;
  btf.bytes_ = std::move(bytes);
  btf.base_ = std::move(base);
  Header header{};
  WEFT_TRY(btf.ReadHeader(&header));
  const size_t strings = size_t{header.header_size} + header.string_offset;
  btf.strings_ = {reinterpret_cast<const char*>(btf.bytes_.data()) + strings, header.string_size};
  if (!btf.strings_.empty() && btf.strings_.back() != '\0') return Corrupt("strings have no end");
  if (btf.base_ != nullptr) {
    btf.first_ = btf.base_->end();
    btf.first_string_ =
        btf.base_->first_string_ + static_cast<uint32_t>(btf.base_->strings_.size());
  }
  WEFT_TRY(btf.IndexTypes(header));
  btf.IndexNames();
  return btf;
}

Status Btf::ReadHeader(Header* out) const {
  ByteReader reader{Bytes(bytes_)};
  *out = reader.Read<Header>();
  if (!reader.ok() || out->header_size < sizeof(Header)) return Corrupt("shorter than its header");
  if (out->magic != kMagic) return Fail(ErrorCode::kUnsupported, "BTF: no BTF of this byte order");
  if (out->version != kVersion)
    return Fail(ErrorCode::kUnsupported, "BTF: version " + std::to_string(out->version));
  const auto inside = [&](uint64_t offset, uint64_t size) {
    return out->header_size + offset + size <= bytes_.size();
  };
  if (!inside(out->type_offset, out->type_size) || !inside(out->string_offset, out->string_size))
    return Corrupt("its parts are beyond its end");
  return {};
}

Status Btf::IndexTypes(const Header& header) {
  const size_t begin = size_t{header.header_size} + header.type_offset;
  const size_t end = begin + header.type_size;
  size_t at = begin;
  while (at < end) {
    ByteReader reader(Bytes(bytes_).subspan(at, end - at));
    const auto record = reader.Read<Record>();
    const auto body = BodySize(KindOf(record.info), record.info & 0xffff);
    if (!reader.ok()) return Corrupt("a type is cut off");
    if (!body) {
      return Fail(ErrorCode::kUnsupported, "BTF: type " + std::to_string(first_ + records_.size()) +
                                               " is of a kind unknown");
    }
    if (*body > reader.remaining()) return Corrupt("a type is cut off");
    records_.push_back(static_cast<uint32_t>(at));
    at += sizeof(Record) + *body;
  }
  return {};
}

void Btf::IndexNames() {
  for (uint32_t id = first_; id < end(); ++id) {
    const BtfType type = Type(id);
    if (!type.name.empty()) names_.emplace_back(type.name, id);
  }
  std::ranges::sort(names_);
}

uint32_t Btf::first() const { return first_; }

uint32_t Btf::end() const { return first_ + static_cast<uint32_t>(records_.size()); }

std::string_view Btf::Name(uint32_t offset) const {
  if (offset < first_string_) return base_->Name(offset);
  offset -= first_string_;
  if (offset >= strings_.size()) return {};
  return {strings_.data() + offset};  // strings_ ends with a NUL
}

const Btf* Btf::Owner(uint32_t id) const {
  const Btf* owner = this;
  while (id < owner->first_ && owner->base_ != nullptr) owner = owner->base_.get();
  return id >= owner->first_ && id < owner->end() ? owner : nullptr;
}

BtfType Btf::Type(uint32_t id) const {
  const Btf* owner = Owner(id);
  if (owner == nullptr) return {};
  ByteReader reader(Bytes(owner->bytes_).subspan(owner->records_[id - owner->first_]));
  const auto record = reader.Read<Record>();
  const BtfKind kind = KindOf(record.info);
  const std::string_view name = owner->Name(record.name);
  return {.id = id,
          .kind = kind,
          .flag = (record.info >> 31) != 0,
          .count = static_cast<uint16_t>(record.info & 0xffff),
          .size_or_ref = record.size_or_ref,
          .name = kind == BtfKind::kInt ? IntegerName(name) : name};
}

// Returns the bytes behind the type's record.
Bytes Btf::Body(const BtfType& type) const {
  const Btf* owner = Owner(type.id);
  const auto size = BodySize(type.kind, type.count);
  if (owner == nullptr || !size) return {};
  return Bytes(owner->bytes_)
      .subspan(owner->records_[type.id - owner->first_] + sizeof(Record), *size);
}

BtfType Btf::Resolve(uint32_t id) const {
  for (int depth = 0; depth < kMaxTypeDepth; ++depth) {
    const BtfType type = Type(id);
    switch (type.kind) {
      case BtfKind::kTypedef:
      case BtfKind::kConst:
      case BtfKind::kVolatile:
      case BtfKind::kRestrict:
      case BtfKind::kTypeTag:
        id = type.size_or_ref;
        break;
      default:
        return type;
    }
  }
  return {};
}

std::optional<uint64_t> Btf::SizeOf(uint32_t id) const {
  uint64_t elements = 1;
  for (int depth = 0; depth < kMaxTypeDepth; ++depth) {
    const BtfType type = Resolve(id);
    switch (type.kind) {
      case BtfKind::kInt:
      case BtfKind::kStruct:
      case BtfKind::kUnion:
      case BtfKind::kEnum:
      case BtfKind::kEnum64:
      case BtfKind::kFloat:
        return elements * type.size_or_ref;
      case BtfKind::kPointer:
        return elements * sizeof(uint64_t);
      case BtfKind::kArray: {
        const BtfArray array = ArrayOf(type);
        elements *= array.count;
        // That is larger than any memory. The check also keeps the product from overflowing.
        if (elements > UINT32_MAX) return std::nullopt;
        id = array.element;
        break;
      }
      default:
        return std::nullopt;
    }
  }
  return std::nullopt;
}

BtfInt Btf::IntOf(const BtfType& type) const {
  if (type.kind != BtfKind::kInt) return {};
  const auto info = ByteReader(Body(type)).Read<uint32_t>();
  const uint32_t encoding = (info >> 24) & 0x0f;
  return {.bits = static_cast<uint8_t>(info & 0xff),
          .is_signed = (encoding & 1) != 0,
          .is_char = (encoding & 2) != 0,
          .is_bool = (encoding & 4) != 0};
}

BtfArray Btf::ArrayOf(const BtfType& type) const {
  if (type.kind != BtfKind::kArray) return {};
  ByteReader reader(Body(type));
  const auto element = reader.Read<uint32_t>();
  reader.Skip(sizeof(uint32_t));  // the type of its index
  return {.element = element, .count = reader.Read<uint32_t>()};
}

std::vector<BtfMember> Btf::Members(const BtfType& type) const {
  std::vector<BtfMember> members;
  if (!IsStructure(type)) return members;
  const Btf* owner = Owner(type.id);
  ByteReader reader(Body(type));
  for (uint32_t i = 0; i < type.count; ++i) {
    const auto record = reader.Read<MemberRecord>();
    BtfMember member{
        .name = owner->Name(record.name), .type = record.type, .bit_offset = record.offset};
    if (type.flag) {
      member.bit_offset = record.offset & 0xffffff;
      member.bit_size = static_cast<uint8_t>(record.offset >> 24);
    }
    members.push_back(member);
  }
  return members;
}

std::vector<BtfParameter> Btf::Parameters(const BtfType& prototype) const {
  std::vector<BtfParameter> parameters;
  if (prototype.kind != BtfKind::kPrototype) return parameters;
  const Btf* owner = Owner(prototype.id);
  ByteReader reader(Body(prototype));
  for (uint32_t i = 0; i < prototype.count; ++i) {
    const auto name = reader.Read<uint32_t>();
    parameters.push_back({.name = owner->Name(name), .type = reader.Read<uint32_t>()});
  }
  return parameters;
}

std::vector<BtfEnumerator> Btf::Enumerators(const BtfType& type) const {
  std::vector<BtfEnumerator> enumerators;
  if (type.kind != BtfKind::kEnum && type.kind != BtfKind::kEnum64) return enumerators;
  const Btf* owner = Owner(type.id);
  ByteReader reader(Body(type));
  for (uint32_t i = 0; i < type.count; ++i) {
    const auto name = reader.Read<uint32_t>();
    const auto low = reader.Read<uint32_t>();
    uint64_t value = low;
    if (type.kind == BtfKind::kEnum64) {
      value |= uint64_t{reader.Read<uint32_t>()} << 32;
    } else if (type.flag) {
      value = static_cast<uint64_t>(int64_t{static_cast<int32_t>(low)});
    }
    enumerators.push_back({.name = owner->Name(name), .value = value});
  }
  return enumerators;
}

std::optional<BtfMember> Btf::FindMember(const BtfType& type, std::string_view name) const {
  size_t budget = kMaxMembersSearched;
  return FindMember(type, name, &budget);
}

std::optional<BtfMember> Btf::FindMember(const BtfType& type, std::string_view name,
                                         size_t* budget) const {
  if (!IsStructure(type) || name.empty()) return std::nullopt;
  for (const BtfMember& member : Members(type)) {
    if (*budget == 0) return std::nullopt;
    --*budget;
    if (member.name == name) return member;
    if (!member.name.empty()) continue;
    std::optional<BtfMember> inner = FindMember(Resolve(member.type), name, budget);
    if (!inner) continue;
    inner->bit_offset += member.bit_offset;
    return inner;
  }
  return std::nullopt;
}

std::optional<BtfType> Btf::Find(BtfKind kind, std::string_view name) const {
  auto at = std::ranges::lower_bound(names_, std::pair{name, uint32_t{0}});
  for (; at != names_.end() && at->first == name; ++at) {
    const BtfType type = Type(at->second);
    if (type.kind == kind) return type;
  }
  if (base_ != nullptr) return base_->Find(kind, name);
  return std::nullopt;
}

std::vector<BtfType> Btf::FindPrefix(BtfKind kind, std::string_view prefix) const {
  std::vector<BtfType> found;
  auto at = std::ranges::lower_bound(names_, std::pair{prefix, uint32_t{0}});
  for (; at != names_.end() && at->first.starts_with(prefix); ++at) {
    const BtfType type = Type(at->second);
    if (type.kind == kind) found.push_back(type);
  }
  return found;
}

}  // namespace weft::kernel
