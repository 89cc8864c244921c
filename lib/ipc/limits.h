// SPDX-License-Identifier: Apache-2.0
// Limits of the messages between weft's processes, and how long these wait for each other.
#ifndef WEFT_LIB_IPC_LIMITS_H_
#define WEFT_LIB_IPC_LIMITS_H_

#include <chrono>
#include <cstddef>

namespace weft::ipc {

// A message must fit a socket's buffer, which is 208 KiB by default. Longer texts (Traces) travel
// as a descriptor.
inline constexpr size_t kMaxMessageBytes = 128 * 1024;
// Descriptors of one message. Only Arrived has two.
inline constexpr size_t kMaxMessageFds = 2;
// Messages that wait for a slow peer. Each may hold a descriptor, so this limit is below 1024, the
// usual limit on open files.
inline constexpr size_t kMaxQueuedMessages = 512;

// Ring sets of one channel, and of one doorbell, that are not read to their end yet.
inline constexpr size_t kMaxOpenRings = 4096;

// Backlog of a doorbell's socket, for processes that start at one moment. The kernel limits it to
// net.core.somaxconn, 4096 unless changed.
inline constexpr int kListenBacklog = 4096;

// How long a connection to a socket may take; it may be that no process accepts.
inline constexpr std::chrono::seconds kConnectTime{5};
// How long a Sync waits for room: kSyncStill while no descriptor comes back, kSyncTime in all.
inline constexpr std::chrono::milliseconds kSyncStill{5'000};
inline constexpr std::chrono::milliseconds kSyncTime{60'000};

inline constexpr std::chrono::milliseconds kHeartbeatInterval{1000};
// While the agent reads the kernel's types, it sends no heartbeat. This takes a tenth of a second,
// and 10 s or more on a slow, emulated machine.
inline constexpr std::chrono::milliseconds kHeartbeatTimeout{30'000};
inline constexpr std::chrono::milliseconds kProgressTimeout{30'000};

}  // namespace weft::ipc

#endif  // WEFT_LIB_IPC_LIMITS_H_
