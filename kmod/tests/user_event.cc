// SPDX-License-Identifier: GPL-2.0-only
// See user_event.h.
#include "kmod/tests/user_event.h"

#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

#include <cstddef>
#include <cstring>
#include <utility>

#include "lib/event/description.h"

namespace weft::kmod {
namespace {

constexpr uint8_t kAddress = 1, kCount = 2;  // arguments

weft_fetch_op Argument(uint8_t number) {
  return {.code = WEFT_FETCH_ARG,
          .arg = number,
          .size = 8,
          .flags = 0,
          .offset = 0,
          .limit = 0,
          .reserved = 0};
}

weft_fetch_op User(uint8_t code, uint8_t size, uint32_t limit = 0) {
  return {.code = code,
          .arg = 0,
          .size = size,
          .flags = WEFT_FETCH_USER,
          .offset = 0,
          .limit = limit,
          .reserved = 0};
}

weft_fetch_op Plain(uint8_t code, uint8_t size = 0) {
  return {.code = code, .arg = 0, .size = size, .flags = 0, .offset = 0, .limit = 0, .reserved = 0};
}

std::vector<weft_fetch_op> Program(uint32_t limit) {
  std::vector<weft_fetch_op> program;
  for (const uint8_t argument : {uint8_t{0}, kAddress, kCount}) {
    program.push_back(Argument(argument));
    program.push_back(Plain(WEFT_FETCH_STORE, 8));
  }
  program.push_back(Argument(kAddress));
  program.push_back(User(WEFT_FETCH_LOAD, 8));
  program.push_back(Plain(WEFT_FETCH_STORE, 8));
  program.push_back(Argument(kAddress));
  program.push_back(User(WEFT_FETCH_BYTES, 4));
  program.push_back(User(WEFT_FETCH_STRING, 0, limit));
  program.push_back(Argument(kCount));
  program.push_back(Plain(WEFT_FETCH_COUNT));
  program.push_back(Argument(kAddress));
  program.push_back(User(WEFT_FETCH_SEQUENCE, 1, limit));
  return program;
}

std::vector<uint8_t> Description() {
  EventDescription event;
  event.name = "kernel:user";
  for (const char* name : {"policy", "address", "count", "word"})
    event.fields.push_back({.name = name, .elem_size = 8});
  event.fields.push_back({.name = "bytes",
                          .kind = FieldKind::kArray,
                          .flags = WEFT_FIELD_INLINE,
                          .elem_size = 1,
                          .count = 4});
  event.fields.push_back(
      {.name = "text", .kind = FieldKind::kString, .flags = WEFT_FIELD_TEXT, .elem_size = 1});
  event.fields.push_back(
      {.name = "list", .kind = FieldKind::kSequence, .elem_size = 1, .length_size = 4});
  return event.Encode().value_or(std::vector<uint8_t>{});
}

}  // namespace

Event UserEvent(uint32_t limit) {
  Event event = Event::SyscallEntry(SYS_sched_get_priority_max);
  event.description() = Description();
  event.operations() = Program(limit);
  return event;
}

Event PartsEvent() {
  Event event = Event::SyscallEntry(SYS_sched_get_priority_max);
  EventDescription description;
  description.name = "kernel:parts";
  for (const auto& [name, size] : {std::pair("lens", 8), std::pair("data", 1)})
    description.fields.push_back({.name = name,
                                  .kind = FieldKind::kSequence,
                                  .elem_size = static_cast<uint8_t>(size),
                                  .length_size = 4});
  event.description() = description.Encode().value_or(std::vector<uint8_t>{});
  weft_fetch_op lens = User(WEFT_FETCH_SEQUENCE, 8, 8 * WEFT_FETCH_MAX_PARTS);
  lens.arg = sizeof(iovec);
  lens.offset = offsetof(iovec, iov_len);
  weft_fetch_op data = User(WEFT_FETCH_GATHER, 8, kUserText);
  data.arg = 0;
  for (const weft_fetch_op& op : {lens, data}) {
    event.operations().push_back(Argument(kCount));
    event.operations().push_back(Plain(WEFT_FETCH_COUNT));
    event.operations().push_back(Argument(kAddress));
    event.operations().push_back(op);
  }
  return event;
}

void CallUserEvent(uint64_t policy, const void* address, uint64_t count) {
  ::syscall(SYS_sched_get_priority_max, policy, address, count);
}

UserRecord ReadUserRecord(std::span<const uint8_t> payload) {
  UserRecord record;
  uint32_t text = 0, list = 0;
  constexpr size_t kFixed = 4 * sizeof(uint64_t) + 3 * sizeof(uint32_t);
  if (payload.size() < kFixed) return record;
  const uint8_t* at = payload.data();
  const auto take = [&at](auto& value) {
    std::memcpy(&value, at, sizeof(value));
    at += sizeof(value);
  };
  take(record.policy);
  take(record.address);
  take(record.count);
  take(record.word);
  take(record.bytes);
  take(text);
  take(list);
  record.whole = payload.size() == kFixed + uint64_t{text} + list;
  if (!record.whole) return record;
  record.text.assign(at, at + text);
  record.list.assign(at + text, at + text + list);
  return record;
}

PartsRecord ReadPartsRecord(std::span<const uint8_t> payload) {
  PartsRecord record;
  uint32_t counts[2] = {};
  if (payload.size() < sizeof(counts)) return record;
  std::memcpy(counts, payload.data(), sizeof(counts));
  const uint8_t* at = payload.data() + sizeof(counts);
  const size_t bytes = counts[0] * sizeof(uint64_t);
  record.whole = payload.size() == sizeof(counts) + bytes + counts[1];
  if (!record.whole) return record;
  record.lens.resize(counts[0]);
  std::memcpy(record.lens.data(), at, bytes);
  record.data.assign(at + bytes, at + bytes + counts[1]);
  return record;
}

}  // namespace weft::kmod
