// SPDX-License-Identifier: Apache-2.0
// Reads the kernel's description of its own types: BTF (Linux, Documentation/bpf/btf.rst), as in
// /sys/kernel/btf/vmlinux and, for a module, split, in /sys/kernel/btf/MODULE.
//
// A Btf that Load or Parse returned has these properties, whatever the bytes were:
//   1. every type record lies within the bytes and has a known kind;
//   2. every name that is handed out lies within the strings and ended with a NUL there.
//
// A reference of a type to itself, or to a type that does not exist, is no error: it reads as
// kVoid, and every walk along references is bounded (limits.h).
//
// Integers have gcc's names, whichever compiler built the kernel (IntegerName).
//
// Names are views into the Btf. Thread-safety: immutable after Parse; any number of readers.
#ifndef WEFT_NODE_AGENT_KERNEL_BTF_H_
#define WEFT_NODE_AGENT_KERNEL_BTF_H_

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "lib/base/bytes.h"
#include "lib/base/result.h"

namespace weft::kernel {

// The numbers are BTF's own.
enum class BtfKind : uint8_t {
  kVoid = 0,
  kInt = 1,
  kPointer = 2,
  kArray = 3,
  kStruct = 4,
  kUnion = 5,
  kEnum = 6,
  kForward = 7,
  kTypedef = 8,
  kVolatile = 9,
  kConst = 10,
  kRestrict = 11,
  kFunction = 12,
  kPrototype = 13,
  kVariable = 14,
  kSection = 15,
  kFloat = 16,
  kDeclarationTag = 17,
  kTypeTag = 18,
  kEnum64 = 19,
};

// gcc's name of an integer type as C and clang have it: "unsigned long" is "long unsigned int".
// Others stay.
std::string_view IntegerName(std::string_view name);

struct BtfType {
  uint32_t id = 0;
  BtfKind kind = BtfKind::kVoid;
  bool flag = false;         // structures: members may be bit-fields; enums: signed
  uint16_t count = 0;        // members, parameters, enumerators
  uint32_t size_or_ref = 0;  // bytes, or the type referred to
  std::string_view name;     // empty: none
};

struct BtfInt {
  uint8_t bits = 0;
  bool is_signed = false;
  bool is_char = false;
  bool is_bool = false;
};

struct BtfArray {
  uint32_t element = 0;  // type
  uint32_t count = 0;
};

// The place of a member in its outermost structure.
struct BtfMember {
  std::string_view name;
  uint32_t type = 0;
  uint32_t bit_offset = 0;
  uint8_t bit_size = 0;  // 0: no bit-field
};

struct BtfParameter {
  std::string_view name;  // empty in a prototype that no function has
  uint32_t type = 0;
};

struct BtfEnumerator {
  std::string_view name;
  uint64_t value = 0;  // sign-extended
};

class Btf {
 public:
  Btf(Btf&&) = default;
  Btf& operator=(Btf&&) = default;

  // `base`: of the kernel, for a module's split BTF; it is shared with the result. Errors:
  // kCorrupt; kUnsupported: another byte order or version, or an unknown kind.
  static Result<Btf> Parse(std::vector<uint8_t> bytes, std::shared_ptr<const Btf> base = nullptr);
  static Result<Btf> Load(const std::string& path, std::shared_ptr<const Btf> base = nullptr);

  // Ids are 0 to end() - 1; those of the base come first, from first() on they are this one's own.
  [[nodiscard]] uint32_t first() const;
  [[nodiscard]] uint32_t end() const;

  // Returns kVoid for an id that does not exist.
  [[nodiscard]] BtfType Type(uint32_t id) const;

  // Returns the type without typedef, const, volatile, restrict and tags.
  [[nodiscard]] BtfType Resolve(uint32_t id) const;

  // Returns the bytes of a value of this type; std::nullopt: it has none (void, a function, a
  // forward declaration).
  [[nodiscard]] std::optional<uint64_t> SizeOf(uint32_t id) const;

  // The functions below want a type of the right kind, and return nothing, or zeros, for another.
  [[nodiscard]] BtfInt IntOf(const BtfType& type) const;
  [[nodiscard]] BtfArray ArrayOf(const BtfType& type) const;
  [[nodiscard]] std::vector<BtfMember> Members(const BtfType& type) const;
  [[nodiscard]] std::vector<BtfParameter> Parameters(const BtfType& prototype) const;
  [[nodiscard]] std::vector<BtfEnumerator> Enumerators(const BtfType& type) const;

  // Finds a member by name, also inside members without a name, whose offsets are added.
  [[nodiscard]] std::optional<BtfMember> FindMember(const BtfType& type,
                                                    std::string_view name) const;

  // Returns the first type of that kind and name; this BTF's own come before the base's.
  [[nodiscard]] std::optional<BtfType> Find(BtfKind kind, std::string_view name) const;

  // This BTF's own types of that kind whose names begin so, ordered by name.
  [[nodiscard]] std::vector<BtfType> FindPrefix(BtfKind kind, std::string_view prefix) const;

 private:
  struct Header;

  Btf() = default;

  Status ReadHeader(Header* out) const;
  Status IndexTypes(const Header& header);
  void IndexNames();
  [[nodiscard]] std::string_view Name(uint32_t offset) const;
  [[nodiscard]] const Btf* Owner(uint32_t id) const;
  [[nodiscard]] Bytes Body(const BtfType& type) const;
  [[nodiscard]] std::optional<BtfMember> FindMember(const BtfType& type, std::string_view name,
                                                    size_t* budget) const;

  std::vector<uint8_t> bytes_;
  std::shared_ptr<const Btf> base_;
  std::string_view strings_;
  uint32_t first_string_ = 0;      // what this BTF's own string offsets begin with
  uint32_t first_ = 1;             // its own first id
  std::vector<uint32_t> records_;  // offset in bytes_ of type first_ + index
  std::vector<std::pair<std::string_view, uint32_t>> names_;  // (name, id), sorted
};

}  // namespace weft::kernel

#endif  // WEFT_NODE_AGENT_KERNEL_BTF_H_
