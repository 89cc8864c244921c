// SPDX-License-Identifier: Apache-2.0
// Finds memory of libweft.so that was not announced: ring sets of processes that cannot reach the
// socket (chroot, a filter, another network, an agent that was away), and control areas of
// processes that are older than the agent. It reads /proc/PID/maps and opens
// /proc/PID/map_files/RANGE. This works even if a process has closed every descriptor, but needs a
// privilege; without it the finder finds nothing and reports nothing.
//
// In every round the finder looks at the *members*: processes that map the session's control file
// or an adopted control area, that called the doorbell, the roots, and all their descendants. It
// also looks at every new pid in its first rounds, since forks are not announced. LookAtAll looks
// at every process once.
//
// Memory is identified by inode number: all of it is on the kernel's own tmpfs, where a tenant
// cannot choose these numbers. Each memory is passed on once while a process maps it, unless the
// handler asks for it again. The agent's thread owns it.
#ifndef WEFT_NODE_AGENT_AGENT_DISCOVERY_FINDER_H_
#define WEFT_NODE_AGENT_AGENT_DISCOVERY_FINDER_H_

#include <sys/types.h>

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "lib/base/unique_fd.h"
#include "node-agent/agent/discovery/memory_maps.h"

namespace weft::agent {

struct FoundMemory {
  bool is_control = false;  // a member's; else, so it says, a ring set, of any process
  uint64_t inode = 0;
  int32_t pid = 0;
  uint32_t uid = 0;
  UniqueFd fd;  // for reading and writing
  UniqueFd pidfd;
};

class Finder {
 public:
  enum class Verdict : uint8_t {
    kKnown,     // not again
    kTryAgain,  // perhaps not finished: a few rounds more
    kLater,     // no room now: as long as a process maps it
  };
  using Handler = std::function<Verdict(FoundMemory)>;

  explicit Finder(Handler handler);

  // Empty where it can find; else why not, for people.
  [[nodiscard]] const std::string& refusal() const { return refusal_; }

  // Adds a control file: each process that maps it is a member.
  void AddControlFile(const std::string& name, const UniqueFd& file);
  void RemoveControlFile(const std::string& name);
  // Names the control file that a new pid should map; such a pid is a member.
  using Membership = std::function<std::optional<std::string>(int32_t)>;
  void SetMembership(Membership membership) { membership_ = std::move(membership); }
  // Makes every process new again.
  void LookAgain() { rounds_of_.clear(); }
  // Adds a control area that was adopted: each process that maps it is a member.
  void AddControl(uint64_t inode) { controls_.insert(inode); }
  void RemoveControl(uint64_t inode) { controls_.erase(inode); }
  // Makes this process and its descendants members, until it ends.
  void AddRoot(int32_t pid, UniqueFd pidfd);
  void RemoveRoots() { roots_.clear(); }
  void AddMember(int32_t pid) { members_.insert(pid); }
  // Names memory that the agent got by another way.
  void Know(const UniqueFd& memory);

  // Processes that are there now are not new.
  void Begin();
  void LookAtMembers();
  void LookAtAll();
  // Returns the control areas that no process mapped in the last rounds.
  [[nodiscard]] std::vector<uint64_t> UnmappedControls() const;
  // Has a process mapped this memory since this agent began?
  [[nodiscard]] bool HasSeen(uint64_t inode) const { return known_.contains(inode); }

  // Do processes that should map this control file map it, or memory that the library made?
  enum class Sight : uint8_t {
    kUnknown,  // there is no such process yet
    kMapped,   // one does, or did when there were any
    kMissing,  // none did in the last kRoundsWithoutLibrary rounds in which there were any
  };
  [[nodiscard]] Sight SightOf(const std::string& name) const;

  // Returns the inode of the control area of `pid`; 0: it has none of its own.
  [[nodiscard]] uint64_t ControlOf(int32_t pid) const;

 private:
  struct Known {
    uint64_t seen = 0;  // the last round in which a process mapped it
    uint32_t tries = 0;
    bool final = false;
  };
  struct Root {
    int32_t pid = 0;
    UniqueFd pidfd;
  };

  using FileId = std::pair<dev_t, uint64_t>;
  struct ControlFile {
    FileId id;
    bool mapped = false;          // ever, or the library's own memory instead
    uint32_t rounds_without = 0;  // with processes that should map it and do not
  };

  void Look(bool all);
  void CountRound();
  void AddDescendants(const std::set<int32_t>& alive);
  // Notes that a process that should map this control file has the library.
  void NoteLibrary(const std::string& name);
  void LookAt(int32_t pid, bool is_member);
  void OpenNew(int32_t pid, bool is_member);
  [[nodiscard]] bool IsControl(const Mapping& mapping) const;
  [[nodiscard]] bool IsRing(const Mapping& mapping) const;
  bool Wants(const Mapping& mapping, bool is_member);

  Handler handler_;
  std::string refusal_;
  dev_t device_ = 0;                          // of the kernel's own tmpfs
  std::map<std::string, ControlFile> files_;  // by name
  std::map<FileId, std::string> name_of_;     // of control files
  Membership membership_;
  std::map<int32_t, std::string> file_of_;  // pid -> the control file that it should map
  std::set<uint64_t> controls_;
  std::vector<Root> roots_;
  std::set<int32_t> members_;
  std::map<int32_t, uint32_t> rounds_of_;  // how often a pid was there
  std::map<uint64_t, Known> known_;
  uint64_t round_ = 0;
};

}  // namespace weft::agent

#endif  // WEFT_NODE_AGENT_AGENT_DISCOVERY_FINDER_H_
