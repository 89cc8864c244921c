// SPDX-License-Identifier: Apache-2.0
// The version of a consumer's journal (node-agent/consumer/journal.h, state.h). The agent keeps
// journals over restarts and updates, and gives a consumer only one that it can read: a consumer
// that begins with an empty journal in the middle of a trace would have the relay cut the trace.
#ifndef WEFT_LIB_IPC_JOURNAL_VERSION_H_
#define WEFT_LIB_IPC_JOURNAL_VERSION_H_

#include <cstdint>

namespace weft::ipc {

inline constexpr uint32_t kJournalVersion = 5;

}  // namespace weft::ipc

#endif  // WEFT_LIB_IPC_JOURNAL_VERSION_H_
