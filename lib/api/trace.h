// SPDX-License-Identifier: Apache-2.0
// A Trace as plain values: what a person asks for (spec) and what weft does about it
// (status). YAML, JSON and the CRD have these fields in this order. One table,
// trace_schema.cc, has their names, limits and meaning; docs/formats/trace.md explains them
// for people.
//
// Invariants: an object from parse.h or builder.h is valid; check one that a program built with
// Validate() of parse.h. A field that was not given has its default here, so code that acts on a
// Trace need not distinguish "absent" from "default". Thread-safety: they are plain values.
#ifndef WEFT_LIB_API_TRACE_H_
#define WEFT_LIB_API_TRACE_H_

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "lib/api/limits.h"
#include "lib/api/log_level.h"
#include "lib/api/status.h"

namespace weft::api {

inline constexpr std::string_view kGroup = "weft.dev";
inline constexpr std::string_view kVersion = "v1alpha1";
inline constexpr std::string_view kApiVersion = "weft.dev/v1alpha1";
inline constexpr std::string_view kTraceKind = "Trace";
inline constexpr std::string_view kClusterTraceKind = "ClusterTrace";

// The members of Kubernetes' ObjectMeta that weft reads. Other standard members are accepted and
// dropped.
struct Metadata {
  std::string name;
  std::string name_space;  // "" where none was given: the caller's default
  std::map<std::string, std::string> labels;
  std::map<std::string, std::string> annotations;
  // Set by the API server; "" or 0 in a person's file.
  std::string uid;
  std::string resource_version;
  std::int64_t generation = 0;
  std::string creation_timestamp;  // RFC 3339
  std::string deletion_timestamp;  // RFC 3339
  std::vector<std::string> finalizers;
  bool operator==(const Metadata&) const = default;
};

enum class SelectorOperator { kIn, kNotIn, kExists, kDoesNotExist };

struct LabelRequirement {
  std::string key;
  SelectorOperator op = SelectorOperator::kExists;
  std::vector<std::string> values;  // for In and NotIn only
  bool operator==(const LabelRequirement&) const = default;
};

// All requirements must hold; without any, every pod matches. See selector.h.
struct LabelSelector {
  std::map<std::string, std::string> match_labels;
  std::vector<LabelRequirement> match_expressions;
  bool operator==(const LabelSelector&) const = default;
};

// Local mode does not look at it: there the program is the pod.
struct PodSelection {
  LabelSelector selector;
  std::vector<std::string> containers;  // empty: all
  bool operator==(const PodSelection&) const = default;
};

// The spec of a ClusterTrace.
struct NodeSelection {
  LabelSelector selector;
  bool operator==(const NodeSelection&) const = default;
};

// Tracepoints of user space. Patterns are globs over "provider:event"; only * is special.
struct EventRule {
  std::string name;
  std::vector<std::string> exclude;
  LogLevelRule log_level;
  std::string filter;  // lib/event's language; "": everything
  bool operator==(const EventRule&) const = default;
};

enum class ValueType {
  kInt8,
  kInt16,
  kInt32,
  kInt64,
  kUint8,
  kUint16,
  kUint32,
  kUint64,
  kFloat,
  kDouble,
  kPointer,
  kString,
  kBytes,  // of arguments of functions only
};

struct FunctionArg {
  std::string name;
  ValueType type = ValueType::kInt32;
  // kBytes: how many, as the name of an argument, a number, or "return".
  std::string length;
  // How the value is reached from an argument (docs/formats/trace.md). "": it is one.
  std::string path;
  bool operator==(const FunctionArg&) const = default;
};

enum class FunctionMoment { kEntry, kExit, kCall };
enum class FunctionSet { kMalloc, kPthread, kDl, kIo, kSsl };

// Functions of unmodified programs: entry and exit of each call, or one event for the whole call.
struct FunctionRule {
  std::string name;    // glob over symbol names; "": those of the set
  std::string object;  // glob over file names of programs and libraries; "": any
  std::vector<std::string> exclude;
  std::vector<FunctionArg> args;     // empty: from DWARF where there is any
  std::optional<ValueType> returns;  // none: from DWARF where there is any
  std::string filter;
  std::vector<FunctionMoment> record;  // empty: entry and exit; of a set: call
  std::optional<FunctionSet> set;      // function_sets.h
  bool operator==(const FunctionRule&) const = default;

