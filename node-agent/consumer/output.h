// SPDX-License-Identifier: Apache-2.0
// One CTF trace: its sink and the channels that write into it. Decides what one commit covers:
// everything of this trace. Used by the consumer's thread.
//
// A commit takes these steps, in this order:
//   C0  the packets that hold what was read are sealed, with the rings' positions and the counts
//   C1  they go into their files (metadata is there already), in the background writer's thread; or
//       to the relay, which acknowledges them
//   C2  the journal gets the streams' lengths and what was sealed, as one record
//   C3  the rings' tails are stored: the writers may use the room again
// While disk or relay are at work on one commit, the next one's packets are filled. A relay may be
// away for long: then the commit waits, and records wait in their rings. They also wait if the
// journal cannot be written, since its file system is full: then C2 is tried again, and no ring
// gives room before it succeeds. A channel can still be drained. After a SIGKILL before C2, the
// next consumer cuts the files to the lengths of the record before, or has the relay cut them, and
// reads the rings from its positions. Their data is still there, because C3 comes last. After a
// SIGKILL after C2, it goes on behind the commit.
#ifndef WEFT_NODE_AGENT_CONSUMER_OUTPUT_H_
#define WEFT_NODE_AGENT_CONSUMER_OUTPUT_H_

#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "lib/ctf/metadata_writer.h"
#include "node-agent/consumer/channel.h"
#include "node-agent/consumer/journal.h"
#include "node-agent/consumer/ring_clocks.h"
#include "node-agent/consumer/trace_sink.h"

namespace weft::consumer {

// Event descriptions in the journal: by channel id, then class id.
using ClassLog = std::map<uint64_t, std::vector<std::vector<uint8_t>>>;

// Names the CTF trace that a channel belongs to: containers have traces of the same path.
std::string OutputName(const ipc::ChannelDefinition& definition);

class Output {
 public:
  struct Hooks {
    std::function<Status()> write_journal;  // C2, of all outputs
    std::function<Status(Bytes)> append_event;
    std::function<void(const std::string&)> notice;  // for people
    std::function<Status(int fd)> complete_move = [](int) -> Status { return {}; };
  };

  // Opens the trace of this definition's path, as `record` has it or, without one, empty.
  static Result<std::unique_ptr<Output>> Open(const ipc::ChannelDefinition& definition,
                                              const ctf::Clock& ctf_clock,
                                              const OutputRecord* record, SinkMaker& sinks,
                                              RingClocks& clocks, const Limits& limits,
                                              Hooks hooks);
  Output(const Output&) = delete;
  Output& operator=(const Output&) = delete;
  ~Output() {
    (void)FinishCommit();
    sink_->Forget();
  }

  // Can its sink take packets? An error: it cannot, and that will not change soon.
  Result<bool> Ready() { return sink_->Ready(); }
  // Gives the channels' counts to the sink.
  void Report();

  // Commits afterwards, so that the channel still exists after a restart.
  Status AddChannel(const ipc::ChannelDefinition& definition, const ClassLog& classes);
  void RemoveChannel(uint64_t id);
  [[nodiscard]] Channel* Find(uint64_t id);
  [[nodiscard]] const std::vector<std::unique_ptr<Channel>>& channels() const { return channels_; }

  // Does one round of all channels and commits what is due. Returns true if it merged something.
  bool Round(uint64_t now_ns, uint64_t& budget);
  // C0 to C3. Errors of the sink are counted and noticed; only the journal's are returned, and
  // kTimeout: the relay has not acknowledged it yet.
  Status Commit();
  // kTimeout: the relay has not done it yet.
  Status Sync();
  // Has a commit begun that has not ended and will end soon?
  [[nodiscard]] bool writing() const { return committing_ && !sink_->commits().remote(); }
  // Can nothing be done before the relay says more, or the journal can be written?
  [[nodiscard]] bool waiting() const {
    return journal_due_ || (committing_ && sink_->commits().remote());
  }

  // Returns the state as of the last commit, for the journal.
  [[nodiscard]] const std::vector<uint8_t>& committed() const { return committed_; }
  [[nodiscard]] const std::string& name() const { return name_; }
  [[nodiscard]] bool restorable() const { return !record_.channels.empty(); }

 private:
  Output(std::string name, std::unique_ptr<TraceSink> sink, RingClocks& clocks,
         const Limits& limits, Hooks hooks)
      : name_(std::move(name)),
        sink_(std::move(sink)),
        clocks_(&clocks),
        limits_(limits),
        hooks_(std::move(hooks)) {}

  // Does C0 and begins C1. It finishes the commit before first.
  Status StartCommit();
  // Does the rest of C1, C2 and C3, if a commit began. kTimeout: C1 has not ended.
  Status FinishCommit();
  // C2 and C3.
  Status WriteJournal();
  // Finds the place of the range of vpids in the metadata, and reads it.
  void RestoreVpids(const OutputRecord& record);
  void AddVpid(uint32_t vpid);
  // The time before which no channel will bring anything more; 0: none.
  [[nodiscard]] uint64_t PromiseNs() const;
  Status Announce(uint64_t channel, const ctf::EventClass& event, Bytes description);
  void NoticeStoreError(const Error& error);
  [[nodiscard]] uint32_t FreeStreamClass() const;

  std::string name_;
  std::unique_ptr<TraceSink> sink_;
  RingClocks* clocks_;
  Limits limits_;
  Hooks hooks_;
  ctf::TraceInfo info_;
  ctf::VpidRange vpids_;
  uint64_t vpids_offset_ = 0;  // in the metadata
  std::vector<std::unique_ptr<Channel>> channels_;
  OutputRecord record_;  // of the journal: channels that were not defined again yet
  std::vector<uint8_t> committed_;
  bool committing_ = false;
  bool commit_due_ = false;         // of a channel that no commit has yet
  bool journal_due_ = false;        // C2 of the last commit failed
  uint64_t journal_tried_ns_ = 0;   // again, by Round
  OutputRecord next_;               // the commit's, but for its channels
  uint64_t pending_since_ns_ = 0;   // 0: nothing
  uint64_t sealed_promise_ns_ = 0;  // of the last commit, behind its packets
  bool store_failed_ = false;
};

}  // namespace weft::consumer

#endif  // WEFT_NODE_AGENT_CONSUMER_OUTPUT_H_
