// SPDX-License-Identifier: Apache-2.0
// Reading Traces: what a good file becomes, and what each mistake is told.
#include "lib/api/parse.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdio>
#include <fstream>
#include <string>
#include <vector>

namespace weft::api {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

constexpr std::string_view kHead =
    "apiVersion: weft.dev/v1alpha1\n"
    "kind: Trace\n"
    "metadata: {name: t}\n"
    "spec:\n";
// kHead with something to record; what follows begins on line 6.
const std::string kRecording = std::string(kHead) + "  user: {events: [{name: \"p:*\"}]}\n";

Trace Good(std::string_view text) {
  const Traces traces = ParseTraces("t.yaml", text);
  if (traces) return traces->front();
  ADD_FAILURE() << ToString(traces.error()) << "in:\n" << text;
  return {};
}

std::vector<std::string> Errors(std::string_view text, const ParseOptions& options = {}) {
  const Traces traces = ParseTraces("t.yaml", text, options);
  std::vector<std::string> lines;
  if (!traces) {
    for (const Diagnostic& diagnostic : traces.error()) lines.push_back(diagnostic.ToString());
  }
  return lines;
}

std::string OnlyError(std::string_view text) {
  const std::vector<std::string> errors = Errors(text);
  EXPECT_EQ(errors.size(), 1u) << text << testing::PrintToString(errors);
  return errors.empty() ? "" : errors[0];
}

constexpr std::string_view kFull = R"(
apiVersion: weft.dev/v1alpha1
kind: Trace
metadata:
  name: full
  namespace: shop
  labels: {team: a}
  annotations: {"weft.dev/note": "ä: x"}
spec:
  pods:
    selector:
      matchLabels: {app: shop, version: "2"}
      matchExpressions:
        - {key: tier, operator: NotIn, values: [test]}
        - {key: gpu, operator: DoesNotExist}
    containers: [server, worker]
  user:
    events:
      - name: shop:order_*
        exclude: ["shop:order_debug*"]
        logLevel: {atLeast: info}
        filter: total > 100
      - name: "*"
        logLevel: {exactly: debug_line}
      - name: a:b
        logLevel: {range: {from: err, to: info}}
    functions:
      - name: my_traced_function
        object: libmylib.so*
        exclude: [my_traced_function_2]
        args: [{name: a, type: int32}, {name: b, type: pointer}]
        returns: double
        filter: a == 1
      - set: malloc
        record: [exit]
    attach: true
  kernel:
    tracepoints: [{name: sched_*, exclude: [sched_stat_*], filter: "prio < 5"}]
    syscalls: [{name: openat}]
    syscallBuffer: 64
    probes: [{name: r, symbol: vfs_read, offset: 16}, {name: w, symbol: vfs_write, at: return}]
    userProbes:
      - {name: p, object: /bin/p, function: "main.(*T).f", at: both,
         args: [{name: a, type: string}], returns: int32}
      - {name: q, object: /lib/q.so, usdt: "q:start", filter: arg0 == 1}
  filter: $ctx.procname == "shop*"
  context: [vpid, "perf:thread:cycles", procname, prio]
  trackers: {vpid: [1, 4194304], vuid: [0, 4294967294]}
  buffer: {size: 1Mi, count: 8, mode: overwrite}
  output: {mode: snapshot}
  storage: {maxSize: 1500M, maxAge: 36h}
  duration: 1h30m
  paused: yes
)";

