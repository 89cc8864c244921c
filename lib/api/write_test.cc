// SPDX-License-Identifier: Apache-2.0
// Writing Traces: everything that is written is read back as it was, and the files made from the
// schema are those in the repository.
#include "lib/api/write.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <random>
#include <set>
#include <string>

#include "lib/abi/context.h"
#include "lib/abi/ring.h"
#include "lib/api/crd.h"
#include "lib/api/document.h"
#include "lib/api/parse.h"
#include "lib/api/session_schema.h"
#include "lib/api/testing.h"
#include "lib/api/trace_schema.h"

namespace weft::api {
namespace {

using testing::HasSubstr;

Trace Minimal() {
  Trace trace;
  trace.metadata.name = "t";
  trace.spec.user.events = {{.name = "p:*"}};
  return trace;
}

void ExpectRoundTrip(const Trace& trace) {
  for (const std::string& text : {ToYaml(trace), ToJson(trace), ToJson(trace, 2)}) {
    const Traces again = ParseTraces("t", text);
    ASSERT_TRUE(again.has_value()) << ToString(again.error()) << text;
    ASSERT_EQ(again->size(), 1u);
    EXPECT_EQ(again->front(), trace) << text;
  }
}

TEST(Write, LeavesDefaultsOut) {
  EXPECT_EQ(ToYaml(Minimal()),
            "apiVersion: weft.dev/v1alpha1\nkind: Trace\nmetadata:\n  name: t\nspec:\n  user:\n"
            "    events:\n      - name: \"p:*\"\n");
  EXPECT_EQ(ToJson(Minimal()),
            R"({"apiVersion":"weft.dev/v1alpha1","kind":"Trace","metadata":{"name":"t"},)"
            R"("spec":{"user":{"events":[{"name":"p:*"}]}}})");
}

TEST(Write, SeveralDocuments) {
  Trace second = Minimal();
  second.metadata.name = "u";
  const Traces again = ParseTraces("t", ToYaml(std::vector<Trace>{Minimal(), second}));
  ASSERT_TRUE(again.has_value()) << ToString(again.error());
  EXPECT_EQ(again->size(), 2u);
}

TEST(Write, TheStatusAlone) {
  TraceStatus status;
  status.phase = Phase::kRecording;
  status.events.recorded = 5;
  EXPECT_EQ(StatusToJson(status),
            R"({"status":{"phase":"Recording","pods":{"matched":0,"traced":0},)"
            R"("events":{"recorded":5,"delivered":0,"discarded":0,)"
            R"("overwritten":0,"lost":0,"missing":0}}})");
}

TEST(RoundTrip, StringsThatYamlWouldTakeForSomethingElse) {
  for (const std::string_view text :
       {"yes", "no",  "on",   "y",    "null", "~",      "1",      "0x1",   "1e3",        ".5",
        "-",   "- a", "a: b", "a #b", "#",    "'",      "\"",     "\\",    "{a}",        "[a]",
        "&a",  "*a",  "!a",   "%a",   "@a",   "`a",     "|",      ">",     "a\nb",       "a\n",
        "\na", " a",  "a ",   "\ta",  "ä€😀", "\u2028", "\ufeff", "a\\nb", "2026-01-02", "=",
        "<<",  "?",   "? a",  ":",    "::",   "---",    "...",    "true ", "\u0085"}) {
    Trace trace = Minimal();
    trace.metadata.annotations["note"] = text;
    ExpectRoundTrip(trace);
  }
}

TEST(RoundTrip, Examples) {
  const std::string folder = std::string(WEFT_SOURCE_DIR) + "/deploy/examples/traces";
  int files = 0;
  for (const auto& entry : std::filesystem::directory_iterator(folder)) {
    const Traces traces = LoadTraces(entry.path());
    ASSERT_TRUE(traces.has_value()) << ToString(traces.error());
    for (const Trace& trace : *traces) ExpectRoundTrip(trace);
    ++files;
  }
  EXPECT_GE(files, 7);
}

// Any Trace that the types can hold and the limits allow.
class Generator {
 public:
  explicit Generator(std::uint64_t seed) : random_(seed) {}

