// SPDX-License-Identifier: Apache-2.0
// Steps that fetch the fields of an event. They belong to no back end: each back end (backend.h)
// makes its own program of them (fetch_program.h makes weft.ko's). A step does what the operation
// of that name in lib/abi/fetch.h does, and the limits there hold for every back end.
// Thread-safety: plain values.
#ifndef WEFT_NODE_AGENT_KERNEL_FETCH_STEP_H_
#define WEFT_NODE_AGENT_KERNEL_FETCH_STEP_H_

#include <cstdint>

#include "lib/abi/fetch.h"

namespace weft::kernel {

enum class FetchCode : uint8_t {
  kArgument,
  kLoad,
  kAdd,
  kBits,
  kCount,
  kTask,
  kRegister,
  kWithin,
  // Each code from here on makes one field.
  kStore,
  kBytes,
  kString,
  kSequence,
  kGather,
  kUnixPath,
};

inline constexpr uint8_t kFetchSigned = 1U << 0;
inline constexpr uint8_t kFetchTrusted = 1U << 1;
inline constexpr uint8_t kFetchUser = 1U << 2;
inline constexpr uint8_t kFetchKeepOther = 1U << 3;

struct FetchStep {
  FetchCode code = FetchCode::kArgument;
  uint8_t arg = 0;
  uint8_t size = 0;
  uint8_t flags = 0;  // kFetch...
  int32_t offset = 0;
  uint32_t limit = 0;

  bool operator==(const FetchStep&) const = default;
};

}  // namespace weft::kernel

#endif  // WEFT_NODE_AGENT_KERNEL_FETCH_STEP_H_
