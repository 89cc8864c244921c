// SPDX-License-Identifier: Apache-2.0
// The functions of one ELF file, by its symbol tables, as far as the rules of Traces name them.
// Files are foreign: all numbers are checked, and a file that contradicts itself has no functions.
// Thread-safety: pure functions.
#ifndef WEFT_NODE_AGENT_HOOKS_FUNCTIONS_H_
#define WEFT_NODE_AGENT_HOOKS_FUNCTIONS_H_

#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "lib/api/trace.h"
#include "lib/base/result.h"
#include "lib/base/unique_fd.h"
#include "node-agent/hooks/function_types.h"
#include "node-agent/hooks/near_names.h"

namespace weft::hooks {

// One rule of spec.user.functions.
struct HookRule {
  std::string trace;  // for people
  api::FunctionRule rule;
  bool operator==(const HookRule&) const = default;
};

// Does a rule's object match this file name? The versions at the end of a library's name may be
// left out: programs load libx.so.1, which is a link to libx.so.1.2.
bool MeansObject(const std::string& pattern, const std::string& object);

// Does a pattern of a rule (name or exclude) match this symbol: the symbol itself, or one of its
// C++ names (cpp_names.h)? Writes the name that it matches: the event gets this name, so that the
// rule's pattern, or SpellPattern of it, matches the event, too.
bool MeansFunction(const std::string& pattern, const std::string& symbol, std::string& event_name);

struct Function {
  std::string name;  // of its events
  std::string symbol;
  uint64_t value = 0;  // address in the file's own numbering
  uint64_t size = 0;
  size_t rule = 0;          // index of the first rule that means it
  std::string why_not;      // why it cannot be hooked at all; "": as far as the file tells, it can
  std::string why_no_exit;  // why its exit cannot be recorded
};

// Has the Trace of `rule` all the events of a function that it asks for by the rule `earlier`?
bool Covers(const HookRule& earlier, const HookRule& rule);

// How an earlier rule has a function.
struct RecordedAs {
  std::string name;  // of its events
  size_t rule = 0;   // the index of the earlier rule
  bool operator==(const RecordedAs&) const = default;
};

struct FunctionFile {
  std::string name;                 // of the object
  std::vector<Function> functions;  // by value; one for each address
  std::vector<uint64_t> values;     // of all symbols of code, sorted
  uint64_t lowest = 0;              // value of the first segment, at a page
  bool is_go = false;
  // By the index of a rule that is no pattern, and that means none of the functions: the nearest
  // names. Their object is left empty.
  std::map<size_t, std::vector<NearName>> near;
  // By the index of a rule that means a function which an earlier rule means, too, perhaps by
  // another symbol of it.
  std::map<size_t, RecordedAs> recorded_as;
  TypesByAddress types;            // of functions, from debug information
  std::string why_no_types;        // why that could not be read; "": it could, or there is none
  std::string why_no_symbols;      // why those of its debug file, or the functions of a program of
                                   // Go without symbols, could not be read; "": likewise
  bool has_servers_types = false;  // the debug information is from a debuginfod server
  bool is_awaited = false;         // a server was asked, and there is no answer yet
  bool asks_again = false;         // a server was asked, and did not give what was asked for
};

// Returns the functions of an open file that one of the rules with index in `chosen` means.
// `more`: files with further symbols of it (type_cache.h); one that cannot be read has none.
// kInvalid, kUnsupported: it is no ELF file of 64 bits. kLimit: it has too many symbols, or the
// rules mean too many functions.
Result<FunctionFile> ReadFunctions(int file, const std::vector<HookRule>& rules,
                                   const std::vector<size_t>& chosen,
                                   const std::vector<UniqueFd>& more = {});

// Returns the addresses of the functions that may be hooked, sorted. Left out are copies that the
// compiler made for some of the callers: their arguments are not those of the source. A file of Go
// has none.
std::vector<uint64_t> AddressesToType(const FunctionFile& file);

// Is it a C library, of which only the functions of sets are hooked (lib/api/function_sets.h)?
bool IsCLibrary(const std::string& name);

// Why a function is refused in whose first WEFT_HOOK_JUMP_BYTES another symbol lies.
inline constexpr const char* kSecondBegin =
    "another function begins inside its first 5 bytes, which a hook replaces";

// Returns why functions of an object with this file name are not hooked; "": they are.
std::string WhyNotObject(const std::string& name);

// A function that a file has under a name for others.
struct NamedFunction {
  uint64_t value = 0;  // less the value of the first segment
  uint64_t size = 0;
};
// Returns those of an open file that have one of the names. `is_static`: the file is a program that
// has no dynamic symbols.
Result<std::map<std::string, NamedFunction>> FindFunctions(int file,
                                                           const std::set<std::string>& names,
                                                           bool is_static);

// Returns the value of a symbol of the file's dynamic symbols, less the value of the first segment.
Result<uint64_t> FindDynamicSymbol(int file, const char* name);

}  // namespace weft::hooks

#endif  // WEFT_NODE_AGENT_HOOKS_FUNCTIONS_H_