  Trace Make() {
    Trace t;
    t.metadata.name = "t" + std::to_string(Below(1000));
    if (Coin()) t.metadata.name_space = "ns";
    if (Coin()) t.metadata.labels["app"] = Pick({"a", "", "1", "true"});
    if (Coin()) t.metadata.annotations["x/y"] = Text();
    if (Coin()) t.spec.pods.selector.match_labels["k"] = Pick({"v", "yes", ""});
    for (int i = Below(3); i > 0; --i)
      t.spec.pods.selector.match_expressions.push_back(Requirement());
    if (Coin()) t.spec.pods.containers = {"a", "b"};
    t.spec.user.events.push_back(Event());
    for (int i = Below(3); i > 0; --i) t.spec.user.events.push_back(Event());
    for (int i = Below(3); i > 0; --i) t.spec.user.functions.push_back(Function());
    t.spec.user.attach = Below(2) == 1;
    for (int i = Below(3); i > 0; --i) t.spec.kernel.tracepoints.push_back(Kernel());
    for (int i = Below(3); i > 0; --i) t.spec.kernel.syscalls.push_back(Kernel());
    if (Coin()) t.spec.kernel.syscall_buffer = 4096;
    for (int i = Below(3); i > 0; --i) t.spec.kernel.probes.push_back(Probe());
    for (int i = Below(3); i > 0; --i) t.spec.kernel.user_probes.push_back(UserProbe());
    t.spec.filter = Filter();
    if (Coin()) t.spec.context = {"vpid", "ip"};
    if (t.spec.user.functions.empty() && Coin()) t.spec.context.emplace_back("$app.a:b");
    if (t.spec.RecordsKernel() && Coin()) {
      t.spec.user = {};
      t.spec.context = {"prio"};
      t.spec.trackers = {.vgid = {0, 7}, .pid = {1}, .uid = {2}, .gid = {3, 4}};
    }
    for (int i = Below(4); i > 0; --i)
      t.spec.trackers.vpid.push_back(static_cast<unsigned>(i * 1000));
    for (int i = Below(4); i > 0; --i) t.spec.trackers.vuid.push_back(static_cast<unsigned>(i - 1));
    t.spec.buffer.size = std::uint64_t{4096} << Below(12);
    t.spec.buffer.count = 2u << Below(5);
    t.spec.buffer.mode = Coin() ? BufferMode::kOverwrite : BufferMode::kDiscard;
    if (t.spec.buffer.mode == BufferMode::kOverwrite && Coin())
      t.spec.output.mode = OutputMode::kSnapshot;
    if (Coin())
      t.spec.storage.max_size = limits::kMinStorageBytes + (random_() >> (20 + Below(30)));
    if (Coin()) t.spec.storage.max_age = std::chrono::hours(1 + Below(50));
    if (Coin())
      t.spec.duration =
          limits::kMinDuration + std::chrono::nanoseconds(random_() >> (12 + Below(30)));
    t.spec.paused = Coin();
    if (Coin()) t.status = Status();
    return t;
  }

 private:
  int Below(int n) { return static_cast<int>(random_() % static_cast<unsigned>(n)); }
  bool Coin() { return Below(2) == 0; }
  std::string Pick(std::initializer_list<std::string_view> from) {
    return std::string(from.begin()[Below(static_cast<int>(from.size()))]);
  }
  std::string Text() {
    std::string out;
    for (int i = Below(12); i > 0; --i)
      out += Pick({"a", " ", ":", "\n", "\"", "'", "#", "-", "\\", "ä", "\t", "{", "1", "%"});
    return out;
  }
  std::string Filter() { return Coin() ? "" : "a" + Text(); }
  LabelRequirement Requirement() {
    LabelRequirement r{.key = Pick({"a", "x.y/z"})};
    r.op = static_cast<SelectorOperator>(Below(4));
    if (r.op == SelectorOperator::kIn || r.op == SelectorOperator::kNotIn)
      r.values = {"a", "2", ""};
    return r;
  }
  EventRule Event() {
    EventRule e{.name = Pick({"*", "p:*", "a:b", "on:off"})};
    if (Coin()) e.exclude = {"a:*", "*x"};
    const auto level = [&] { return static_cast<LogLevel>(Below(15)); };
    switch (Below(4)) {
      case 0:
        e.log_level.exactly = level();
        break;
      case 1:
        e.log_level.at_least = level();
        break;
      case 2:
        e.log_level.range = LogLevelRange{level(), level()};
        break;
      default:
        break;
    }
    e.filter = Filter();
    return e;
  }
  FunctionRule Function() {
    FunctionRule f{.name = Pick({"f", "ns::f(int, char const*)", "*"})};
    if (Coin()) f.object = "lib*.so";
    for (int i = Below(3); i > 0; --i)
      f.args.push_back({"a" + std::to_string(i), static_cast<ValueType>(Below(12))});
    if (Coin()) f.returns = static_cast<ValueType>(Below(12));
    if (Below(4) == 0) f = {.object = f.object, .set = static_cast<FunctionSet>(Below(5))};
    return f;
  }
  KernelRule Kernel() { return {.name = Pick({"sched_*", "openat", "1"}), .filter = Filter()}; }
  ProbeRule Probe() {
    ProbeRule p{.name = "n", .symbol = Pick({"vfs_read", "a.b.c"})};
    p.at = static_cast<ProbePoint>(Below(3));
    if (p.at == ProbePoint::kEntry) p.offset = static_cast<unsigned>(Below(100));
    return p;
  }
  UserProbeRule UserProbe() {
    UserProbeRule p{.name = "n", .object = Pick({"/p", "/a b/c"})};
    if (Coin()) {
      p.usdt = "a:b";
    } else {
      p.function = Pick({"f", "main.(*T).f", "yes"});
      p.at = static_cast<ProbePoint>(Below(3));
      if (Coin()) p.args = {{"a", ValueType::kString}};
      if (Coin()) p.returns = ValueType::kInt8;
    }
    p.filter = Filter();
    return p;
  }
  TraceStatus Status() {
    TraceStatus s;
    s.phase = static_cast<Phase>(Below(6));
    s.observed_generation = Below(10);
    const std::string time = "2026-01-02T03:04:05Z";
    if (Coin()) s.conditions = {{"Ready", ConditionStatus::kTrue, 1, time, "Started", Text()}};
    if (Coin()) s.relay = "weft-relay-0";
    if (Coin()) s.folder = "shop/t/7e0d3c6e-6a1a-4d31-8f5c-2d3a5b7c9e10";
    if (Coin()) s.start_time = time;
    s.pods.matched = Below(100);
    if (Coin()) s.pods.skipped = {{"StaticBinary", "no libc", 2, {"a", "b"}}};
    s.events.recorded = static_cast<std::int64_t>(random_() >> 1);
    if (Coin()) s.events.reasons = {{"ring", "full", 3}};
    if (Coin()) s.removed_sessions = {s.events, {"7e0d3c6e-6a1a-4d31-8f5c-2d3a5b7c9e10"}};
    if (Coin()) s.segments = {{"r", time, ""}, {"q", time, time}};
    return s;
  }

