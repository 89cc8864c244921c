// SPDX-License-Identifier: Apache-2.0
// The journals of a node's consumers, as files that outlive all of weft's processes
// (docs/adr/0043). In the folder, a consumer NAME has
//
//     NAME        its journal: written by the consumer (node-agent/consumer/journal.h)
//     NAME.json   its note: version, boot and clock; written by the agent before NAME is there
//
// Without a folder a journal is memory, which lives as long as the keeper or a consumer has it.
//
// Invariants:
//   1. Agent, keeper and consumer of one life share one open file, and it is locked (flock). The
//      kernel ends the lock with the last of these processes, so that no two consumers go on at one
//      position.
//   2. A journal is given out again only for the version and the boot of its note: it names rings
//      by inode number, and rings do not outlive the machine.
// The agent's thread owns it.
#ifndef WEFT_NODE_AGENT_AGENT_CONSUMERS_JOURNAL_FILES_H_
#define WEFT_NODE_AGENT_AGENT_CONSUMERS_JOURNAL_FILES_H_

#include <chrono>
#include <cstdint>
#include <set>
#include <string>
#include <utility>

#include "lib/base/result.h"
#include "lib/base/unique_fd.h"
#include "lib/base/uuid.h"

namespace weft::agent {

// What a consumer must be told together with its journal.
struct JournalNote {
  int64_t realtime_offset_ns = 0;
  Uuid clock_uuid{};  // the boot's

  // The note of a journal that begins now.
  static JournalNote Now();
  // kCorrupt: no note; kUnsupported: of another version, or of another boot.
  static Result<JournalNote> Parse(const std::string& text);
  [[nodiscard]] std::string Text() const;
};

struct JournalFile {
  UniqueFd fd;
  JournalNote note;
};

class JournalFiles {
 public:
  using Deadline = std::chrono::steady_clock::time_point;

  // `dir` exists; "": journals are memory.
  explicit JournalFiles(std::string dir = "") : dir_(std::move(dir)) {}

  // A new journal, in the place of one that is there.
  [[nodiscard]] Result<JournalFile> Make(const std::string& name) const;
  static Result<JournalFile> MakeInMemory();
  // The journal of an earlier life. Waits for the end of a process that still has it. kNotFound:
  // there is none; kUnsupported, kCorrupt: as for the note; kTimeout: a process still has it.
  [[nodiscard]] Result<JournalFile> Open(const std::string& name, Deadline until) const;
  void Remove(const std::string& name) const;
  // Removes all other journals.
  void KeepOnly(const std::set<std::string>& names) const;

 private:
  [[nodiscard]] Result<JournalFile> MakeFile(const std::string& name) const;
  [[nodiscard]] std::string PathOf(const std::string& name) const { return dir_ + "/" + name; }
  [[nodiscard]] std::string NoteOf(const std::string& name) const;

  const std::string dir_;
};

}  // namespace weft::agent

#endif  // WEFT_NODE_AGENT_AGENT_CONSUMERS_JOURNAL_FILES_H_
