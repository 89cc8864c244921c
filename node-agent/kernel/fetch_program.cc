// SPDX-License-Identifier: Apache-2.0
#include "node-agent/kernel/fetch_program.h"

#include <utility>

namespace weft::kernel {
namespace {

weft_fetch_code CodeOf(FetchCode code) {
  switch (code) {
    case FetchCode::kArgument:
      return WEFT_FETCH_ARG;
    case FetchCode::kLoad:
      return WEFT_FETCH_LOAD;
    case FetchCode::kAdd:
      return WEFT_FETCH_ADD;
    case FetchCode::kBits:
      return WEFT_FETCH_BITS;
    case FetchCode::kCount:
      return WEFT_FETCH_COUNT;
    case FetchCode::kTask:
      return WEFT_FETCH_TASK;
    case FetchCode::kRegister:
      return WEFT_FETCH_REG;
    case FetchCode::kWithin:
      return WEFT_FETCH_WITHIN;
    case FetchCode::kStore:
      return WEFT_FETCH_STORE;
    case FetchCode::kBytes:
      return WEFT_FETCH_BYTES;
    case FetchCode::kString:
      return WEFT_FETCH_STRING;
    case FetchCode::kSequence:
      return WEFT_FETCH_SEQUENCE;
    case FetchCode::kGather:
      return WEFT_FETCH_GATHER;
    case FetchCode::kUnixPath:
      return WEFT_FETCH_UNIX_PATH;
  }
  std::unreachable();
}

uint8_t FlagsOf(uint8_t flags) {
  static_assert(kFetchSigned == WEFT_FETCH_SIGNED && kFetchTrusted == WEFT_FETCH_TRUSTED &&
                kFetchUser == WEFT_FETCH_USER && kFetchKeepOther == WEFT_FETCH_KEEP_OTHER);
  return flags;
}

}  // namespace

std::vector<weft_fetch_op> FetchProgram(std::span<const FetchStep> steps) {
  std::vector<weft_fetch_op> program;
  program.reserve(steps.size());
  for (const FetchStep& step : steps)
    program.push_back({.code = static_cast<uint8_t>(CodeOf(step.code)),
                       .arg = step.arg,
                       .size = step.size,
                       .flags = FlagsOf(step.flags),
                       .offset = step.offset,
                       .limit = step.limit,
                       .reserved = 0});
  return program;
}

}  // namespace weft::kernel