  bool Records(FunctionMoment moment) const {
    if (record.empty()) return moment != FunctionMoment::kCall;
    return std::ranges::find(record, moment) != record.end();
  }
};

struct UserSpec {
  std::vector<EventRule> events;
  std::vector<FunctionRule> functions;
  bool attach = false;  // also programs that run without the library, in a cluster
  bool operator==(const UserSpec&) const = default;
};

// Tracepoints and system calls of the kernel.
struct KernelRule {
  std::string name;  // glob
  std::vector<std::string> exclude;
  std::string filter;
  bool operator==(const KernelRule&) const = default;
};

enum class ProbePoint { kEntry, kReturn, kBoth };

struct ProbeRule {
  std::string name;          // of the event
  std::string symbol;        // kernel function
  std::uint32_t offset = 0;  // bytes behind the symbol, for kEntry only
  ProbePoint at = ProbePoint::kEntry;
  std::string filter;
  bool operator==(const ProbeRule&) const = default;
};

// Functions and USDT probes of programs, seen by the kernel: also of those that cannot be
// preloaded.
struct UserProbeRule {
  std::string name;      // of the event
  std::string object;    // the program's or library's file, an absolute path in its container
  std::string function;  // symbol; or
  std::string usdt;      // "provider:name"
  std::uint32_t offset = 0;
  ProbePoint at = ProbePoint::kEntry;
  std::vector<FunctionArg> args;     // empty: the registers of arguments
  std::optional<ValueType> returns;  // none: the register
  std::string filter;
  bool operator==(const UserProbeRule&) const = default;
};

struct KernelSpec {
  std::vector<KernelRule> tracepoints;
  std::vector<KernelRule> syscalls;
  std::uint32_t syscall_buffer = 0;  // bytes recorded of what a system call reads or writes
  std::vector<ProbeRule> probes;
  bool statedump = true;          // record the state at the start, too
  std::string statedump_request;  // another one than before: once more
  std::vector<UserProbeRule> user_probes;
  bool operator==(const KernelSpec&) const = default;
};

// Limits a Trace to some processes and users. An empty list is no limit. Lists with a v hold ids as
// the container sees them, the others ids as the node sees them.
struct Trackers {
  std::vector<std::uint32_t> vpid;
  std::vector<std::uint32_t> vuid;
  std::vector<std::uint32_t> vgid;  // this and the following for kernel events only
  std::vector<std::uint32_t> pid;
  std::vector<std::uint32_t> uid;
  std::vector<std::uint32_t> gid;
  bool operator==(const Trackers&) const = default;
};

enum class BufferMode { kDiscard, kOverwrite };

// Per slot of each ring set; size and count are powers of two.
struct BufferSpec {
  std::uint64_t size = limits::kDefaultSubBufferBytes;  // bytes of one sub-buffer
  std::uint32_t count = limits::kDefaultSubBuffers;     // sub-buffers
  BufferMode mode = BufferMode::kDiscard;
  bool operator==(const BufferSpec&) const = default;
};

enum class OutputMode { kStream, kSnapshot };

struct OutputSpec {
  OutputMode mode = OutputMode::kStream;
  bool operator==(const OutputSpec&) const = default;
};

// What the relay keeps of the Trace. The relay's own limits hold, too.
struct StorageSpec {
  std::optional<std::uint64_t> max_size;            // bytes of all files
  std::optional<std::chrono::nanoseconds> max_age;  // of events
  bool operator==(const StorageSpec&) const = default;
};

// A ClusterTrace has nodes where a Trace has pods and user.
struct TraceSpec {
  NodeSelection nodes;
  PodSelection pods;
  UserSpec user;
  KernelSpec kernel;
  std::string filter;                // applies to every event, beside its own filter
  std::vector<std::string> context;  // names of context.h
  Trackers trackers;
  BufferSpec buffer;
  OutputSpec output;
  StorageSpec storage;
  std::optional<std::chrono::nanoseconds> duration;  // none: until deleted or stopped
  bool paused = false;
  bool operator==(const TraceSpec&) const = default;

  bool RecordsUser() const { return !user.events.empty() || !user.functions.empty(); }
  bool RecordsKernel() const {
    return !kernel.tracepoints.empty() || !kernel.syscalls.empty() || !kernel.probes.empty() ||
           !kernel.user_probes.empty();
  }
  bool RecordsFunctionsOnly() const {
    return user.events.empty() && !user.functions.empty() && !RecordsKernel();
  }
};

// A Trace; or, without a namespace, a ClusterTrace: the same for the kernels of whole nodes.
struct Trace {
  Metadata metadata;
  TraceSpec spec;
  TraceStatus status;
  bool operator==(const Trace&) const = default;
};

}  // namespace weft::api

#endif  // WEFT_LIB_API_TRACE_H_
