// SPDX-License-Identifier: Apache-2.0
// What a writer knows of a trace: the trace and its channels (CTF: stream classes).
// lib/event/description.h describes their events. The writers of metadata and packets start from
// here. Names may be any text: characters that an identifier cannot have are replaced when types
// are made. Thread-safety: plain values.
#ifndef WEFT_LIB_CTF_SCHEMA_H_
#define WEFT_LIB_CTF_SCHEMA_H_

#include <algorithm>
#include <cstdint>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "lib/abi/context.h"
#include "lib/base/uuid.h"

namespace weft::ctf {

enum class Version : uint8_t { k1_8, k2 };

// One entry of the trace's environment.
struct EnvEntry {
  std::string name;
  std::variant<int64_t, std::string> value;
};

// Times in packets are nanoseconds; time since the epoch = offset_seconds * 1e9 + offset_ns + time.
struct Clock {
  std::string name = "weft";
  std::string description;
  Uuid uuid{};
  int64_t offset_seconds = 0;
  uint64_t offset_ns = 0;  // below 1e9
  uint64_t precision_ns = 0;
};

// The range of process ids in their own pid namespaces; 0 and 0: none yet.
struct VpidRange {
  uint32_t min = 0;
  uint32_t max = 0;

  // Returns false if it was in the range already.
  bool Add(uint32_t vpid) {
    if (vpid == 0 || (max != 0 && vpid >= min && vpid <= max)) return false;
    min = max == 0 ? vpid : std::min(min, vpid);
    max = std::max(max, vpid);
    return true;
  }
  friend bool operator==(const VpidRange&, const VpidRange&) = default;
};

struct TraceInfo {
  Uuid uuid{};
  Version version = Version::k1_8;
  Clock clock;
  std::optional<VpidRange> vpids;  // see vpid_range.h; stands before `env`
  std::vector<EnvEntry> env;
};

// Standard entries of the environment. Empty and zero ones are not written.
struct TraceIdentity {
  std::string hostname;
  std::string domain = "ust";  // or "kernel"
  std::string trace_name;
  std::string created;    // ISO 8601 basic format, "20261121T103330Z"
  std::string procnames;  // names of the processes, comma-separated
  std::string node, kubernetes_namespace, pod, pod_uid, container;
};

// Returns the entries for `identity`, tracer name and version first. The name `procname` is not
// used: readers that find it print it with every event.
std::vector<EnvEntry> MakeEnv(const TraceIdentity& identity);

// A context of a channel: an id of lib/abi/context.h and, for perf counters and application
// contexts, the name behind the prefix ("instructions", "provider:name").
struct ContextField {
  uint16_t id = 0;
  std::string name;
};

struct ChannelSchema {
  uint32_t id = 0;
  std::string name;
  std::vector<ContextField> contexts;
};

}  // namespace weft::ctf

#endif  // WEFT_LIB_CTF_SCHEMA_H_