TEST(Parse, ReadsEveryField) {
  const Trace t = Good(kFull);
  EXPECT_EQ(t.metadata.name, "full");
  EXPECT_EQ(t.metadata.name_space, "shop");
  EXPECT_EQ(t.metadata.labels.at("team"), "a");
  EXPECT_EQ(t.metadata.annotations.at("weft.dev/note"), "ä: x");
  const TraceSpec& s = t.spec;
  EXPECT_EQ(s.pods.selector.match_labels.at("version"), "2");
  ASSERT_EQ(s.pods.selector.match_expressions.size(), 2u);
  EXPECT_EQ(s.pods.selector.match_expressions[0].op, SelectorOperator::kNotIn);
  EXPECT_THAT(s.pods.selector.match_expressions[0].values, ElementsAre("test"));
  EXPECT_THAT(s.pods.containers, ElementsAre("server", "worker"));
  ASSERT_EQ(s.user.events.size(), 3u);
  EXPECT_EQ(s.user.events[0].name, "shop:order_*");
  EXPECT_THAT(s.user.events[0].exclude, ElementsAre("shop:order_debug*"));
  EXPECT_EQ(s.user.events[0].log_level.at_least, LogLevel::kInfo);
  EXPECT_EQ(s.user.events[0].filter, "total > 100");
  EXPECT_EQ(s.user.events[1].log_level.exactly, LogLevel::kDebugLine);
  EXPECT_EQ(s.user.events[2].log_level.range, (LogLevelRange{LogLevel::kErr, LogLevel::kInfo}));
  ASSERT_EQ(s.user.functions.size(), 2u);
  EXPECT_EQ(s.user.functions[1].set, FunctionSet::kMalloc);
  const FunctionRule& function = s.user.functions[0];
  EXPECT_EQ(function.object, "libmylib.so*");
  EXPECT_EQ(function.args[1], (FunctionArg{"b", ValueType::kPointer}));
  EXPECT_EQ(function.returns, ValueType::kDouble);
  EXPECT_TRUE(s.user.attach);
  EXPECT_EQ(s.kernel.tracepoints[0].filter, "prio < 5");
  EXPECT_EQ(s.kernel.syscalls[0].name, "openat");
  EXPECT_EQ(s.kernel.syscall_buffer, 64u);
  EXPECT_EQ(s.kernel.probes[0].offset, 16u);
  EXPECT_EQ(s.kernel.probes[1].at, ProbePoint::kReturn);
  ASSERT_EQ(s.kernel.user_probes.size(), 2u);
  EXPECT_EQ(s.kernel.user_probes[0], (UserProbeRule{.name = "p",
                                                    .object = "/bin/p",
                                                    .function = "main.(*T).f",
                                                    .at = ProbePoint::kBoth,
                                                    .args = {{"a", ValueType::kString}},
                                                    .returns = ValueType::kInt32}));
  EXPECT_EQ(s.kernel.user_probes[1].usdt, "q:start");
  EXPECT_EQ(s.kernel.user_probes[1].filter, "arg0 == 1");
  EXPECT_EQ(s.filter, "$ctx.procname == \"shop*\"");
  EXPECT_THAT(s.context, ElementsAre("vpid", "perf:thread:cycles", "procname", "prio"));
  EXPECT_THAT(s.trackers.vpid, ElementsAre(1u, 4194304u));
  EXPECT_THAT(s.trackers.vuid, ElementsAre(0u, 4294967294u));
  EXPECT_EQ(s.buffer, (BufferSpec{1 << 20, 8, BufferMode::kOverwrite}));
  EXPECT_EQ(s.output.mode, OutputMode::kSnapshot);
  EXPECT_EQ(s.storage, (StorageSpec{1'500'000'000, std::chrono::hours(36)}));
  EXPECT_EQ(s.duration, std::chrono::minutes(90));
  EXPECT_TRUE(s.paused);
  EXPECT_TRUE(s.RecordsUser() && s.RecordsKernel());
}

TEST(Parse, AbsentEmptyAndNullMeanTheDefault) {
  const Trace minimal = Good(kRecording);
  EXPECT_EQ(minimal.spec.buffer, (BufferSpec{512 << 10, 4, BufferMode::kDiscard}));
  EXPECT_EQ(minimal.spec.duration, std::nullopt);
  EXPECT_EQ(Good(kRecording + "  pods: {selector: {}, containers: []}\n  kernel: {}\n"
                              "  filter:\n  context: null\n  buffer: ~\n  duration: null\n"
                              "  trackers: {vpid: []}\n  paused: false\n"),
            minimal);
}

TEST(Parse, AcceptsFieldsThatAClusterAdds) {
  const Trace t = Good(
      "apiVersion: weft.dev/v1alpha1\nkind: Trace\n"
      "metadata:\n  name: t\n  uid: u-1\n  resourceVersion: \"12\"\n  generation: 3\n"
      "  creationTimestamp: \"2026-01-02T03:04:05Z\"\n  finalizers: [weft.dev/drain]\n"
      "  managedFields: [{manager: kubectl, fieldsV1: {\"f:spec\": {\"f:user\": {}}}}]\n"
      "  ownerReferences: [{kind: X}]\n  selfLink: x\n"
      "spec: {user: {events: [{name: \"p:*\"}]}}\n"
      "status:\n  phase: Recording\n  observedGeneration: 3\n  relay: weft-relay-0\n"
      "  conditions:\n  - {type: Ready, status: \"True\", lastTransitionTime: "
      "\"2026-01-02T03:04:05Z\", reason: Started, message: \"\"}\n"
      "  pods: {matched: 3, traced: 2, skipped: [{reason: Static, count: 1, names: [a]}]}\n"
      "  events: {recorded: 10, delivered: 9, lost: 1, missing: 1, reasons: [{stage: relay, "
      "reason: gap, count: 1}]}\n"
      "  segments: [{relay: weft-relay-0, from: \"2026-01-02T03:04:05Z\"}]\n");
  EXPECT_EQ(t.metadata.uid, "u-1");
  EXPECT_EQ(t.metadata.resource_version, "12");
  EXPECT_EQ(t.metadata.generation, 3);
  EXPECT_THAT(t.metadata.finalizers, ElementsAre("weft.dev/drain"));
  EXPECT_EQ(t.status.phase, Phase::kRecording);
  EXPECT_EQ(t.status.conditions.at(0).status, ConditionStatus::kTrue);
  EXPECT_EQ(t.status.pods.skipped.at(0).names.at(0), "a");
  EXPECT_EQ(t.status.events.reasons.at(0).count, 1);
  EXPECT_EQ(t.status.segments.at(0).to, "");
}

TEST(Parse, ReadsJsonAndFlowYaml) {
  const Trace yaml = Good(kRecording);
  EXPECT_EQ(Good(R"( {"apiVersion":"weft.dev/v1alpha1","kind":"Trace","metadata":{"name":"t"},
      "spec":{"user":{"events":[{"name":"p:*"}]}}} )"),
            yaml);
  EXPECT_EQ(Good("{apiVersion: weft.dev/v1alpha1, kind: Trace, metadata: {name: t}, "
                 "spec: {user: {events: [{name: 'p:*'}]}}}"),
            yaml);
}

TEST(Parse, ReadsSeveralDocuments) {
  const Traces traces = ParseTraces("t.yaml", "---\n" + kRecording + "---\n---\n# nothing\n---\n" +
                                                  "apiVersion: weft.dev/v1alpha1\nkind: Trace\n"
                                                  "metadata: {name: u}\n"
                                                  "spec: {kernel: {syscalls: [{name: '*'}]}}\n");
  ASSERT_TRUE(traces.has_value()) << ToString(traces.error());
  ASSERT_EQ(traces->size(), 2u);
  EXPECT_EQ((*traces)[1].metadata.name, "u");
  EXPECT_EQ(OnlyError(kRecording + "---\n" + kRecording),
            "t.yaml:7:1: metadata.name: there are two Traces named \"t\"");
}

TEST(Parse, AnchorsAndAliases) {
  const Trace t = Good(std::string(kHead) +
                       "  user:\n    events:\n      - {name: \"p:a\", filter: &f \"x > 1\"}\n"
                       "      - &e {name: \"p:b\", filter: *f}\n      - *e\n");
  ASSERT_EQ(t.spec.user.events.size(), 3u);
  EXPECT_EQ(t.spec.user.events[2], (EventRule{.name = "p:b", .filter = "x > 1"}));
}

// Each mistake gives one message. Text that is appended to kRecording begins on line 6.
TEST(Parse, ReportsEachMistakeWithItsPlace) {
  const std::pair<std::string_view, std::string_view> cases[] = {
      {"  contxt: [vpid]\n", "t.yaml:6:3: spec.contxt: unknown field, did you mean \"context\"?"},
      {"  events: []\n", "t.yaml:6:3: spec.events: unknown field, did you mean \"user.events\"?"},
      {"  zzz: 1\n",
       "t.yaml:6:3: spec.zzz: unknown field; valid here: pods, user, kernel, filter, context, "
       "trackers, buffer, output, storage, duration, paused"},
      {"  paused: 1\n", "t.yaml:6:11: spec.paused: must be true or false, not a number"},
      {"  paused: \"true\"\n", "t.yaml:6:11: spec.paused: must be true or false, not \"true\""},
      {"  context: vpid\n", "t.yaml:6:12: spec.context: must be a list, not \"vpid\""},
      {"  context: [vpdi]\n",
       "t.yaml:6:13: spec.context[0]: \"vpdi\" unknown context, did you mean \"vpid\"?"},
      {"  context: [vpid, vtid, vpid]\n",
       "t.yaml:6:25: spec.context[2]: \"vpid\" is in this list twice"},
      {"  context: [1]\n",
       "t.yaml:6:13: spec.context[0]: must be a string, not a number: write \"1\""},
      {"  context: [prio]\n",
       "t.yaml:6:12: spec.context: \"prio\" exists for kernel events only, and spec.kernel has "
       "none"},
      {"  filter: yes\n",
       "t.yaml:6:11: spec.filter: must be a string, not true or false: write \"yes\""},
      {"  filter: \"\"\n", "t.yaml:6:11: spec.filter: \"\" must not be empty"},
      {"  buffer: 512Ki\n", "t.yaml:6:11: spec.buffer: must be a mapping, not \"512Ki\""},
      {"  buffer: {mode: Overwrite}\n",
       "t.yaml:6:18: spec.buffer.mode: \"Overwrite\" is not valid, did you mean \"overwrite\"?"},
      {"  buffer: {mode: ring}\n",
       "t.yaml:6:18: spec.buffer.mode: \"ring\" is not valid; valid here: discard, overwrite"},
      {"  buffer: {size: 500Ki}\n",
       "t.yaml:6:18: spec.buffer.size: \"500Ki\" is not a power of two, use 256Ki or 512Ki"},
      {"  buffer: {size: 1Ki}\n",
       "t.yaml:6:18: spec.buffer.size: \"1Ki\" is out of range, valid: a power of two, 4Ki to "
       "64Mi"},
      {"  buffer: {size: 512KB}\n",
       "t.yaml:6:18: spec.buffer.size: \"512KB\": not a quantity such as 512Ki or 1Mi"},
      {"  buffer: {size: 524288}\n",
       "t.yaml:6:18: spec.buffer.size: must be a string, not a number: write \"524288\""},
      {"  buffer: {count: 3}\n",
       "t.yaml:6:19: spec.buffer.count: 3 is not a power of two, use 2 or 4"},
      {"  buffer: {count: 1}\n",
       "t.yaml:6:19: spec.buffer.count: \"1\" is out of range, valid: 2 to 256"},
      {"  buffer: {count: 010}\n",
       "t.yaml:6:19: spec.buffer.count: \"010\" must be a whole decimal number"},
      {"  buffer: {count: 4.0}\n",
       "t.yaml:6:19: spec.buffer.count: \"4.0\" must be a whole decimal number"},
      {"  buffer: {size: 64Mi, count: 256}\n",
       "t.yaml:6:11: spec.buffer: size times count must be at most 1Gi"},
      {"  storage: {maxSize: 1Mi}\n",
       "t.yaml:6:22: spec.storage.maxSize: \"1Mi\" is out of range, valid: 16Mi to 1Pi"},
      {"  storage: {maxSize: -1Gi}\n",
       "t.yaml:6:22: spec.storage.maxSize: \"-1Gi\": not a quantity such as 512Ki or 1Mi"},
      {"  storage: {maxAge: 1s}\n",
       "t.yaml:6:21: spec.storage.maxAge: \"1s\" is out of range, valid: 1m to 8784h"},
      {"  output: {mode: snapshot}\n",
       "t.yaml:5:3: spec.buffer: must have mode: overwrite with output.mode: snapshot, which keeps "
       "the newest events"},
      {"  duration: 10\n",
       "t.yaml:6:13: spec.duration: \"10\" has no unit, write \"10s\" for seconds"},
      {"  duration: 10d\n",
       "t.yaml:6:13: spec.duration: \"10d\": not a duration such as 90s, 10m or 1h30m"},
      {"  duration: -1s\n",
       "t.yaml:6:13: spec.duration: \"-1s\" is out of range, valid: 10ms to 8784h"},
      {"  trackers: {vpid: [0]}\n",
       "t.yaml:6:21: spec.trackers.vpid[0]: \"0\" is out of range, valid: 1 to 4194304"},
      {"  trackers: {vuid: [root]}\n",
       "t.yaml:6:21: spec.trackers.vuid[0]: must be a number, not \"root\""},
      {"  trackers: {gid: [0]}\n",
       "t.yaml:6:13: spec.trackers: vgid, pid, uid and gid exist for kernel events only, and "
       "spec.user "
       "has events"},
      {"  pods: {selector: {matchLabels: {version: 2}}}\n",
       "t.yaml:6:44: spec.pods.selector.matchLabels[version]: must be a string, not a number: "
       "write \"2\""},
      {"  pods: {selector: {matchExpressions: [{key: a, operator: In}]}}\n",
       "t.yaml:6:40: spec.pods.selector.matchExpressions[0]: must have values with In and NotIn, "
       "and none with Exists and DoesNotExist"},
      {"  pods: {selector: {app: shop}}\n",
       "t.yaml:6:21: spec.pods.selector.app: unknown field; valid here: matchLabels, "
       "matchExpressions"},
      {"  pods: {containers: [A]}\n",
       "t.yaml:6:23: spec.pods.containers[0]: \"A\" must be lower-case letters, digits and -, "
       "beginning and ending with a letter or digit"},
      {"  kernel: {syscallBuffer: 4097}\n",
       "t.yaml:6:27: spec.kernel.syscallBuffer: \"4097\" is out of range, valid: 0 to 4096"},
      {"  kernel: {probes: [{name: a, symbol: f, offset: 1, at: both}]}\n",
       "t.yaml:6:50: spec.kernel.probes[0].offset: only a probe at entry can have an offset"},
      {"  kernel: {probes: [{name: a, symbol: f*}]}\n",
       "t.yaml:6:39: spec.kernel.probes[0].symbol: must be one symbol, without *"},
      {"  kernel: {userProbes: [{name: a, object: /p, function: f, usdt: 'a:b'}]}\n",
       "t.yaml:6:25: spec.kernel.userProbes[0]: must have exactly one of function, usdt"},
      {"  kernel: {userProbes: [{name: a, object: p, function: f}]}\n",
       "t.yaml:6:43: spec.kernel.userProbes[0].object: \"p\" must be the absolute path of a file"},
      {"  kernel: {userProbes: [{name: a, object: /a/../p, function: f}]}\n",
       "t.yaml:6:43: spec.kernel.userProbes[0].object: \"/a/../p\" must not have .. in it"},
      {"  kernel: {userProbes: [{name: a, object: /p, usdt: 'a'}]}\n",
       "t.yaml:6:53: spec.kernel.userProbes[0].usdt: \"a\" must be provider:name, of letters, "
       "digits "
       "and _"},
      {"  kernel: {userProbes: [{name: a, object: /p, usdt: 'a:b', at: both}]}\n",
       "t.yaml:6:53: spec.kernel.userProbes[0].usdt: must be without at, offset, args and returns: "
       "the program's file defines these"},
      {"  kernel: {userProbes: [{name: a, object: /p, function: f, offset: 1, at: both}]}\n",
       "t.yaml:6:68: spec.kernel.userProbes[0].offset: only a probe at entry can have an offset"},
      {"  paused: true\n  paused: false\n", "t.yaml:7:3: spec.paused: is given twice"},
  };
  for (const auto& [text, error] : cases)
    EXPECT_EQ(OnlyError(kRecording + std::string(text)), error);
}

TEST(Parse, ReportsMistakesInAnEvent) {
  const std::pair<std::string_view, std::string_view> cases[] = {
      {"      - name: \"p:*\"\n        nmae: x\n",
       "t.yaml:8:9: spec.user.events[0].nmae: unknown field, did you mean \"name\"?"},
      {"      - filter: a\n", "t.yaml:7:9: spec.user.events[0].name: missing, but required"},
      {"      - name:\n", "t.yaml:7:9: spec.user.events[0].name: missing, but required"},
      {"      - \"p:*\"\n", "t.yaml:7:9: spec.user.events[0]: must be a mapping, not \"p:*\""},
      {"      -\n", "t.yaml:7:8: spec.user.events[0]: must be a mapping, not nothing"},
      {"      - name: shop\n",
       "t.yaml:7:15: spec.user.events[0].name: \"shop\" matches no event: they are named "
       "provider:event, did you mean \"shop:*\"?"},
      {"      - {name: \"p:*\", logLevel: info}\n",
       "t.yaml:7:33: spec.user.events[0].logLevel: must be a mapping, not \"info\""},
      {"      - {name: \"p:*\", logLevel: {}}\n",
       "t.yaml:7:33: spec.user.events[0].logLevel: must have exactly one of exactly, atLeast, "
       "range"},
      {"      - {name: \"p:*\", logLevel: {atLeast: info, exactly: err}}\n",
       "t.yaml:7:33: spec.user.events[0].logLevel: must have exactly one of exactly, atLeast, "
       "range"},
      {"      - {name: \"p:*\", logLevel: {atLeast: warn}}\n",
       "t.yaml:7:43: spec.user.events[0].logLevel.atLeast: \"warn\" is not valid; valid here: "
       "emerg, alert, crit, err, warning, notice, info, debug_system, debug_program, "
       "debug_process, debug_module, debug_unit, ..."},
      {"      - {name: \"p:*\", logLevel: {range: {from: info}}}\n",
       "t.yaml:7:41: spec.user.events[0].logLevel.range.to: missing, but required"},
      {"      - {name: \"p:*\", exclude: [\"a b\"]}\n",
       "t.yaml:7:33: spec.user.events[0].exclude[0]: \"a b\" must not contain \" \""},
  };
  for (const auto& [text, error] : cases)
    EXPECT_EQ(OnlyError(std::string(kHead) + "  user:\n    events:\n" + std::string(text)), error);
}

TEST(Parse, ReportsMistakesInTheObject) {
  const std::pair<std::string_view, std::string_view> cases[] = {
      {"", "t.yaml: there is no Trace in it"},
      {"# only a comment\n", "t.yaml: there is no Trace in it"},
      {"hello\n", "t.yaml:1:1: must be a mapping, not \"hello\""},
      {"- a\n", "t.yaml:1:1: must be a mapping, not a list"},
      {"apiVersion: v1\nkind: Trace\nmetadata: {name: t}\nspec: {kernel: {syscalls: [{name: "
       "a}]}}\n",
       "t.yaml:1:13: apiVersion: \"v1\" is not supported here, use weft.dev/v1alpha1"},
      {"apiVersion: weft.dev/v1alpha1\nkind: Trase\nmetadata: {name: t}\nspec: {kernel: {syscalls: "
       "[{name: a}]}}\n",
       "t.yaml:2:7: kind: \"Trase\" is not supported here, use Trace"},
      {"apiVersion: weft.dev/v1alpha1\nmetadata: {name: t}\nspec: {kernel: {syscalls: [{name: "
       "a}]}}\n",
       "t.yaml:1:1: kind: missing, but required: Trace"},
      {"apiVersion: weft.dev/v1alpha1\nkind: Trace\nmetadata: {name: t}\n",
       "t.yaml:1:1: spec: missing, but required"},
      {"apiVersion: weft.dev/v1alpha1\nkind: Trace\nmetadata: {name: t}\nspec: {}\n",
       "t.yaml:4:7: spec: records nothing: give user.events, user.functions, kernel.tracepoints, "
       "kernel.syscalls, kernel.probes or kernel.userProbes"},
      {"apiVersion: weft.dev/v1alpha1\nkind: Trace\nmetadata: {name: Shop}\nspec: {kernel: "
       "{syscalls: [{name: a}]}}\n",
       "t.yaml:3:18: metadata.name: \"Shop\" must be lower-case letters, digits, - and ., each "
       "part "
       "beginning and ending with a letter or digit"},
      {"apiVersion: weft.dev/v1alpha1\nkind: Trace\nmetadata: {nmae: t}\nspec: {kernel: "
       "{syscalls: [{name: a}]}}\n",
       "t.yaml:3:12: metadata.nmae: unknown field, did you mean \"name\"?"},
      {"apiVersion: weft.dev/v1alpha1\nkind: Trace\nmetadata: {name: t, labels: {a b: c}}\nspec: "
       "{kernel: {syscalls: [{name: a}]}}\n",
       "t.yaml:3:30: metadata.labels[\"a b\"]: the key must be 1 to 63 letters, digits, -, _ and "
       "., "
       "beginning and ending with a letter or digit, with a DNS name and a / before them or not"},
  };
  for (const auto& [text, error] : cases) {
    const std::vector<std::string> errors = Errors(text);
    ASSERT_FALSE(errors.empty()) << text;
    EXPECT_EQ(errors[0], error);
  }
}

TEST(Parse, AnotherKindOfObjectIsSaidOnce) {
  EXPECT_THAT(Errors("apiVersion: apps/v1\nkind: Deployment\nmetadata: {name: X}\nspec: {a: 1}\n"),
              ElementsAre("t.yaml:1:13: apiVersion: \"apps/v1\" is not supported here, use "
                          "weft.dev/v1alpha1",
                          "t.yaml:2:7: kind: \"Deployment\" is not supported here, use Trace"));
}

TEST(Parse, ReportsAllMistakesAtOnce) {
  EXPECT_THAT(Errors("apiVersion: weft.dev/v1alpha1\nkind: Trace\nmetadata: {name: T}\nspec:\n"
                     "  usr: 1\n  buffer: {count: x, size: y}\n---\nkind: Trace\n"),
              ElementsAre(HasSubstr("3:18: metadata.name"), HasSubstr("5:3: spec.usr"),
                          HasSubstr("6:19: spec.buffer.count"), HasSubstr("6:28: spec.buffer.size"),
                          HasSubstr("8:1: apiVersion: missing"),
                          HasSubstr("8:1: metadata: missing"), HasSubstr("8:1: spec: missing")));
}

TEST(Parse, StopsCountingAtItsLimit) {
  std::string many = kRecording;
  for (int i = 0; i < 1000; ++i) many += "  x" + std::to_string(i) + ": 1\n";
  const std::vector<std::string> errors = Errors(many);
  EXPECT_EQ(errors.size(), limits::kDiagnostics);
  EXPECT_EQ(errors.back(), "t.yaml: there are more problems; the rest is not listed");
}

TEST(Parse, SyntaxErrors) {
  EXPECT_THAT(OnlyError("a: [1, 2\n"), HasSubstr("t.yaml:2:1: not YAML: "));
  EXPECT_THAT(OnlyError("a: b: c\n"), HasSubstr("t.yaml:1:5: not YAML: "));
  EXPECT_THAT(OnlyError("\ta: 1\n"), HasSubstr("t.yaml:1:3: not YAML: "));
  EXPECT_THAT(OnlyError("{\"a\": 1,\n \"b\": }\n"), HasSubstr("t.yaml:2:7: not JSON: "));
  EXPECT_THAT(OnlyError("{\"a\": \"x\x01\"}\n"), HasSubstr("t.yaml:1:9: not JSON: "));
  EXPECT_THAT(OnlyError("a: \"x\x04\"\n"), HasSubstr("t.yaml:1:6: a control character"));
  EXPECT_THAT(OnlyError("<<: {a: 1}\n"), HasSubstr("merge keys"));
  EXPECT_THAT(OnlyError("a: !!python/object x\n"), HasSubstr("the tag"));
  EXPECT_THAT(OnlyError("? [a]\n: b\n"), HasSubstr("a key must be a string"));
  EXPECT_THAT(OnlyError("a: *b\n"), HasSubstr("must be in quotes"));
  EXPECT_THAT(OnlyError("a: *\n"), HasSubstr("must be in quotes"));
  EXPECT_THAT(OnlyError("a: *:*\n"), HasSubstr("must be in quotes"));
  EXPECT_THAT(OnlyError("&a [*a]\n"), HasSubstr("refers to a value that contains it"));
}

TEST(Parse, JsonHasPlacesToo) {
  EXPECT_THAT(
      Errors("{\n \"apiVersion\": \"weft.dev/v1alpha1\", \"kind\": \"Trace\",\n"
             " \"metadata\": {\"name\": \"t\"},\n"
             " \"spec\": {\"user\": {\"events\": [{\"name\": \"p:*\", \"nmae\": 1}]},\n"
             "  \"buffer\": {\"count\" : 3, \"size\": \"4096.5\"}, \"context\": [\"a\\\"b\", "
             "null]}\n}"),
      ElementsAre("t.yaml:4:47: spec.user.events[0].nmae: unknown field, did you mean "
                  "\"name\"?",
                  "t.yaml:5:24: spec.buffer.count: 3 is not a power of two, use 2 or 4",
                  HasSubstr("t.yaml:5:35: spec.buffer.size: \"4096.5\""),
                  HasSubstr("t.yaml:5:58: spec.context[0]: \"a\\\"b\" unknown context"),
                  "t.yaml:5:66: spec.context[1]: must be a string, not nothing"));
}

TEST(Parse, FilterErrorsPointIntoTheFile) {
  ParseOptions options;
  options.check_filter = [](std::string_view filter) -> std::optional<FilterProblem> {
    const std::size_t at = filter.find('!');
    if (at == std::string_view::npos) return std::nullopt;
    return FilterProblem{at, "no ! here", "column 3", "a !b\n  ^\n"};
  };
  EXPECT_EQ(Errors(kRecording, options).size(), 0u);
  const std::pair<std::string_view, std::string_view> cases[] = {
      {"  filter: a !b\n", "t.yaml:6:13: spec.filter: no ! here"},
      {"  filter: \"a !b\"\n", "t.yaml:6:14: spec.filter: no ! here"},
      {"  filter: 'a !b'\n", "t.yaml:6:14: spec.filter: no ! here"},
      {"  filter: \"a\\t!b\"\n", "t.yaml:6:11: spec.filter: column 3: no ! here"},
      {"  filter: |\n    a\n    !b\n", "t.yaml:6:11: spec.filter: column 3: no ! here"},
  };
  for (const auto& [text, error] : cases)
    EXPECT_THAT(Errors(kRecording + std::string(text), options), ElementsAre(error));
  // An object of the API server: who reads the Trace's status has no file.
  const Traces nameless = ParseTraces("", kRecording + "  filter: a !b\n", options);
  ASSERT_FALSE(nameless.has_value());
  EXPECT_EQ(nameless.error()[0].message, "column 3: no ! here");
  EXPECT_EQ(nameless.error()[0].excerpt, "a !b\n  ^\n");
}

TEST(Parse, NewerFieldsOfAnApiServerCanBeLetPass) {
  const std::string text = kRecording + "  newField: {a: 1}\n";
  EXPECT_EQ(Errors(text).size(), 1u);
  EXPECT_EQ(Errors(text, {.refuse_unknown_fields = false}).size(), 0u);
}

TEST(Parse, HostileTextIsBounded) {
  std::string bomb = "a: &a [x, x, x, x, x, x, x, x, x, x]\n";
  for (char c = 'b'; c < 'j'; ++c) {
    const std::string previous = std::string("*") + static_cast<char>(c - 1);
    bomb += std::string(1, c) + ": &" + c + " [" + previous;
    for (int i = 1; i < 10; ++i) bomb += ", " + previous;
    bomb += "]\n";
  }
  EXPECT_THAT(OnlyError(bomb), HasSubstr("more than 100000 values"));
  std::string long_alias = "a: &a " + std::string(500'000, 'x') + "\nb: [";
  for (int i = 0; i < 10'000; ++i) long_alias += "*a, ";
  EXPECT_THAT(OnlyError(long_alias + "]\n"), HasSubstr("after its aliases are expanded"));
  EXPECT_THAT(OnlyError("a: " + std::string(40, '[') + std::string(40, ']')),
              HasSubstr("nested deeper than 32"));
  EXPECT_FALSE(Errors(std::string(100'000, '[')).empty());
  EXPECT_THAT(OnlyError("{\"a\":" + std::string(100'000, '[')), HasSubstr("nested deeper than 32"));
  std::string dashes;
  for (int i = 0; i < 1000; ++i) dashes += "- ";
  EXPECT_THAT(OnlyError(dashes), HasSubstr("nested deeper than 32"));
  EXPECT_THAT(OnlyError(std::string((1 << 20) + 1, ' ')), HasSubstr("larger than 1048576 bytes"));
  std::string documents;
  for (int i = 0; i < 100; ++i) documents += "--- a\n";
  EXPECT_THAT(OnlyError(documents), HasSubstr("more than 64 documents"));
  EXPECT_THAT(OnlyError(std::string(300'000, '\n') + std::string("a: \0b\n", 6)),
              HasSubstr("300001:4: a control character"));
}

TEST(Load, FilesAndTheirAbsence) {
  const std::string path = testing::TempDir() + "weft_api_parse_test.yaml";
  std::ofstream(path) << kRecording;
  const Traces good = LoadTraces(path);
  ASSERT_TRUE(good.has_value()) << ToString(good.error());
  EXPECT_EQ(good->size(), 1u);
  std::remove(path.c_str());
  const Traces missing = LoadTraces(path);
  ASSERT_FALSE(missing.has_value());
  EXPECT_EQ(ToString(missing.error()), path + ": No such file or directory\n");
  const Traces folder = LoadTraces(testing::TempDir());
  ASSERT_FALSE(folder.has_value());
  EXPECT_THAT(ToString(folder.error()), HasSubstr("Is a directory"));
}

TEST(Validate, ChecksTracesBuiltByAProgram) {
  Trace trace = Good(kFull);
  EXPECT_EQ(ToString(Validate(trace)), "");
  trace.spec.user.events[0].name = "x";
  trace.spec.buffer.count = 3;
  trace.metadata.name = "";
  const Diagnostics diagnostics = Validate(trace);
  ASSERT_EQ(diagnostics.size(), 3u) << ToString(diagnostics);
  EXPECT_EQ(diagnostics[0].ToString(), "metadata.name: \"\" must not be empty");
  EXPECT_EQ(diagnostics[1].path, "spec.user.events[0].name");
  EXPECT_EQ(diagnostics[2].path, "spec.buffer.count");
}

}  // namespace
}  // namespace weft::api
