// SPDX-License-Identifier: Apache-2.0
// System calls that 32-bit programs of i386 make through another call: socketcall(SYS_CONNECT,
// args) is connect, ipc(SEMOP, ...) is semop. Older C libraries make all calls of sockets and of
// System V IPC in this way.
//
// Sources: net/socket.c (socketcall), ipc/syscall.c (compat_sys_ipc), uapi/linux/net.h,
// uapi/linux/ipc.h. Thread-safety: it has constants and pure functions only.
#ifndef WEFT_NODE_AGENT_KERNEL_MULTIPLEXED_SYSCALLS_H_
#define WEFT_NODE_AGENT_KERNEL_MULTIPLEXED_SYSCALLS_H_

#include <array>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "lib/abi/fetch.h"
#include "node-agent/kernel/field.h"

namespace weft::kernel {

struct MultiplexedSyscall {
  // A parameter: argument `argument` of the multiplexer itself, or the value `offset` bytes behind
  // the address in it.
  struct Place {
    uint8_t argument = 0;
    int16_t offset = kItself;
  };
  static constexpr int16_t kItself = -1;

  std::string_view multiplexer;  // in the table for 32-bit programs
  std::string_view name;
  enum class Version { kAny, kFirst, kLater };  // of ipc: the upper 16 bits of that argument
  uint32_t number = 0;                          // the multiplexer's argument 0, without those
  Version version = Version::kAny;
  std::array<Place, 6> parameters{};

  // Returns the multiplexer's argument 0, which is named "call", and a filter over it.
  [[nodiscard]] static Field CallField();
  [[nodiscard]] std::string Condition() const;
  // Operations that take the call's own arguments from registers take them from where the
  // multiplexer has them.
  [[nodiscard]] std::vector<FetchStep> Redirect(std::span<const FetchStep> ops) const;
};

std::span<const MultiplexedSyscall> MultiplexedSyscalls();

}  // namespace weft::kernel

#endif  // WEFT_NODE_AGENT_KERNEL_MULTIPLEXED_SYSCALLS_H_
