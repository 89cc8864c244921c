// SPDX-License-Identifier: Apache-2.0
// The half of the TSDL parser that reads types: integer, floating_point, string, enum, struct,
// variant, and the names given to them. tsdl_parser.cc reads the blocks around them.
// Thread-safety: one thread.
#ifndef WEFT_LIB_CTF_TSDL_TYPES_H_
#define WEFT_LIB_CTF_TSDL_TYPES_H_

#include <map>
#include <string>
#include <utility>
#include <vector>

#include "lib/ctf/trace_class.h"
#include "lib/ctf/tsdl_tokens.h"

namespace weft::ctf {

class TsdlTypes {
 public:
  TsdlTypes(TsdlTokens& tokens, bool big_endian) : tokens_(tokens), big_endian_(big_endian) {
    scopes_.emplace_back();
  }

  // Names defined between the two are forgotten at the end.
  void OpenScope() { scopes_.emplace_back(); }
  void CloseScope() { scopes_.pop_back(); }
  // Called after an error: only the names of the outermost scope remain.
  void CloseAllScopes() { scopes_.resize(1); }

  // Reads a typealias, a typedef, or a named struct, variant or enum that declares nothing. Returns
  // false, and takes nothing, if it is something else.
  Result<bool> Definition();

  // Reads a type without a name behind it, as in "fields := TYPE;".
  Result<Type> TypeOnly() { return ParseType(false); }

  // Reads a number with sign, as two's complement.
  Result<uint64_t> SignedNumber();

 private:
  using Names = std::map<std::string, Type, std::less<>>;

  Result<Type> ParseType(bool declares);
  Result<Type> Integer();
  Result<Type> Float();
  Result<Type> String();
  Result<Type> Enum();
  Result<Type> Struct();
  Result<Type> Variant();
  Result<Type> Alias(bool declares);
  Result<Type> Dimensions(Type type);
  Status Mappings(Type& type);
  Status Members(Type& type);
  Status Typealias();
  Status Typedef();
  Status Attribute(Type& type, const std::string& name);
  Result<uint8_t> Base();
  Result<bool> Boolean();
  Result<bool> ByteOrder();
  Result<uint32_t> Align();
  Result<std::string> Path();
  Result<Type> Lookup(const std::string& name);
  Status Define(const std::string& name, const Type& type);

  TsdlTokens& tokens_;
  bool big_endian_;
  int depth_ = 0;
  uint32_t budget_ = kMaxTypeNodes;
  std::vector<Names> scopes_;
};

}  // namespace weft::ctf

#endif  // WEFT_LIB_CTF_TSDL_TYPES_H_
