// SPDX-License-Identifier: Apache-2.0
// Sessions of a cluster: from a TraceSession to channels, and what a newer version of it changes.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "lib/abi/context.h"
#include "node-agent/agent/session/session.h"

namespace weft::agent {
namespace {

using testing::HasSubstr;

api::TraceSession Order() {
  api::TraceSession order;
  order.metadata = {.name = "t-1", .name_space = "shop", .uid = "u"};
  order.spec.node_name = "n1";
  order.spec.trace_name = "t";
  order.spec.relay = {
      .name = "weft-relay-0", .control = "relay.svc:4460", .data = "relay.svc:4461"};
  order.spec.record.user.events = {{.name = "shop:*"}};
  return order;
}

Session FromOrder(const api::TraceSession& order) {
  auto session = Session::FromOrder(order);
  EXPECT_TRUE(session) << session.error().message;
  return std::move(*session);
}

std::string Refusal(const api::TraceSession& order) {
  const auto session = Session::FromOrder(order);
  return session ? "" : session.error().message;
}

constexpr const char* kTraceUid = "7e0d3c6e-6a1a-4d31-8f5c-2d3a5b7c9e10";
const Session::Container kMain = {"pod/main", "shop", "shop-0", "pod", "main"};

TEST(Order, LeavesOutContextsThatRevealTheNode) {
  api::TraceSession order = Order();
  order.spec.record.user.events.clear();
  order.spec.record.kernel.syscalls = {{.name = "openat"}};
  order.spec.record.context = {"callstack-kernel", "vpid", "perf:cpu:cycles", "callstack-user"};
  order.spec.record.trackers.vuid = {0};
  Session session = FromOrder(order);
  const SessionChannel& channel = session.AddKernelChannel({});
  std::vector<uint16_t> ids;
  for (const control::ContextSpec& context : channel.spec.contexts) ids.push_back(context.id);
  EXPECT_THAT(ids, testing::ElementsAre(WEFT_CONTEXT_VPID, WEFT_CONTEXT_CALLSTACK_USER));
  EXPECT_THAT(session.kernel_notices,
              testing::ElementsAre(HasSubstr("\"callstack-kernel\": tells of the whole node"),
                                   HasSubstr("\"perf:cpu:cycles\"")));
  EXPECT_EQ(channel.trackers, (kernel::Trackers{{WEFT_KERNEL_TRACK_VUID, {0}}}));
}

// One of the node's numbers may be another tenant's (a parent's): the container's own are named
// instead.
TEST(Order, ANamespaceHasNoNumbersOfTheNode) {
  api::TraceSession order = Order();
  order.spec.record.user.events.clear();
  order.spec.record.kernel.syscalls = {{.name = "openat"}};
  order.spec.record.context = {"pid", "ppid", "tid",  "uid",   "euid", "suid",
                               "gid", "egid", "sgid", "vppid", "vsgid"};
  Session session = FromOrder(order);
  const SessionChannel& channel = session.AddKernelChannel({});
  ASSERT_EQ(channel.spec.contexts.size(), 2u);
  EXPECT_EQ(channel.spec.contexts[0].id, WEFT_CONTEXT_VPPID);
  ASSERT_EQ(session.kernel_notices.size(), 9u);
  EXPECT_EQ(session.kernel_notices[1],
            "context \"ppid\": is a number of the node: not recorded for a namespace, which has "
            "\"vppid\"");
  order.spec.cluster_wide = true;
  Session wide = FromOrder(order);
  EXPECT_EQ(wide.AddKernelChannel({}).spec.contexts.size(), 11u);
  EXPECT_THAT(wide.kernel_notices, testing::IsEmpty());
}

TEST(Order, TrackersByNumbersOfTheNodeAreForClustersOnly) {
  api::TraceSession order = Order();
  order.spec.record.user.events.clear();
  order.spec.record.kernel.syscalls = {{.name = "openat"}};
  order.spec.record.trackers = {
      .vpid = {7}, .vuid = {}, .vgid = {8, 9}, .pid = {}, .uid = {}, .gid = {}};
  EXPECT_EQ(FromOrder(order).AddKernelChannel({}).trackers,
            (kernel::Trackers{{WEFT_KERNEL_TRACK_VPID, {7}}, {WEFT_KERNEL_TRACK_VGID, {8, 9}}}));
  order.spec.record.trackers.uid = {0};
  EXPECT_EQ(Refusal(order), "spec.trackers.uid: is a number of the node: a namespace has \"vuid\"");
  order.spec.record.trackers.pid = {1};
  order.spec.record.trackers.gid = {2};
  order.spec.cluster_wide = true;
  EXPECT_EQ(FromOrder(order).AddKernelChannel({}).trackers.size(), 5u);
}

TEST(Order, AChannelNamesItsPodAndTrace) {
  api::TraceSession order = Order();
  order.spec.trace_uid = kTraceUid;
  Session session = FromOrder(order);
  EXPECT_TRUE(session.channels.empty());
  const SessionChannel& channel = session.AddChannel(kMain);
  EXPECT_EQ(channel.container, "pod/main");
  EXPECT_EQ(channel.consumer, "shop");
  EXPECT_EQ(channel.phase, ChannelPhase::kDefined);
  const ipc::ChannelDefinition& definition = channel.definition;
  EXPECT_EQ(definition.node, "n1");
  EXPECT_EQ(definition.kubernetes_namespace, "shop");
  EXPECT_EQ(definition.trace_uid, kTraceUid);
  EXPECT_EQ(definition.pod, "shop-0");
  EXPECT_EQ(definition.pod_uid, "pod");
  EXPECT_EQ(definition.container, "main");
  EXPECT_EQ(definition.relay.host, "relay.svc");
  EXPECT_EQ(definition.relay.control_port, 4460);
  EXPECT_EQ(definition.relay.data_port, 4461);
  EXPECT_EQ(definition.id, channel.spec.id);
  const uint64_t id = definition.id;
  const Uuid uuid = definition.trace_uuid;
  const SessionChannel& other = session.AddChannel({"pod/b", "shop", "shop-0", "pod", "b"});
  EXPECT_NE(other.definition.id, id);
  EXPECT_NE(other.definition.trace_uuid, uuid);
  EXPECT_EQ(session.AddKernelChannel({}).definition.trace_uid, kTraceUid);
}

TEST(Order, ARelayIsAHostWithTwoPorts) {
  api::TraceSession order = Order();
  order.spec.relay.control = "[fd00::1]:4460";
  order.spec.relay.data = "[fd00::1]:4461";
  EXPECT_EQ(FromOrder(order).relay.host, "fd00::1");
  order.spec.relay.data = "[fd00::2]:4461";
  EXPECT_THAT(Refusal(order), HasSubstr("different hosts"));
  for (const char* wrong : {"", "host", ":1", "host:", "host:0", "host:65536", "host:1x"}) {
    order.spec.relay.control = wrong;
    EXPECT_THAT(Refusal(order), HasSubstr("not host:port")) << wrong;
  }
}

TEST(Order, RefusesWithTheReasonWhatCannotBeRecorded) {
  api::TraceSession order = Order();
  order.spec.record.user.events[0].filter = "a ==";
  EXPECT_THAT(Refusal(order), HasSubstr("filter"));
}

TEST(Order, ANewerVersionChangesTheChannelsThatAreThere) {
  Session session = FromOrder(Order());
  const uint64_t id = session.AddChannel(kMain).definition.id;
  session.channels[0].phase = ChannelPhase::kOn;
  EXPECT_EQ(session.Published("pod/main").size(), 1u);
  EXPECT_TRUE(session.Published("pod/other").empty());

  api::TraceSession newer = Order();
  newer.spec.record.paused = true;
  EXPECT_TRUE(session.Change(FromOrder(newer)));
  EXPECT_TRUE(session.Published("pod/main").empty());
  newer.spec.record.paused = false;
  newer.spec.record.user.events = {{.name = "a:*"}, {.name = "b:*"}};
  EXPECT_TRUE(session.Change(FromOrder(newer)));
  const auto published = session.Published("pod/main");
  ASSERT_EQ(published.size(), 1u);
  EXPECT_EQ(published[0].id, id);
  EXPECT_EQ(published[0].rules.size(), 2u);
}

TEST(Order, AnotherLayoutOrRelayNeedsNewChannels) {
  const auto fits = [](const std::function<void(api::SessionSpec&)>& change) {
    Session session = FromOrder(Order());
    api::TraceSession newer = Order();
    change(newer.spec);
    return session.Change(FromOrder(newer));
  };
  EXPECT_TRUE(fits([](api::SessionSpec& spec) { spec.deadline = "2026-11-21T10:00:00Z"; }));
  EXPECT_FALSE(fits([](api::SessionSpec& spec) { spec.record.buffer.count = 8; }));
  EXPECT_FALSE(
      fits([](api::SessionSpec& spec) { spec.record.buffer.mode = api::BufferMode::kOverwrite; }));
  EXPECT_FALSE(fits([](api::SessionSpec& spec) {
    spec.relay.control = "other:4460";
    spec.relay.data = "other:4461";
  }));
}

// Its events are the running kernel's business; all else is not.
TEST(Order, TheKernelsPartNeedsNoUserPart) {
  api::TraceSession order = Order();
  order.spec.record.user.events.clear();
  EXPECT_THAT(Refusal(order), HasSubstr("records nothing"));
  order.spec.record.kernel.syscalls = {{.name = "openat"}};
  order.spec.record.context = {"vtid", "ip"};
  Session session = FromOrder(order);
  EXPECT_TRUE(session.channels.empty());
  EXPECT_EQ(session.KernelChannel(), nullptr);
  ASSERT_EQ(session.kernel_notices.size(), 1u);
  EXPECT_THAT(session.kernel_notices[0], HasSubstr("\"ip\""));
  EXPECT_TRUE(session.notices.empty());
}

// Here the channel is one of the kernel that was saved and comes back.
TEST(Order, AKernelChannelEndsWithItsEvents) {
  api::TraceSession order = Order();
  order.spec.record.kernel.syscalls = {{.name = "openat"}};
  Session session = FromOrder(order);
  SessionChannel& channel = session.AddChannel(kMain);
  channel.definition.domain = ipc::kKernelDomain;
  channel.container = kKernelKey;
  channel.phase = ChannelPhase::kOn;
  const uint64_t id = channel.definition.id;
  EXPECT_TRUE(session.Published(kKernelKey).empty()) << "no container's control area has it";
  order.spec.record.paused = true;
  EXPECT_TRUE(session.Change(FromOrder(order)));
  EXPECT_TRUE(session.KernelChannel()->paused);
  order.spec.record.user.events = {{.name = "other:*"}};
  EXPECT_TRUE(session.Change(FromOrder(order)));
  EXPECT_NE(session.KernelChannel(), nullptr) << "the user's events are not its own";
  order.spec.record.kernel.syscalls = {{.name = "close"}};
  EXPECT_TRUE(session.Change(FromOrder(order))) << "the user's channels go on";
  EXPECT_EQ(session.KernelChannel(), nullptr);
  EXPECT_TRUE(session.Find(id)->outdated);
}

// A field that is added to the spec does not compile here until it is sorted into one of the lists.
TEST(Order, EachFieldOfTheKernelPartEndsItsChannel) {
  const auto goes_on = [](const std::function<void(api::TraceSpec&)>& change) {
    api::TraceSession order = Order();
    order.spec.cluster_wide = true;
    order.spec.record.kernel.syscalls = {{.name = "openat"}};
    Session session = FromOrder(order);
    session.AddKernelChannel({});
    change(order.spec.record);
    (void)session.Change(FromOrder(order));
    return session.KernelChannel() != nullptr;
  };
  api::TraceSpec spec;
  [[maybe_unused]] auto& [nodes, pods, user, kernel, filter, context, trackers, buffer, output,
                          storage, duration, paused] = spec;
  EXPECT_TRUE(goes_on([](auto&) {}));
  EXPECT_TRUE(goes_on([](auto& s) { s.nodes.selector.match_labels = {{"a", "b"}}; }));
  EXPECT_TRUE(goes_on([](auto& s) { s.pods.containers = {"main"}; }));
  EXPECT_TRUE(goes_on([](auto& s) { s.user.events = {{.name = "other:*"}}; }));
  EXPECT_TRUE(goes_on([](auto& s) { s.duration = std::chrono::seconds(1); }));
  EXPECT_TRUE(goes_on([](auto& s) { s.storage.max_size = 1 << 30; }));
  EXPECT_TRUE(goes_on([](auto& s) { s.paused = true; }));
  EXPECT_TRUE(goes_on([](auto& s) { s.kernel.statedump_request = "2"; }));

  EXPECT_FALSE(goes_on([](auto& s) { s.filter = "a == 1"; }));
  EXPECT_FALSE(goes_on([](auto& s) { s.context = {"vtid"}; }));
  EXPECT_FALSE(goes_on([](auto& s) { s.trackers.vpid = {1}; }));
  EXPECT_FALSE(goes_on([](auto& s) { s.buffer.count = 8; }));
  EXPECT_FALSE(goes_on([](auto& s) { s.output.mode = api::OutputMode::kSnapshot; }));

  [[maybe_unused]] auto& [tracepoints, syscalls, syscall_buffer, probes, statedump,
                          statedump_request, user_probes] = spec.kernel;
  EXPECT_FALSE(goes_on([](auto& s) { s.kernel.tracepoints = {{.name = "sched_switch"}}; }));
  EXPECT_FALSE(goes_on([](auto& s) { s.kernel.syscalls = {{.name = "close"}}; }));
  EXPECT_FALSE(goes_on([](auto& s) { s.kernel.syscall_buffer = 64; }));
  EXPECT_FALSE(goes_on([](auto& s) { s.kernel.probes = {{.name = "p", .symbol = "do_exit"}}; }));
  EXPECT_FALSE(goes_on([](auto& s) { s.kernel.statedump = false; }));
  EXPECT_FALSE(goes_on([](auto& s) {
    s.kernel.user_probes = {{.name = "u", .object = "/bin/sh", .function = "main"}};
  }));
}

TEST(Order, RulesAloneChangeNoLayout) {
  const auto fits = [](const std::function<void(api::TraceSpec&)>& change) {
    Session session = FromOrder(Order());
    api::TraceSession newer = Order();
    change(newer.spec.record);
    return session.Change(FromOrder(newer));
  };
  EXPECT_TRUE(fits([](auto& s) { s.user.events = {{.name = "other:*"}}; }));
  EXPECT_TRUE(fits([](auto& s) { s.filter = "a == 1"; }));
  EXPECT_TRUE(fits([](auto& s) { s.trackers.vpid = {1}; }));
  EXPECT_FALSE(fits([](auto& s) { s.context = {"vtid"}; }));
  EXPECT_FALSE(fits([](auto& s) { s.buffer.size *= 2; }));
}

TEST(Order, DrainedChannelsLeaveTheirCounts) {
  Session session = FromOrder(Order());
  SessionChannel& channel = session.AddChannel(kMain);
  channel.reported.recorded = 7;
  channel.reported.discarded["full"] = 2;
  channel.own.lost["agent/late_ring"] = 1;
  session.RetireDrained();
  EXPECT_EQ(session.channels.size(), 1u);
  session.channels[0].phase = ChannelPhase::kDrained;
  session.RetireDrained();
  EXPECT_TRUE(session.channels.empty());
  EXPECT_EQ(session.retired_ids.size(), 1u);
  session.AddChannel(kMain).reported.recorded = 3;
  const ipc::ChannelCounts counts = session.Counts();
  EXPECT_EQ(counts.recorded, 10u);
  EXPECT_EQ(counts.discarded.at("full"), 2u);
  EXPECT_EQ(counts.lost.at("agent/late_ring"), 1u);
}

TEST(Order, GoesOnFromTheCountsOfItsStatusUnlessItHasAFile) {
  api::TraceSession order = Order();
  order.spec.trace_uid = kTraceUid;
  order.spec.trace_generation = 1;
  order.status.events = {
      .recorded = 10,
      .delivered = 6,
      .discarded = 3,
      .overwritten = 2,
      .lost = 1,
      .missing = 4,
      .reasons = {{"ring", "full", 3}, {"ring", "overwritten", 2}, {"relay", "unreachable", 1}}};
  Session session = FromOrder(order);
  ipc::ChannelCounts counts = session.Counts();
  EXPECT_EQ(counts.recorded, 10u);
  EXPECT_EQ(counts.delivered, 6u);
  EXPECT_EQ(counts.overwritten, 2u);
  EXPECT_EQ(counts.discarded.at("full"), 3u);
  EXPECT_EQ(counts.lost.at("relay/unreachable"), 1u);
  EXPECT_EQ(counts.lost.at("node/restarted"), 1u) << "it was in flight";
  // The counts on disk are newer than those in a later version of the order, and contain them.
  session.AddChannel(kMain).reported.recorded = 5;
  EXPECT_TRUE(session.Change(FromOrder(order)));
  EXPECT_EQ(session.Counts().recorded, 15u);
  session.absences = {"one", "another"};
  const std::string file = testing::TempDir() + "/weft-counts.json";
  ASSERT_TRUE(session.Save(file));
  const auto loaded = Session::Load(file);
  ASSERT_TRUE(loaded) << loaded.error().message;
  EXPECT_EQ(loaded->Counts(), session.Counts());
  EXPECT_EQ(loaded->absences, session.absences);
  std::remove(file.c_str());
}

// A channel keeps the size that it was granted, since processes remember it.
TEST(Order, BuffersFitIntoTheContainersMemoryFromThenOn) {
  api::TraceSession order = Order();
  order.spec.trace_uid = kTraceUid;
  order.spec.trace_generation = 1;
  order.spec.record.buffer = {1 << 20, 8};
  Session session = FromOrder(order);
  Session::Container container = kMain;
  container.memory_limit = uint64_t{16} << 20;
  session.AddChannel(container);
  const control::ChannelSpec spec = session.channels[0].spec;
  EXPECT_EQ(spec.memory_budget, 204u * 4096);
  EXPECT_LT(spec.subbuf_shift, 20u);
  EXPECT_EQ(session.channels[0].definition.subbuf_shift, spec.subbuf_shift);
  EXPECT_EQ(session.channels[0].asked, (RingSize{20, 3}));
  session.AddChannel(kMain);
  EXPECT_EQ(session.channels[1].spec.memory_budget, 0u);
  EXPECT_EQ(session.channels[1].spec.subbuf_shift, 20u);

  order.spec.record.user.events = {{.name = "other:*"}};
  EXPECT_TRUE(session.Change(FromOrder(order)));
  EXPECT_EQ(session.channels[0].spec.subbuf_shift, spec.subbuf_shift);
  EXPECT_EQ(session.channels[0].spec.memory_budget, spec.memory_budget);
  EXPECT_EQ(session.channels[1].spec.subbuf_shift, 20u);

  const std::string file = testing::TempDir() + "/weft-granted.json";
  ASSERT_TRUE(session.Save(file));
  const auto loaded = Session::Load(file);
  ASSERT_TRUE(loaded) << loaded.error().message;
  EXPECT_EQ(loaded->channels[0].spec, session.channels[0].spec);
  EXPECT_EQ(loaded->channels[0].definition.trace_uid, kTraceUid);
  EXPECT_EQ(loaded->channels[0].definition.trace_uuid, session.channels[0].definition.trace_uuid);
  EXPECT_EQ(loaded->channels[0].asked, (RingSize{20, 3}));
  EXPECT_EQ(loaded->channels[1].spec, session.channels[1].spec);
  std::remove(file.c_str());
}

}  // namespace
}  // namespace weft::agent
