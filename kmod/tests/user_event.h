// SPDX-License-Identifier: GPL-2.0-only
// An event of a system call that takes an address of the caller's and does nothing with it, with
// fields of all kinds that are read there: sched_get_priority_max(policy, address, count). Any
// thread.
#ifndef WEFT_KMOD_TESTS_USER_EVENT_H_
#define WEFT_KMOD_TESTS_USER_EVENT_H_

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "kmod/tests/device.h"

namespace weft::kmod {

constexpr uint32_t kUserText = 256;  // a record has at most this many bytes of a text or list

// Fields: policy, address, count; word (8 bytes at the address), bytes (an array of 4), text (a
// string), list (a sequence of `count` bytes). Text and list have at most `limit` bytes each.
Event UserEvent(uint32_t limit = kUserText);
// An event for an array of struct iovec. Its fields: `lens`, the lengths of `count` buffers;
// `data`, their contents, at most `policy` bytes.
Event PartsEvent();
void CallUserEvent(uint64_t policy, const void* address, uint64_t count);

// One record of these events.
struct UserRecord {
  uint64_t policy = 0, address = 0, count = 0, word = 0;
  uint32_t bytes = 0;
  std::string text;
  std::vector<uint8_t> list;
  bool whole = false;  // the payload has just the bytes that its lengths say
};
UserRecord ReadUserRecord(std::span<const uint8_t> payload);

struct PartsRecord {
  std::vector<uint64_t> lens;
  std::string data;
  bool whole = false;
};
PartsRecord ReadPartsRecord(std::span<const uint8_t> payload);

}  // namespace weft::kmod

#endif  // WEFT_KMOD_TESTS_USER_EVENT_H_
