// SPDX-License-Identifier: GPL-2.0-only
// See device.h.
#include "kmod/tests/device.h"

#include <fcntl.h>
#include <sys/ioctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <fstream>
#include <utility>

#include "lib/ring/testing/test_writer.h"

namespace weft::kmod {
namespace {

weft_fetch_op Operation(uint8_t code, uint8_t size, uint8_t argument = 0) {
  weft_fetch_op op{};
  op.code = code;
  op.size = size;
  op.arg = argument;
  return op;
}

weft_fetch_op LoadAt(int32_t offset, uint8_t flags) {
  weft_fetch_op op = Operation(WEFT_FETCH_LOAD, 8);
  op.offset = offset;
  op.flags = flags;
  return op;
}

template <typename T>
uint64_t Address(const T* pointer) {
  return reinterpret_cast<uintptr_t>(pointer);
}

}  // namespace

int LoadModule() {
  const char* path = std::getenv("WEFT_MODULE");
  const UniqueFd file(::open(path != nullptr ? path : "", O_RDONLY | O_CLOEXEC));
  if (!file) return -errno;
  return ::syscall(SYS_finit_module, file.get(), "", 0) == 0 ? 0 : -errno;
}

int UnloadModule() { return ::syscall(SYS_delete_module, "weft", O_NONBLOCK) == 0 ? 0 : -errno; }

bool ModuleIsLoaded() {
  std::ifstream modules("/proc/modules");
  std::string line;
  while (std::getline(modules, line))
    if (line.starts_with("weft ")) return true;
  return false;
}

int Control(int fd, unsigned long request, void* argument) {
  const int result = ::ioctl(fd, request, argument);
  return result >= 0 ? result : -errno;
}

UniqueFd OpenDevice() { return UniqueFd(::open(WEFT_KERNEL_DEVICE, O_RDWR | O_CLOEXEC)); }

UniqueFd OpenSession(int device, uint32_t flags) {
  weft_kernel_session session{};
  session.size = sizeof(session);
  session.flags = flags;
  return UniqueFd(Control(device, WEFT_IOCTL_SESSION, &session));
}

int Switch(int session, uint32_t on) {
  weft_kernel_switch change{sizeof(change), on};
  return Control(session, WEFT_IOCTL_SWITCH, &change);
}

int Statedump(int session, uint64_t cgroup) {
  weft_kernel_statedump dump{};
  dump.cgroup = cgroup;
  dump.size = sizeof(dump);
  return Control(session, WEFT_IOCTL_STATEDUMP, &dump);
}

int Scope(int session, uint32_t change, uint64_t cgroup) {
  weft_kernel_scope scope{};
  scope.size = sizeof(scope);
  scope.change = change;
  scope.cgroup = cgroup;
  return Control(session, WEFT_IOCTL_SCOPE, &scope);
}

UniqueFd OpenRing(int session, const std::vector<weft_context_spec>& contexts) {
  weft_kernel_channel channel = RightChannel();
  channel.context_count = static_cast<uint32_t>(contexts.size());
  channel.contexts = reinterpret_cast<uintptr_t>(contexts.data());
  return OpenRing(session, channel);
}

std::vector<weft_context_spec> Specs(const std::vector<uint16_t>& ids) {
  std::vector<weft_context_spec> specs;
  specs.reserve(ids.size());
  for (const uint16_t id : ids) specs.push_back({.id = id});
  return specs;
}

weft_kernel_channel RightChannel() {
  weft_kernel_channel channel{};
  channel.size = sizeof(channel);
  channel.mode = WEFT_RING_DISCARD;
  channel.clock = WEFT_CLOCK_MONOTONIC;  // an emulated machine's TSC is not marked stable
  channel.slot_shift = 18;
  channel.subbuf_shift = 16;
  channel.channel_id = 7;
  return channel;
}

Event::Event(uint32_t kind, std::string name, std::string described)
    : name_(std::move(name)), described_(std::move(described)) {
  raw_.size = sizeof(raw_);
  raw_.kind = kind;
  raw_.subjects = WEFT_KERNEL_SUBJECT_CURRENT;
}

Event Event::Tracepoint(const std::string& name) {
  return {WEFT_KERNEL_TRACEPOINT, name, "kernel:" + name};
}

Event Event::SyscallEntry(uint32_t number) {
  Event event(WEFT_KERNEL_SYSCALL_ENTRY, "", "kernel:entry_" + std::to_string(number));
  event.raw_.number = number;
  return event;
}

Event Event::SyscallExit(uint32_t number) {
  Event event(WEFT_KERNEL_SYSCALL_EXIT, "", "kernel:exit_" + std::to_string(number));
  event.raw_.number = number;
  return event;
}

Event Event::Kprobe(const std::string& function) {
  return {WEFT_KERNEL_KPROBE, function, "kernel:probe_" + function};
}

Event Event::Kretprobe(const std::string& function) {
  return {WEFT_KERNEL_KRETPROBE, function, "kernel:return_" + function};
}

Event Event::State(uint32_t state) {
  Event event(WEFT_KERNEL_STATE, "", "kernel:state_" + std::to_string(state));
  event.raw_.number = state;
  event.raw_.subjects = 0;
  return event;
}

Event Event::Uprobe(UniqueFd file, uint64_t offset) {
  Event event(WEFT_KERNEL_UPROBE, "", "kernel:user_function");
  event.raw_.file = file.get();
  event.raw_.offset = offset;
  event.file_ = std::move(file);
  return event;
}

Event Event::Uretprobe(UniqueFd file, uint64_t offset) {
  Event event = Uprobe(std::move(file), offset);
  event.raw_.kind = WEFT_KERNEL_URETPROBE;
  return event;
}

Event& Event::Append(const std::string& name, std::vector<weft_fetch_op> value) {
  fields_.push_back(name);
  fetch_.insert(fetch_.end(), value.begin(), value.end());
  fetch_.push_back(Operation(WEFT_FETCH_STORE, 8));
  return *this;
}

Event& Event::Field(const std::string& name, uint8_t argument, uint8_t size) {
  return Append(name, {Operation(WEFT_FETCH_ARG, size, argument)});
}

Event& Event::Load(const std::string& name, uint8_t argument, int32_t offset, uint8_t flags) {
  return Append(name, {Operation(WEFT_FETCH_ARG, 8, argument), LoadAt(offset, flags)});
}

Event& Event::Register(const std::string& name, uint8_t number) {
  return Append(name, {Operation(WEFT_FETCH_REG, 8, number)});
}

Event& Event::LoadUser(const std::string& name, uint8_t number, int32_t offset) {
  return Append(name, {Operation(WEFT_FETCH_REG, 8, number), LoadAt(offset, WEFT_FETCH_USER)});
}

Event& Event::Filter(std::vector<uint8_t> program) {
  filter_ = std::move(program);
  return *this;
}

weft_kernel_event& Event::Finish() {
  if (description_.empty()) description_ = ring::testing::MakeDescription(described_, fields_);
  raw_.name = name_.empty() ? 0 : Address(name_.c_str());
  raw_.name_size = name_.empty() ? 0 : static_cast<uint32_t>(name_.size() + 1);
  raw_.description = Address(description_.data());
  raw_.description_size = static_cast<uint32_t>(description_.size());
  raw_.fetch = fetch_.empty() ? 0 : Address(fetch_.data());
  raw_.fetch_count = static_cast<uint32_t>(fetch_.size());
  raw_.filter = filter_.empty() ? 0 : Address(filter_.data());
  raw_.filter_size = static_cast<uint32_t>(filter_.size());
  return raw_;
}

Recording Record(Event event, weft_kernel_channel channel) {
  Recording made;
  made.device = OpenDevice();
  made.session = OpenSession(made.device.get());
  made.ring = OpenRing(made.session.get(), channel);
  made.event = UniqueFd(event.AddTo(made.ring.get()));
  made.event_id = static_cast<uint16_t>(event.raw().event_id);
  return made;
}

}  // namespace weft::kmod
