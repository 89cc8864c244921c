// SPDX-License-Identifier: GPL-2.0-only
// Drives weft.ko for tests: descriptors of /dev/weft, and the structs of lib/abi/kernel.h with
// valid values, so that a test can make one of them invalid. Results are those of the system call:
// a descriptor or 0, or -errno. Any thread.
#ifndef WEFT_KMOD_TESTS_DEVICE_H_
#define WEFT_KMOD_TESTS_DEVICE_H_

#include <cstdint>
#include <string>
#include <vector>

#include "lib/abi/kernel.h"
#include "lib/base/unique_fd.h"

namespace weft::kmod {

// Loads the module under test: the file that WEFT_MODULE names. Returns 0 or -errno.
int LoadModule();
int UnloadModule();  // -EWOULDBLOCK: in use
bool ModuleIsLoaded();

int Control(int fd, unsigned long request, void* argument);

// Returns a descriptor with an owner; invalid if the call failed.
UniqueFd OpenDevice();
UniqueFd OpenSession(int device, uint32_t flags = WEFT_KERNEL_SESSION_ALL);
int Switch(int session, uint32_t on);
int Statedump(int session, uint64_t cgroup = 0);

// Changes the scope: WEFT_KERNEL_SCOPE_ADD or REMOVE, by Cgroup::id().
int Scope(int session, uint32_t change, uint64_t cgroup);

weft_kernel_channel RightChannel();
inline UniqueFd OpenRing(int session, weft_kernel_channel channel = RightChannel()) {
  return UniqueFd(Control(session, WEFT_IOCTL_CHANNEL, &channel));
}

UniqueFd OpenRing(int session, const std::vector<weft_context_spec>& contexts);
std::vector<weft_context_spec> Specs(const std::vector<uint16_t>& ids);

// An event with fields of u64, each made by operations of its own. The struct points into it: it
// may be moved, not copied.
class Event {
 public:
  static Event Tracepoint(const std::string& name);
  static Event SyscallEntry(uint32_t number);
  static Event SyscallExit(uint32_t number);
  static Event Kprobe(const std::string& function);
  static Event Kretprobe(const std::string& function);
  static Event State(uint32_t state);  // enum weft_kernel_state
  static Event Uprobe(UniqueFd file, uint64_t offset);
  static Event Uretprobe(UniqueFd file, uint64_t offset);

  Event(Event&&) = default;
  Event(const Event&) = delete;
  Event& operator=(const Event&) = delete;

  // Appends a field with argument `argument`, of which the first `size` bytes count.
  Event& Field(const std::string& name, uint8_t argument, uint8_t size = 8);
  // Appends a field with the u64 `offset` bytes behind the address in that argument. Give no flags
  // for a register of a function: it may hold any value.
  Event& Load(const std::string& name, uint8_t argument, int32_t offset,
              uint8_t flags = WEFT_FETCH_TRUSTED);
  // Append a field with a register, by DWARF's number, or with the u64 `offset` bytes behind the
  // address in one.
  Event& Register(const std::string& name, uint8_t number);
  Event& LoadUser(const std::string& name, uint8_t number, int32_t offset);
  Event& Filter(std::vector<uint8_t> program);

  weft_kernel_event& raw() { return raw_; }
  std::vector<weft_fetch_op>& operations() { return fetch_; }
  std::vector<uint8_t>& description() { return description_; }
  // Points the struct to what is described now. Then a test may change raw().
  weft_kernel_event& Finish();
  // The ioctl. A descriptor, 0 or -errno; raw().event_id is set.
  int AddTo(int ring) { return Control(ring, WEFT_IOCTL_EVENT, &Finish()); }

 private:
  Event(uint32_t kind, std::string name, std::string described);
  // Appends a field of 8 bytes, made by these operations.
  Event& Append(const std::string& name, std::vector<weft_fetch_op> value);

  weft_kernel_event raw_{};
  std::string name_, described_;
  UniqueFd file_;
  std::vector<std::string> fields_;
  std::vector<weft_fetch_op> fetch_;
  std::vector<uint8_t> description_, filter_;
};

// A device, session, ring and one event, in a session that records all tasks.
struct Recording {
  UniqueFd device, session, ring, event;
  uint16_t event_id = 0;
  [[nodiscard]] bool valid() const { return device && session && ring && event; }
};
Recording Record(Event event, weft_kernel_channel channel = RightChannel());

}  // namespace weft::kmod

#endif  // WEFT_KMOD_TESTS_DEVICE_H_
