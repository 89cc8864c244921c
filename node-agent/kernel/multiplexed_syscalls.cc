// SPDX-License-Identifier: Apache-2.0
// See multiplexed_syscalls.h.
#include "node-agent/kernel/multiplexed_syscalls.h"

namespace weft::kernel {
namespace {

using Call = MultiplexedSyscall;

constexpr int16_t kWord = 4;  // of a 32-bit program
// The parameters of ipc(call, first, second, third, ptr, fifth).
constexpr Call::Place kFirst{.argument = 1}, kSecond{.argument = 2}, kThird{.argument = 3},
    kPointer{.argument = 4}, kFifth{.argument = 5};
constexpr Call::Place kBehindPointer{.argument = 4, .offset = 0},
    kNextBehindPointer{.argument = 4, .offset = kWord};

// socketcall(call, args): all parameters stand behind `args`.
constexpr Call Socket(std::string_view name, uint32_t number) {
  Call call{.multiplexer = "socketcall", .name = name, .number = number};
  for (size_t i = 0; i < call.parameters.size(); ++i)
    call.parameters[i] = {.argument = 1, .offset = static_cast<int16_t>(i * kWord)};
  return call;
}

constexpr Call Ipc(std::string_view name, uint32_t number, std::array<Call::Place, 6> parameters) {
  return {.multiplexer = "ipc", .name = name, .number = number, .parameters = parameters};
}

// Version 0 has two of the parameters in memory.
constexpr Call Msgrcv(bool is_version_0) {
  Call call = is_version_0 ? Ipc("msgrcv", 12,
                                 {kFirst, kBehindPointer, kSecond, kNextBehindPointer, kThird, {}})
                           : Ipc("msgrcv", 12, {kFirst, kPointer, kSecond, kFifth, kThird, {}});
  call.version = is_version_0 ? Call::Version::kFirst : Call::Version::kLater;
  return call;
}

constexpr Call kCalls[] = {
    Socket("socket", 1),
    Socket("bind", 2),
    Socket("connect", 3),
    Socket("listen", 4),
    Socket("accept", 5),
    Socket("getsockname", 6),
    Socket("getpeername", 7),
    Socket("socketpair", 8),
    Socket("send", 9),
    Socket("recv", 10),
    Socket("sendto", 11),
    Socket("recvfrom", 12),
    Socket("shutdown", 13),
    Socket("setsockopt", 14),
    Socket("getsockopt", 15),
    Socket("sendmsg", 16),
    Socket("recvmsg", 17),
    Socket("accept4", 18),
    Socket("recvmmsg", 19),
    Socket("sendmmsg", 20),
    Ipc("semop", 1, {kFirst, kPointer, kSecond, {}, {}, {}}),
    Ipc("semget", 2, {kFirst, kSecond, kThird, {}, {}, {}}),
    Ipc("semctl", 3, {kFirst, kSecond, kThird, kBehindPointer, {}, {}}),
    Ipc("semtimedop", 4, {kFirst, kPointer, kSecond, kFifth, {}, {}}),
    Ipc("msgsnd", 11, {kFirst, kPointer, kSecond, kThird, {}, {}}),
    Msgrcv(/*is_version_0=*/true),
    Msgrcv(/*is_version_0=*/false),
    Ipc("msgget", 13, {kFirst, kSecond, {}, {}, {}, {}}),
    Ipc("msgctl", 14, {kFirst, kSecond, kPointer, {}, {}, {}}),
    Ipc("shmat", 21, {kFirst, kPointer, kSecond, {}, {}, {}}),
    Ipc("shmdt", 22, {kPointer, {}, {}, {}, {}, {}}),
    Ipc("shmget", 23, {kFirst, kSecond, kThird, {}, {}, {}}),
    Ipc("shmctl", 24, {kFirst, kSecond, kPointer, {}, {}, {}}),
};

}  // namespace

std::span<const MultiplexedSyscall> MultiplexedSyscalls() { return kCalls; }

Field MultiplexedSyscall::CallField() {
  return {
      {.name = "call", .elem_size = kWord},
      {{.code = FetchCode::kArgument, .size = kWord}, {.code = FetchCode::kStore, .size = kWord}}};
}

std::string MultiplexedSyscall::Condition() const {
  const std::string text = std::to_string(number);
  if (multiplexer == "socketcall" || version == Version::kFirst) return "call == " + text;
  const std::string of_any = "(call & 65535) == " + text;
  return version == Version::kAny ? of_any : of_any + " && call >= 65536";
}

std::vector<FetchStep> MultiplexedSyscall::Redirect(std::span<const FetchStep> ops) const {
  std::vector<FetchStep> redirected;
  for (const FetchStep& op : ops) {
    if (op.code != FetchCode::kArgument || op.arg >= parameters.size()) {
      redirected.push_back(op);
      continue;
    }
    const Place& place = parameters[op.arg];
    FetchStep take = op;
    take.arg = place.argument;
    if (place.offset == kItself) {
      redirected.push_back(take);
      continue;
    }
    take.size = kWord;
    take.flags = 0;
    redirected.push_back(take);
    redirected.push_back({.code = FetchCode::kLoad,
                          .size = op.size,
                          .flags = static_cast<uint8_t>(op.flags | kFetchUser),
                          .offset = place.offset});
  }
  return redirected;
}

}  // namespace weft::kernel
