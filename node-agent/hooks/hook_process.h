// SPDX-License-Identifier: Apache-2.0
// Makes the functions of one process that rules name hooked, and all others not. What is certain to
// be right is hooked, all else is refused with its reason.
//
// It may be called again at any time, also after an agent died inside it: what is done already is
// left as it is, and the process is stopped only if bytes of its functions are to change.
// Thread-safety: one call for a process at a time.
#ifndef WEFT_NODE_AGENT_HOOKS_HOOK_PROCESS_H_
#define WEFT_NODE_AGENT_HOOKS_HOOK_PROCESS_H_

#include <chrono>
#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <tuple>
#include <vector>

#include "lib/base/result.h"
#include "node-agent/hooks/cache_share.h"
#include "node-agent/hooks/functions.h"
#include "node-agent/hooks/hook_table.h"
#include "node-agent/hooks/process_memory.h"
#include "node-agent/hooks/type_cache.h"

namespace weft::hooks {

struct RefusedFunction {
  size_t rule = 0;
  std::string object;
  std::string function;  // "": all of the object
  std::string why;
  bool exit_only = false;
};

// Where the types of a function's values are from.
enum class TypeSource : uint8_t {
  kTrace,
  kDebugInformation,
  kServer,     // debug information from a debuginfod server
  kRegisters,  // not known
  kAwaited,    // likewise, until a server answers
};

struct HookedFunction {
  TypeSource source{};
  size_t addresses = 0;  // overloads may have one name
};
// By function and object.
using HookedFunctions = std::map<std::pair<std::string, std::string>, HookedFunction>;

struct HookReport {
  // Notes a function that is not hooked. A process may map a file thousands of times: past
  // kMaxRefused, one line stands for all others.
  void Refuse(RefusedFunction function);
  // Nothing more of the process can be refused by its name, so nothing more is hooked.
  [[nodiscard]] bool is_full() const;

  // By rule, object and function.
  std::map<std::tuple<size_t, std::string, std::string>, HookedFunction> hooked;
  std::map<std::string, std::string> untyped;  // by object: why its debug information is not read
  std::map<std::string, std::string> unnamed;  // likewise: why its debug file's symbols are not
  std::vector<RefusedFunction> refused;
  std::set<std::string> objects;     // names of all objects of the process
  std::map<size_t, NearNames> near;  // by rule: names near to one that an object does not have
  std::map<size_t, RecordedAs> recorded_as;    // by rule: the earlier rule that has its function
  std::map<size_t, std::string> of_c_library;  // by rule: the C library that alone has its function
  std::map<uint64_t, uint64_t> samples;        // by object's begin: one of its hooked functions
  std::chrono::nanoseconds stopped{};          // how long all threads stood still
};

// Remembers what files have, so that each is read once.
class FunctionCache {
 public:
  Result<FunctionFile> Read(const ProcessMemory& memory, const LoadedObject& object,
                            const std::vector<HookRule>& rules, const std::vector<size_t>& chosen,
                            const DebugSource& source);
  // The rules changed. Types stay.
  void Clear() {
    files_.clear();
    bytes_ = 0;
    (void)share_.Resize(0);
  }
  // Forgets the files of which servers may know more by now. Returns whether there are any.
  bool ForgetIncomplete();

 private:
  void AddTypes(int file, const std::string& root, const LoadedObject& object,
                const std::vector<HookRule>& rules, const std::vector<size_t>& chosen,
                const DebugSource& source, FunctionFile& read);

  using Key = std::tuple<uint64_t, uint64_t, uint64_t, int64_t>;  // device, inode, size, time
  // Adds a file, if its share has room for it. Forgets all others first if they would exceed
  // kMaxCachedBytes, kMaxCachedFiles or the share.
  void Remember(const Key& key, const FunctionFile& file);

  std::map<Key, FunctionFile> files_;
  size_t bytes_ = 0;  // their memory, coarsely, at most kMaxCachedBytes
  CacheShare share_;
  // One of which servers may know more was forgotten, or was too large to be remembered.
  bool lost_incomplete_ = false;
  TypeCache types_;
};

// kNotFound: there is no such process, or none that can have hooks; the message says why.
// kPermission, kTimeout: it cannot be stopped, and has the hooks that it had before.
Status HookProcess(int32_t pid, const std::vector<HookRule>& rules, FunctionCache& cache,
                   HookReport& report, const DebugSource& source = {});
// Makes no function of a process hooked any more, and gives back those of its C library that an
// agent replaced (give_back.h). Errors as those of HookProcess.
Status UnhookProcess(int32_t pid, HookReport& report);

}  // namespace weft::hooks

#endif  // WEFT_NODE_AGENT_HOOKS_HOOK_PROCESS_H_
