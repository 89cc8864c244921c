// SPDX-License-Identifier: Apache-2.0
#include "tests/vm/module.h"

#include <fcntl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <stdexcept>

#include "node-agent/kernel/fetch_program.h"

namespace weft::vm {
namespace {

[[noreturn]] void Die(const std::string& what) {
  throw std::runtime_error(what + ": " + std::strerror(errno));
}

int Control(int fd, unsigned long request, void* argument) {
  const int result = ::ioctl(fd, request, argument);
  return result >= 0 ? result : -errno;
}

std::string Number(const FieldDescription& field, const uint8_t* at) {
  uint64_t value = 0;
  for (size_t i = 0; i < field.elem_size; ++i)
    value |= uint64_t{at[field.is_network_order() ? field.elem_size - 1 - i : i]} << (8 * i);
  if (!field.is_signed()) return std::to_string(value);
  const int unused = 64 - 8 * field.elem_size;
  return std::to_string(static_cast<int64_t>(value << unused) >> unused);
}

std::string Text(const uint8_t* at, size_t size) {
  const char* text = reinterpret_cast<const char*>(at);
  return {text, strnlen(text, size)};
}

std::string Hex(const uint8_t* at, size_t size) {
  static constexpr char kDigits[] = "0123456789abcdef";
  std::string out;
  for (size_t i = 0; i < size; ++i) {
    out += kDigits[at[i] >> 4];
    out += kDigits[at[i] & 15];
  }
  return out;
}

}  // namespace

Module::Module(const std::vector<uint64_t>& cgroups) {
  const char* path = std::getenv("WEFT_MODULE");
  const UniqueFd file(::open(path != nullptr ? path : "", O_RDONLY | O_CLOEXEC));
  if (!file || ::syscall(SYS_finit_module, file.get(), "", 0) != 0) Die("weft.ko");
  device_ = UniqueFd(::open(WEFT_KERNEL_DEVICE, O_RDWR | O_CLOEXEC));
  weft_kernel_session session{.size = sizeof(session)};
  if (cgroups.empty()) session.flags = WEFT_KERNEL_SESSION_ALL;
  session_ = UniqueFd(::ioctl(device_.get(), WEFT_IOCTL_SESSION, &session));
  weft_kernel_channel channel{
      .size = sizeof(channel),
      .mode = WEFT_RING_DISCARD,
      .clock = WEFT_CLOCK_MONOTONIC,  // no stable TSC in an emulated machine
      .slot_shift = 25,
      .subbuf_shift = 20,
      .channel_id = 1};
  ring_ = UniqueFd(::ioctl(session_.get(), WEFT_IOCTL_CHANNEL, &channel));
  if (!device_ || !session_ || !ring_) Die("a session");
  for (const uint64_t cgroup : cgroups) {
    weft_kernel_scope scope{
        .size = sizeof(scope), .change = WEFT_KERNEL_SCOPE_ADD, .cgroup = cgroup};
    if (Control(session_.get(), WEFT_IOCTL_SCOPE, &scope) != 0) Die("a cgroup");
  }
}

Module::~Module() {
  ring_.reset();
  session_.reset();
  device_.reset();
  ::syscall(SYS_delete_module, "weft", O_NONBLOCK);
}

int Module::Add(const kernel::Resolved& resolved) {
  weft_kernel_event event{.size = sizeof(event), .kind = resolved.kind};
  event.flags = WEFT_KERNEL_EVENT_STAYS;
  event.name = reinterpret_cast<uint64_t>(resolved.target.c_str());
  event.name_size = static_cast<uint32_t>(resolved.target.size() + 1);
  if (resolved.target.empty()) event.name = event.name_size = 0;
  event.offset = resolved.offset;
  event.number = resolved.number;
  event.table = resolved.table;
  event.subjects = resolved.subjects;
  event.description = reinterpret_cast<uint64_t>(resolved.description.data());
  event.description_size = static_cast<uint32_t>(resolved.description.size());
  const std::vector<weft_fetch_op> program = kernel::FetchProgram(resolved.fetch);
  event.fetch = program.empty() ? 0 : reinterpret_cast<uint64_t>(program.data());
  event.fetch_count = static_cast<uint32_t>(program.size());
  const int result = Control(ring_.get(), WEFT_IOCTL_EVENT, &event);
  if (result == 0)
    events_.emplace(static_cast<uint16_t>(event.event_id),
                    EventDescription::Parse(resolved.description).value());
  return result;
}

void Module::Switch(bool on) {
  weft_kernel_switch change{sizeof(change), on ? 1u : 0u};
  if (Control(session_.get(), WEFT_IOCTL_SWITCH, &change) != 0) Die("switch");
}

int Module::Statedump() {
  weft_kernel_statedump dump{.size = sizeof(dump)};
  return Control(session_.get(), WEFT_IOCTL_STATEDUMP, &dump);
}

void Module::ReadAt(uint64_t offset, void* to, size_t size) const {
  if (::pread(ring_.get(), to, size, static_cast<off_t>(offset)) != static_cast<ssize_t>(size))
    Die("the ring at " + std::to_string(offset));
}

std::vector<SeenEvent> Module::Read() {
  weft_ring_header header{};
  ReadAt(0, &header, sizeof(header));
  std::vector<SeenEvent> seen;
  for (uint32_t slot = 0; slot < header.slot_count; ++slot) ReadSlot(slot, &seen);
  return seen;
}

// Nothing was ever taken out: the records begin at the slot's first sub-buffer and end at its head.
void Module::ReadSlot(uint32_t slot, std::vector<SeenEvent>* out) {
  weft_ring_header header{};
  ReadAt(0, &header, sizeof(header));
  weft_slot state{};
  ReadAt(header.slots_offset + uint64_t{slot} * header.slot_size, &state, sizeof(state));
  const uint64_t head = state.head & 0xffffffff;
  const uint64_t data = header.data_offset + (uint64_t{slot} << header.slot_shift);
  const uint64_t subbuf = uint64_t{1} << header.subbuf_shift;
  std::vector<uint8_t> bytes(subbuf);
  for (uint64_t begin = 0; begin < head; begin += subbuf) {
    ReadAt(data + begin, bytes.data(), bytes.size());
    const uint64_t end = std::min(subbuf, head - begin);
    for (uint64_t at = sizeof(weft_subbuf_header); at + sizeof(weft_record) <= end;) {
      weft_record record{};
      std::memcpy(&record, bytes.data() + at, sizeof(record));
      if (record.size == 0) break;
      if (record.size < sizeof(record) || record.size > end - at)
        throw std::runtime_error("a record of " + std::to_string(record.size) + " bytes");
      out->push_back(
          Decode(record.event, bytes.data() + at + sizeof(record), record.size - sizeof(record)));
      out->back().time = record.time;
      at += (record.size + 7) & ~uint64_t{7};
    }
  }
}

SeenEvent Module::Decode(uint16_t id, const uint8_t* payload, size_t size) const {
  const EventDescription& event = events_.at(id);
  SeenEvent seen{.name = event.name, .time = 0, .fields = {}};
  size_t segment = event.fixed_size;
  if (size < segment) throw std::runtime_error(event.name + ": a record is too short");
  for (const FieldDescription& field : event.fields) {
    const uint8_t* fixed = payload + field.fixed_offset;
    std::string& value = seen.fields[field.name];
    if (field.kind == FieldKind::kArray) {
      value = field.is_text() ? Text(fixed, field.fixed_bytes) : Hex(fixed, field.fixed_bytes);
      continue;
    }
    if (!field.segment) {
      value = Number(field, fixed);
      continue;
    }
    uint32_t count = 0;
    std::memcpy(&count, fixed, sizeof(count));
    const size_t bytes = size_t{count} * field.elem_size;
    if (bytes > size - segment) throw std::runtime_error(event.name + "." + field.name);
    value = field.kind == FieldKind::kString || field.is_text() ? Text(payload + segment, bytes)
                                                                : Hex(payload + segment, bytes);
    segment += bytes;
  }
  if (segment != size) throw std::runtime_error(event.name + ": a record is too long");
  return seen;
}

}  // namespace weft::vm
