// SPDX-License-Identifier: Apache-2.0
// What is known of the types of functions, file by file. weft-types reads a file once, or again if
// its types were more than the cache may hold (cache_share.h).
// Thread-safety: one thread at a time.
#ifndef WEFT_NODE_AGENT_HOOKS_TYPE_CACHE_H_
#define WEFT_NODE_AGENT_HOOKS_TYPE_CACHE_H_

#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <tuple>
#include <vector>

#include "lib/base/result.h"
#include "lib/base/unique_fd.h"
#include "node-agent/hooks/cache_share.h"
#include "node-agent/hooks/debug_server.h"
#include "node-agent/hooks/function_types.h"

namespace weft::hooks {

struct DebugFile {
  UniqueFd file;
  bool is_from_server = false;
  UniqueFd shared;       // into which dwz has moved parts of it; none: it has all
  Status shared_status;  // an error: there is such a file, and why it could not be opened
};

// Opens the file that has the debug information of an object: the object itself, a file by its
// build-id, or the one that .gnu_debuglink names, if it has the same build-id. They are searched
// where programs of the process find them. `root`: its root folder; `path`: the object's in it.
// Where there is none, the server of `source` is asked. kNotFound: there is none; other errors are
// those of DebugServer::Find.
Result<DebugFile> OpenDebugFile(int object, const std::string& root, const std::string& path,
                                const DebugSource& source = {});

// Opens files that have symbols which an object lacks: its debug file, and the symbols that it has
// packed, unpacked by weft-types (`program`). None if the object has a table of symbols itself.
std::vector<UniqueFd> OpenMoreSymbols(const std::string& program, int object,
                                      const std::string& root, const std::string& path);

// Asks the server of `source` for the debug file of an object that has no table of symbols. Returns
// none if it has one. Errors are those of DebugServer::Find.
Result<std::vector<UniqueFd>> FindSymbols(int object, const DebugSource& source);

// Lets weft-types read a file. `addresses`: sorted. `paths`: to members, of PathsOf. kTimeout,
// kLimit, kInvalid: it could not; the message says why. `shared`: as DebugFile has it; -1: none.
Result<TypesByAddress> RunTypes(const std::string& program, int file,
                                const std::vector<uint64_t>& addresses,
                                const std::set<std::string>& paths = {}, int shared = -1);

// Returns the memory that types take, coarsely.
size_t BytesOf(const TypesByAddress& types);

class TypeCache {
 public:
  // Returns what is known of the functions at these addresses (sorted), from their debug file. An
  // error says that it could not be read.
  Result<TypesByAddress> Find(const DebugFile& file, const std::vector<uint64_t>& addresses,
                              const std::set<std::string>& paths);

 private:
  struct Entry {
    std::set<uint64_t> asked;
    TypesByAddress types;
    Status status;
  };

  // What the kernel says of the file with the debug information: a tenant chooses build-ids.
  // Device, inode, size, time; is the shared file there; and the paths that were asked for.
  using Key = std::tuple<uint64_t, uint64_t, uint64_t, int64_t, bool, std::set<std::string>>;
  void Clear();

  std::map<Key, Entry> entries_;
  size_t bytes_ = 0;  // their memory, coarsely
  CacheShare share_;
};

}  // namespace weft::hooks

#endif  // WEFT_NODE_AGENT_HOOKS_TYPE_CACHE_H_
