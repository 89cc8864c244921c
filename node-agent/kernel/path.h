// SPDX-License-Identifier: Apache-2.0
// Paths: how the catalogue, and a Trace, name a value that an event's arguments lead to.
//
//   path    = argument step*
//   argument = name | "$" number | "(" type ")" argument | "(" type ":" member ")" argument
//   step    = "." member | "[" number "]" | "[]" | "(" type ")"
//
// `.` goes into a structure and through a pointer to one; `[n]` to an element of an array or behind
// a pointer. (type)argument takes a pointer for one to `struct type`; (type:member) for one to that
// member of a `struct type`; a type may also be an integer. Behind a member, (type) turns the
// member's pointer into one to that type. `[n]` directly behind a cast is an element of an array of
// that type, `[]` each of them, for a sequence: members may follow, no pointer. `$2` is the third
// argument. Examples: "(inet_sock)sk.inet_sport", "(int)fildes[1]",
// "(user_msghdr)msg.msg_name(sockaddr).sa_family", "(iovec)vec[].iov_len".
//
// Locate finds the place in a kernel's types and makes the operations that lead there.
// Thread-safety: it has plain values and pure functions.
#ifndef WEFT_NODE_AGENT_KERNEL_PATH_H_
#define WEFT_NODE_AGENT_KERNEL_PATH_H_

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "lib/base/result.h"
#include "node-agent/kernel/btf.h"
#include "node-agent/kernel/fetch_step.h"
#include "node-agent/kernel/tracepoint.h"

namespace weft::kernel {

struct PathStep {
  std::string member;  // empty: a cast, or an index
  std::string type;    // of a cast
  uint32_t index = 0;
  bool each = false;  // "[]"

  bool operator==(const PathStep&) const = default;
};

struct Path {
  std::string argument;  // "$2", or its name
  std::string type;      // of a cast; empty: none
  std::string member;    // that the pointer points to; empty: to the start
  std::vector<PathStep> steps;

  // kInvalid: no path; the message has the position.
  static Result<Path> Parse(std::string_view text);

  bool operator==(const Path&) const = default;
};

// The place of a value after `ops` have run: in A, or in memory at A + offset.
struct Place {
  std::vector<FetchStep> ops;
  uint32_t argument = 0;  // number of the argument that it begins with
  bool in_memory = false;
  uint8_t flags = 0;  // kFetchTrusted where memory at A + offset may be read plainly
  int32_t offset = 0;
  uint32_t type = 0;       // of the value; 0: nothing is known
  uint8_t bit_size = 0;    // 0: no bit-field
  uint8_t bit_offset = 0;  // of a bit-field, from the bit at A + offset
  uint8_t stride = 0;      // bytes from this to the same of the next element; 0: of no array

  // Loads the value into A: an integer or pointer of `size` bytes.
  void LoadValue(uint8_t size, bool is_signed);
};

// kNotFound: this kernel has no such argument or member; kUnsupported: the path makes no sense here
// (a member of an integer).
Result<Place> Locate(const Btf& btf, const std::vector<Argument>& arguments, const Path& path);

}  // namespace weft::kernel

#endif  // WEFT_NODE_AGENT_KERNEL_PATH_H_
