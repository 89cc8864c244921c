// SPDX-License-Identifier: Apache-2.0
// Limits of the messages between weft's processes, and how long these wait for each other.
#ifndef WEFT_LIB_IPC_LIMITS_H_
#define WEFT_LIB_IPC_LIMITS_H_

#include <chrono>
#include <cstddef>

namespace weft::ipc {

// Must fit a socket's buffer, which is 208 KiB by default. What can be longer (Traces) travels
// as a descriptor.
inline constexpr size_t kMaxMessageBytes = 128 * 1024;
// Only Arrived has two.
inline constexpr size_t kMaxMessageFds = 2;
// Messages that wait because the peer is slow. Each may hold a descriptor, so this stays below the
// usual limit of 1024 descriptors.
inline constexpr size_t kMaxQueuedMessages = 512;

// Ring sets of one channel, and of one doorbell, that are not read to their end.
inline constexpr size_t kMaxOpenRings = 4096;

// Backlog of a doorbell's socket: processes that start at once. The kernel cuts it to
// net.core.somaxconn, 4096 unless changed.
inline constexpr int kListenBacklog = 4096;

// A connection to a socket that no process accepts from.
inline constexpr std::chrono::seconds kConnectTime{5};
// A Sync waits for room: so long while no descriptor comes back, and so long in all.
inline constexpr std::chrono::milliseconds kSyncStill{5'000};
inline constexpr std::chrono::milliseconds kSyncTime{60'000};

inline constexpr std::chrono::milliseconds kHeartbeatInterval{1000};
// An agent that reads the kernel's types does nothing else meanwhile: a tenth of a second, or on a
// machine that has little time for it, an emulated one, 10 s and more.
inline constexpr std::chrono::milliseconds kHeartbeatTimeout{30'000};
inline constexpr std::chrono::milliseconds kProgressTimeout{30'000};

}  // namespace weft::ipc

#endif  // WEFT_LIB_IPC_LIMITS_H_
