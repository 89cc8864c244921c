// SPDX-License-Identifier: Apache-2.0
// What a consumer must know to go on where a killed one was: a file that the agent opens. On a node
// it outlives all of weft's processes (node-agent/agent/consumers/journal_files.h); in local mode
// it is memory, which the agent and the keeper keep open. The consumer's thread writes it; it is
// read once at start.
//
//   0      record A      struct JournalRecord, then `size` bytes
//   1 GiB  record B      like A; the valid one with the higher sequence counts
//   2 GiB  event log     appended; a record says how much of it counts
//   3 GiB  chunk         struct ChunkRecord, then `size` bytes: of a ring set that is being moved
// The file is sparse. A record is written whole, by pwrite, over the older one: a SIGKILL at any
// point, or a write that fails, leaves the other one, or both. The file is not synced: rings do not
// outlive the machine either.
//
// The contents of records and events are the caller's (state.h). A change of them needs a change of
// lib/ipc/journal_version.h. A record's bytes are checksummed; a reader still checks every length,
// as of any file.
#ifndef WEFT_NODE_AGENT_CONSUMER_JOURNAL_H_
#define WEFT_NODE_AGENT_CONSUMER_JOURNAL_H_

#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <vector>

#include "lib/base/bytes.h"
#include "lib/base/result.h"
#include "lib/base/unique_fd.h"

namespace weft::consumer {

// The place of a chunk in its ring set.
struct ChunkName {
  uint64_t device = 0;
  uint64_t inode = 0;
  uint64_t offset = 0;
  bool operator==(const ChunkName&) const = default;
};

struct Chunk {
  ChunkName name;
  std::vector<uint8_t> bytes;
};

class Journal {
 public:
  // An empty file is an empty journal; so is one whose first record was torn: nothing was
  // acknowledged before it.
  static Result<Journal> Open(UniqueFd fd);

  // The record that counted at Open; empty: none. Events of the log, in order.
  [[nodiscard]] const std::vector<uint8_t>& record() const { return record_; }
  Status ReadEvents(const std::function<Status(Bytes)>& sink) const;

  // Counts from the next Commit on.
  Status AppendEvent(Bytes event);
  // Makes everything before this call final.
  Status Commit(Bytes record);

  // Saves the one chunk that is being moved (ring_mover.h). It counts at once, without a Commit.
  Status SaveChunk(const ChunkName& name, Bytes bytes);
  Status ClearChunk();
  [[nodiscard]] std::optional<Chunk> ReadChunk() const;

  [[nodiscard]] uint64_t sequence() const { return sequence_; }

 private:
  explicit Journal(UniqueFd fd) : fd_(std::move(fd)) {}

  UniqueFd fd_;
  std::vector<uint8_t> record_;
  std::vector<uint8_t> scratch_;
  uint64_t sequence_ = 0;
  uint64_t log_bytes_ = 0;
};

// Returns a fast 64-bit checksum of bytes (multiply and rotate over 8-byte words; detects torn
// writes, not malice).
uint64_t Checksum(Bytes bytes);

}  // namespace weft::consumer

#endif  // WEFT_NODE_AGENT_CONSUMER_JOURNAL_H_
