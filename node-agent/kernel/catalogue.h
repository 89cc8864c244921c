// SPDX-License-Identifier: Apache-2.0
// The catalogue: which values of tracepoints and system calls are worth recording, by the names of
// the kernel's own types (docs/formats/catalogue.md). It knows no particular kernel: when an event
// is resolved (resolve.h), it turns out what a kernel lacks or has in another form.
//
// The catalogue is our own data, compiled into the agent (catalogue/*.yaml): Parse refuses unknown
// entries. Thread-safety: immutable after Parse.
#ifndef WEFT_NODE_AGENT_KERNEL_CATALOGUE_H_
#define WEFT_NODE_AGENT_KERNEL_CATALOGUE_H_

#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "lib/base/result.h"
#include "lib/event/description.h"
#include "node-agent/kernel/path.h"

namespace weft::kernel {

// The plan of one field.
struct FieldSpec {
  enum class As {
    kValue,    // what its type says: integer, enumeration, text, address
    kBytes,    // the memory of the value, as bytes
    kText,     // bytes that are text, or a pointer to some
    kAddress,  // a pointer's own value, also of one to text
    // what a socket address of family AF_UNIX names: a path, or "@" and an abstract name
    kUnixPath,
    kGather,  // what the buffers hold that an array of addresses and lengths names (struct iovec)
  };

  std::string name;
  std::vector<Path> paths;  // the first that a kernel has
  std::string of;           // the argument that is the task of which this tells; empty: of none
  As as = As::kValue;
  bool user = false;     // a pointer into the current task's memory
  bool network = false;  // big-endian
  uint8_t base = 0;      // how to show an integer; 0: its type says
  int32_t add = 0;       // to an integer
  uint8_t first_bit = 0;
  uint8_t bits = 0;    // of an integer, from first_bit; 0: all
  uint32_t limit = 0;  // bytes of a text or sequence; 0: kDefaultStringBytes
  std::string labels;  // of an enumeration: one of the catalogue, or of the kernel; empty: none
  std::optional<Path> count;  // the number of elements of what the path points to, or of its "[]"
  // The number of bytes of the object that the path's last pointer points to (a socket address): no
  // byte behind them is read.
  std::optional<Path> length;
  std::string total;  // kGather: the argument that says how many bytes there are; empty: all
};

struct TracepointEntry {
  std::vector<std::string> names;  // star patterns; exact names come before
  std::string event;  // the event's name, `*` stands for the tracepoint's; empty: the same
  // Arguments that are tasks whom it concerns, "current", or none: it belongs to no namespace.
  std::vector<std::string> subjects;
  bool arguments = false;  // record the arguments as they are, instead of fields
  std::vector<FieldSpec> fields;
  std::string exception;  // why it cannot be recorded; empty: it can
};

// A field that is more than a parameter's own value, or that exists only at entry or exit.
struct SyscallField {
  enum class Direction { kIn, kOut, kInOut };

  Direction direction = Direction::kIn;
  bool buffer = false;  // what is read or written: recorded only where that is asked for
  FieldSpec spec;
};

struct SyscallEntry {
  std::vector<std::string> names;
  std::vector<SyscallField> fields;

  [[nodiscard]] const SyscallField* Find(std::string_view name) const;
};

// A system call's numbers on this machine.
struct SyscallNumber {
  std::string name;
  std::optional<uint32_t> native;
  std::optional<uint32_t> compat;
};

// An event of the state dump.
struct StateEntry {
  std::string event;
  std::string of;  // what it says something of (statedump.h)
  std::vector<FieldSpec> fields;
};

class Catalogue {
 public:
  // kInvalid: the message names the document, the event and what is wrong.
  static Result<Catalogue> Parse(std::span<const std::string_view> documents);

  // Returns the catalogue that is compiled into this program.
  static const Catalogue& BuiltIn();

  // nullptr: it has no entry.
  [[nodiscard]] const TracepointEntry* Tracepoint(std::string_view name) const;
  [[nodiscard]] const SyscallEntry* Syscall(std::string_view name) const;

  [[nodiscard]] const std::vector<SyscallNumber>& numbers() const { return numbers_; }

  // Returns the name of a system call's function. It differs from the name in the table for some
  // calls. The second function does this for the table of 32-bit programs.
  [[nodiscard]] std::string FunctionOf(std::string_view table_name) const;
  [[nodiscard]] std::string CompatFunctionOf(std::string_view table_name) const;

  // Returns "TYPE NAME" of each parameter of a function for 32-bit programs that the kernel itself
  // does not describe; nullptr: the function is not one of these.
  [[nodiscard]] const std::vector<std::string>* CompatParameters(std::string_view function) const;

  // Returns the structure that a 32-bit program has in place of this one of 64-bit programs; empty:
  // unknown.
  [[nodiscard]] std::string_view CompatStructure(std::string_view structure) const;

  // Returns the name of a tracepoint's event in a trace.
  [[nodiscard]] std::string EventName(std::string_view tracepoint) const;

  // Returns what to record of an argument that points to a structure of this type; nullptr: only
  // its address. Paths begin with the argument "it".
  [[nodiscard]] const std::vector<FieldSpec>* Structure(std::string_view type) const;

  [[nodiscard]] const std::vector<EnumMapping>* Labels(std::string_view name) const;

  [[nodiscard]] const std::vector<TracepointEntry>& tracepoints() const { return tracepoints_; }
  [[nodiscard]] const std::vector<SyscallEntry>& syscalls() const { return syscalls_; }
  [[nodiscard]] const std::vector<StateEntry>& states() const { return states_; }

 private:
  friend class CatalogueReader;

  std::vector<TracepointEntry> tracepoints_;
  std::vector<SyscallEntry> syscalls_;
  std::vector<StateEntry> states_;
  std::vector<SyscallNumber> numbers_;
  std::map<std::string, std::string, std::less<>> functions_;
  std::map<std::string, std::string, std::less<>> compat_functions_;
  std::map<std::string, std::vector<std::string>, std::less<>> compat_parameters_;
  std::map<std::string, std::string, std::less<>> compat_structures_;
  std::map<std::string, size_t, std::less<>> exact_;  // name without stars: index in tracepoints_
  std::map<std::string, size_t, std::less<>> syscall_names_;
  std::map<std::string, std::vector<FieldSpec>, std::less<>> structures_;
  std::map<std::string, std::vector<EnumMapping>, std::less<>> labels_;
};

}  // namespace weft::kernel

#endif  // WEFT_NODE_AGENT_KERNEL_CATALOGUE_H_
