// SPDX-License-Identifier: Apache-2.0
// How far the streams of a relay can be read safely while nodes write them: up to which byte no
// node will have them cut off, and the time before which nothing more comes. Ingest writes it, the
// API reads it. It is in memory only: a relay that was restarted learns it from the nodes' next
// beacons. Thread-safety: all functions.
#ifndef WEFT_LIB_STORE_SAFE_READS_H_
#define WEFT_LIB_STORE_SAFE_READS_H_

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <deque>
#include <map>
#include <mutex>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>

namespace weft::store {

struct SafeRead {
  // More may come, and readers wait for it. false: the trace has ended, or its node has been away
  // for kAwayTime.
  bool live = false;
  uint64_t kept = 0;  // bytes that no node will have cut off
  // Nothing older (ns, the trace's clock) comes behind these bytes; 0: not known yet.
  uint64_t time_ns = 0;
};

class SafeReads {
 public:
  using Clock = std::chrono::steady_clock;
  class Snapshot;
  // A node connects again within 5 s, and a consumer is started again sooner than that. Readers
  // wait for a stream without a node as long as this, also after the relay's start.
  static constexpr std::chrono::seconds kAwayTime{10};

  explicit SafeReads(Clock::time_point now = Clock::now()) : started_(now) {}

  // A session writes the CTF trace in `folder`, which is relative to the data folder.
  void Open(const std::string& folder) {
    const std::lock_guard lock(mutex_);
    Folder& f = folders_[folder];
    f.time_ns = TimeOf(f);
    f.session = kNoSession;
    f.open = true;
    f.ended = false;
  }

  // The file `name` in it has `bytes` that stay. Ignored if the folder is not open.
  void Keep(const std::string& folder, const std::string& name, uint64_t bytes) {
    const std::lock_guard lock(mutex_);
    if (const auto found = folders_.find(folder); found != folders_.end())
      found->second.kept[name] = bytes;
  }

  // The folder has a time of its own from now on, or 0: the last one it had.
  void Promise(const std::string& folder, uint64_t time_ns) {
    const std::lock_guard lock(mutex_);
    const auto found = folders_.find(folder);
    if (found == folders_.end()) return;
    found->second.time_ns = std::max(TimeOf(found->second), time_ns);
    found->second.session = kNoSession;
  }

  // The folder has the time of a session, which is the time of thousands of folders.
  void Follow(const std::string& folder, uint64_t session) {
    const std::lock_guard lock(mutex_);
    const auto found = folders_.find(folder);
    if (found == folders_.end()) return;
    found->second.time_ns = TimeOf(found->second);
    found->second.session = session;
  }
  void PromiseAll(uint64_t session, uint64_t time_ns) {
    const std::lock_guard lock(mutex_);
    sessions_[session] = time_ns;
  }
  // After the Close of its folders.
  void EndSession(uint64_t session) {
    const std::lock_guard lock(mutex_);
    sessions_.erase(session);
  }

  // The session's end. `ended`: all of the trace is there.
  void Close(const std::string& folder, bool ended, Clock::time_point now = Clock::now()) {
    const std::lock_guard lock(mutex_);
    const auto found = folders_.find(folder);
    if (found == folders_.end()) return;
    found->second.time_ns = TimeOf(found->second);
    found->second.session = kNoSession;
    found->second.open = false;
    found->second.ended = ended;
    found->second.closed = now;
    closed_.emplace_back(now, folder);
    // What is forgotten is not live, as if it was known.
    while (now - closed_.front().first >= kAwayTime && now - started_ >= kAwayTime) {
      const auto old = folders_.find(closed_.front().second);
      if (old != folders_.end() && !old->second.open && now - old->second.closed >= kAwayTime)
        folders_.erase(old);
      closed_.pop_front();
    }
  }

  // What is known of the folders below `top` now. Take it before you look for files: then a stream
  // that you do not find brings nothing older than what this says of the others of its trace. This
  // object outlives it.
  [[nodiscard]] Snapshot Look(const std::string& top, Clock::time_point now = Clock::now()) const;

 private:
  [[nodiscard]] bool IsKnown(const std::string& folder) const {
    const std::lock_guard lock(mutex_);
    return folders_.contains(folder);
  }

  static constexpr uint64_t kNoSession = 0;

  struct Folder {
    bool open = false;
    bool ended = false;
    bool live = false;  // of a snapshot
    Clock::time_point closed;
    uint64_t time_ns = 0;
    uint64_t session = kNoSession;         // its time holds, if it is later
    std::map<std::string, uint64_t> kept;  // by the file's name
  };

  [[nodiscard]] uint64_t TimeOf(const Folder& folder) const {
    const auto session = sessions_.find(folder.session);
    return session == sessions_.end() ? folder.time_ns : std::max(folder.time_ns, session->second);
  }

  const Clock::time_point started_;
  mutable std::mutex mutex_;
  std::map<std::string, Folder> folders_;
  std::unordered_map<uint64_t, uint64_t> sessions_;  // their times
  std::deque<std::pair<Clock::time_point, std::string>> closed_;
};

class SafeReads::Snapshot {
 public:
  // `path`: of a stream's file, relative to the data folder; `size`: bytes that it has.
  [[nodiscard]] SafeRead Find(std::string_view path, uint64_t size) const {
    const size_t slash = path.rfind('/');
    const std::string folder(path.substr(0, slash));
    const auto found = folders_.find(folder);
    if (found == folders_.end()) {
      // It may have come after this was taken.
      const bool live = unknown_are_live_ || reads_->IsKnown(folder);
      return {.live = live, .kept = live ? 0 : size, .time_ns = 0};
    }
    const Folder& f = found->second;
    if (!f.live) return {.live = false, .kept = size, .time_ns = 0};
    const auto kept = f.kept.find(std::string(path.substr(slash + 1)));
    return {.live = true,
            .kept = kept == f.kept.end() ? 0 : std::min(kept->second, size),
            .time_ns = f.time_ns};
  }

 private:
  friend class SafeReads;
  const SafeReads* reads_ = nullptr;
  std::map<std::string, Folder> folders_;
  bool unknown_are_live_ = false;
};

inline SafeReads::Snapshot SafeReads::Look(const std::string& top, Clock::time_point now) const {
  const std::lock_guard lock(mutex_);
  Snapshot look;
  look.reads_ = this;
  look.unknown_are_live_ = now - started_ < kAwayTime;
  const std::string below = top + "/";
  for (auto at = folders_.lower_bound(below); at != folders_.end(); ++at) {
    if (!at->first.starts_with(below)) break;
    look.folders_.emplace_hint(look.folders_.end(), *at);
    Folder& folder = look.folders_.rbegin()->second;
    folder.time_ns = TimeOf(folder);
    folder.live = folder.open || (!folder.ended && now - folder.closed < kAwayTime);
  }
  return look;
}

}  // namespace weft::store

#endif  // WEFT_LIB_STORE_SAFE_READS_H_