  std::mt19937_64 random_;
};

TEST(RoundTrip, AnyTrace) {
  Generator generator(7);
  for (int i = 0; i < 2000; ++i) {
    const Trace trace = generator.Make();
    ASSERT_EQ(ToString(Validate(trace)), "") << ToYaml(trace);
    ASSERT_NO_FATAL_FAILURE(ExpectRoundTrip(trace));
    if (HasFailure()) return;
  }
}

TEST(Generated, CrdIsTheCommittedOne) {
  ExpectCommitted("charts/weft/definitions/trace.yaml", TraceCrdYaml());
  ExpectCommitted("charts/weft/definitions/clustertrace.yaml", ClusterTraceCrdYaml());
}

TEST(Generated, ReferenceIsTheCommittedOne) {
  ExpectCommittedReference("docs/formats/trace.md", TraceReference());
  ExpectCommittedReference("docs/formats/clustertrace.md", ClusterTraceReference());
}

TEST(Reference, NamesEveryContextAndEveryReasonToDiscard) {
  const std::string contexts = ReadSource("docs/formats/trace.md");
  std::uint32_t count = 0;
  const weft_context_info* table = weft_context_table(&count);
  for (std::uint32_t i = 0; i < count; ++i) {
    if ((table[i].domains & WEFT_CONTEXT_UNLISTED) != 0) continue;
    // Behind the name of perf:thread: and the like stands another one.
    const std::string name = table[i].name;
    const bool has_more = name.ends_with(':') || name.ends_with('.');
    EXPECT_THAT(contexts, HasSubstr("`" + name + (has_more ? "" : "`")));
  }
  const std::string reasons = ReadSource("docs/operations.md");
  for (std::uint32_t i = 0; i < WEFT_DISCARD_REASONS; ++i)
    EXPECT_THAT(reasons, HasSubstr(std::string("| discarded, ") + weft_discard_name(i)));
}

TEST(Generated, TheReferencesExampleIsValid) {
  const std::string page = ReadSource("docs/formats/trace.md");
  const std::size_t begin = page.find("```yaml\n") + 8;
  const Traces traces =
      ParseTraces("trace.md", page.substr(begin, page.find("```\n", begin) - begin));
  EXPECT_TRUE(traces.has_value()) << ToString(traces.error());
}

TEST(ClusterTrace, IsReadAndRefused) {
  const auto refusal = [](const std::string& text) {
    const Traces traces = ParseClusterTraces("file", text);
    return traces ? "" : ToString(traces.error());
  };
  const std::string good = ReadSource("deploy/examples/clustertraces/slow-disk.yaml");
  const Traces read = ParseClusterTraces("file", good);
  ASSERT_TRUE(read.has_value()) << ToString(read.error());
  EXPECT_EQ(read->at(0).spec.nodes.selector.match_labels.at("kubernetes.io/hostname"), "node-7");
  EXPECT_NE(ReadSource("docs/formats/clustertrace.md").find(good.substr(good.find("spec:"))),
            std::string::npos)
      << "the reference shows another one";

  const std::string head =
      "apiVersion: weft.dev/v1alpha1\nkind: ClusterTrace\nmetadata: {name: t}\n";
  EXPECT_THAT(refusal(head + "spec: {nodes: {}}\n"), HasSubstr("records nothing"));
  EXPECT_THAT(refusal(head + "spec: {user: {events: [{name: \"a:*\"}]}}\n"), HasSubstr("user"));
  EXPECT_THAT(refusal(head + "spec: {pods: {}, kernel: {tracepoints: [{name: a}]}}\n"),
              HasSubstr("pods"));
  EXPECT_THAT(refusal(ReadSource("deploy/examples/traces/kernel.yaml")), HasSubstr("ClusterTrace"));
  EXPECT_FALSE(ParseTraces("file", good).has_value());
}

// Expects a structural schema, as the API server wants it: a type for everything, no unknown
// fields.
void ExpectStructural(const Value& schema, const std::string& path) {
  static const std::set<std::string> kAllowed = {"description",
                                                 "type",
                                                 "format",
                                                 "enum",
                                                 "pattern",
                                                 "default",
                                                 "required",
                                                 "properties",
                                                 "additionalProperties",
                                                 "items",
                                                 "minLength",
                                                 "maxLength",
                                                 "minimum",
                                                 "maximum",
                                                 "maxItems",
                                                 "maxProperties",
                                                 "x-kubernetes-int-or-string",
                                                 "x-kubernetes-list-type",
                                                 "x-kubernetes-list-map-keys",
                                                 "x-kubernetes-validations"};
  for (const Entry& entry : schema.map)
    EXPECT_TRUE(kAllowed.contains(entry.key)) << path << entry.key;
  if (schema.Find("x-kubernetes-int-or-string") != nullptr) return;
  ASSERT_NE(schema.Find("type"), nullptr) << path;
  const std::string& type = schema.Find("type")->text;
  if (type == "object" && schema.Find("properties") != nullptr) {
    for (const Entry& field : schema.Find("properties")->map)
      ExpectStructural(field.value, path + "." + field.key);
  } else if (type == "object") {
    ASSERT_NE(schema.Find("additionalProperties"), nullptr) << path;
    EXPECT_NE(schema.Find("maxProperties"), nullptr) << path;
    ExpectStructural(*schema.Find("additionalProperties"), path + "[]");
  } else if (type == "array") {
    ASSERT_NE(schema.Find("maxItems"), nullptr) << path;
    ExpectStructural(*schema.Find("items"), path + "[]");
  } else if (type == "string") {
    const Value* const max = schema.Find("maxLength");
    EXPECT_TRUE(max != nullptr || schema.Find("enum") != nullptr) << path;
    EXPECT_FALSE(max != nullptr && max->text == "0") << path << ": no text is allowed";
  }
}

TEST(Crd, IsStructuralAndBounded) {
  ExpectStructural(SpecSchema()->OpenApi(), "spec");
  ExpectStructural(ClusterSpecSchema()->OpenApi(), "clustertrace.spec");
  ExpectStructural(StatusSchema()->OpenApi(), "status");
  ExpectStructural(SessionSpecSchema()->OpenApi(), "session.spec");
  ExpectStructural(SessionStatusSchema()->OpenApi(), "session.status");
}

// Every field that the reference lists has words, and every default in the CRD is the code's.
void ExpectDocumented(const SchemaNode& node, const std::string& path) {
  for (const FieldInfo& field : node.Fields()) {
    if (field.hidden) continue;
    const std::string here = path + "." + std::string(field.name);
    EXPECT_GE(field.doc.size(), 8u) << here;
    EXPECT_TRUE(field.doc.ends_with('.')) << here;
    ExpectDocumented(*field.type, here);
  }
}

TEST(Schema, EveryFieldIsDocumented) {
  ExpectDocumented(*SpecSchema(), "spec");
  ExpectDocumented(*ClusterSpecSchema(), "clustertrace.spec");
  ExpectDocumented(*StatusSchema(), "status");
  ExpectDocumented(*SessionSpecSchema(), "session.spec");
  ExpectDocumented(*SessionStatusSchema(), "session.status");
}

TEST(Crd, HasItsColumns) {
  const Documents crd = ReadYaml(TraceCrdYaml());
  ASSERT_TRUE(crd.has_value());
  const Value& version = crd->front().Find("spec")->Find("versions")->list.at(0);
  std::string columns;
  for (const Value& column : version.Find("additionalPrinterColumns")->list)
    columns += column.Find("name")->text + " ";
  EXPECT_EQ(columns, "Phase Pods Events Lost Relay Age ");
  EXPECT_NE(version.Find("subresources")->Find("status"), nullptr);
  EXPECT_EQ(crd->front().Find("spec")->Find("scope")->text, "Namespaced");
}

}  // namespace
}  // namespace weft::api
