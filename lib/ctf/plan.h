// SPDX-License-Identifier: Apache-2.0
// How the bytes of a record in a ring become the bytes of a CTF event: a list of steps, made once
// per channel (contexts) and event class (payload) and run for every record by the consumer's
// thread. The record's bytes are foreign: a step checks every length against the record and cuts
// text at a NUL. Text that is no UTF-8 is kept as it is: readers show its bytes. A plan never
// writes more bytes than it reads. Thread-safety: immutable once made.
#ifndef WEFT_LIB_CTF_PLAN_H_
#define WEFT_LIB_CTF_PLAN_H_

#include <cstdint>
#include <vector>

#include "lib/ctf/schema.h"
#include "lib/event/description.h"

namespace weft::ctf {

enum class StepKind : uint8_t {
  kCopy,          // bytes of the fixed part, as they are
  kInlineText,    // bytes of the fixed part that are text
  kSegment,       // a segment of constant size
  kSegmentText,   // the same, text
  kString,        // u32 length in the fixed part, segment: text and a NUL
  kSequence,      // u32 count in the fixed part, segment: count in length_size bytes, elements
  kSequenceText,  // the same, text
  kDynamic,       // contexts only: u8 type, value
  kAddresses,     // contexts only: u32 count, values of 8 bytes
};

struct Step {
  StepKind kind = StepKind::kCopy;
  uint8_t length_size = 0;  // bytes of the count in the file
  uint8_t elem_size = 0;
  uint32_t bytes = 0;
};

// `fixed_size` bytes come first; segments follow them.
struct Plan {
  uint32_t fixed_size = 0;
  bool verbatim = true;     // the input is fixed_size bytes and is copied as it is
  bool sequential = false;  // contexts with one of no constant size: fixed_size says nothing
  uint32_t texts = 0;       // steps that may put a text
  std::vector<Step> steps;
};

// Returns the bytes of a sequence's count in a file. They are those of the source language, but a
// record is never so long that it needs eight.
inline uint8_t FileLengthSize(uint8_t length_size) { return length_size > 4 ? 4 : length_size; }

// The plans trust the schema (counts and sizes are within what lib/abi/event.h allows).
Plan MakeContextPlan(const ChannelSchema& channel);
Plan MakePayloadPlan(const EventDescription& event);

// The empty texts of a record: bit n means the record's text n. All texts from the last bit on
// share it.
using EmptyTexts = uint64_t;

inline EmptyTexts EmptyTextBit(uint32_t text) { return EmptyTexts{1} << (text < 63 ? text : 63); }

struct RunResult {
  const uint8_t* in = nullptr;  // behind what was read; nullptr: malformed
  uint8_t* out = nullptr;       // behind what was written
  EmptyTexts empty = 0;
};

// Reads from [in, end), writes at `out`, which has room for `end - in` bytes. `first_text`: the
// number of the record's texts before those of this plan.
RunResult RunPlan(const Plan& plan, const uint8_t* in, const uint8_t* end, uint8_t* out,
                  uint32_t first_text = 0);

}  // namespace weft::ctf

#endif  // WEFT_LIB_CTF_PLAN_H_
