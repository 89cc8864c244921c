// SPDX-License-Identifier: Apache-2.0
// The catalogue against kernels: the running one, and those that the tests in virtual machines use,
// where they are there (TestKernels).
#include "node-agent/kernel/resolve.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <iostream>
#include <map>
#include <set>

#include "lib/event/description.h"
#include "lib/event/match.h"
#include "node-agent/kernel/btf_builder.h"
#include "node-agent/kernel/fetch_program.h"
#include "node-agent/kernel/test_kernels.h"
#include "node-agent/kernel/tracepoint.h"

namespace weft::kernel {
namespace {

using testing::TestKernel;

// Issue 4's list, and what came with it.
constexpr std::string_view kSubsystems[] = {
    "sched", "irq",    "signal", "timer", "block",     "net",       "sock",  "tcp",    "skb",
    "kmem",  "vmscan", "ext4",   "xfs",   "writeback", "workqueue", "power", "module", "task"};

// Tracepoints that cannot be recorded: the system calls, and those that pass structures by value.
bool IsException(std::string_view name) {
  static constexpr std::string_view kExceptions[] = {"sys_*",
                                                     "tmigr_group_set_cpu_active",
                                                     "tmigr_group_set_cpu_inactive",
                                                     "tmigr_update_events",
                                                     "dax_pmd_insert_mapping",
                                                     "xen_mmu_*"};
  return std::ranges::any_of(kExceptions, [&](std::string_view pattern) {
    return weft_glob_match(pattern.data(), static_cast<uint32_t>(pattern.size()), name.data(),
                           static_cast<uint32_t>(name.size()));
  });
}

// An event has only the address of these: what they say is in its other arguments.
const std::set<std::string> kAddressesOnly = {"cfs_rq",
                                              "iomap",
                                              "iov_iter",
                                              "root_domain",
                                              "rq",
                                              "sched_entity",
                                              "shrink_control",
                                              "xfs_agf",
                                              "xfs_ail",
                                              "xfs_attr_list_context",
                                              "xfs_attrlist_cursor_kern",
                                              "xfs_bmap_intent",
                                              "xfs_buf_log_format",
                                              "xfs_da_node_entry",
                                              "xfs_defer_op_type",
                                              "xfs_defer_pending",
                                              "xfs_dqtrx",
                                              "xfs_exchmaps_intent",
                                              "xfs_exchmaps_req",
                                              "xfs_exchrange",
                                              "xfs_extent_free_item",
                                              "xfs_fsmap",
                                              "xfs_getparents",
                                              "xfs_getparents_rec",
                                              "xfs_icreate_log",
                                              "xfs_icwalk",
                                              "xfs_iext_cursor",
                                              "xfs_inobt_rec_incore",
                                              "xfs_inode_log_format",
                                              "xfs_owner_info",
                                              "xfs_refcount_intent",
                                              "xfs_rmap_intent",
                                              "xfs_trans_res",
                                              "xlog_rec_header",
                                              "xlog_recover",
                                              "xlog_recover_item"};

const Btf& Running() {
  static const Btf btf = std::move(Btf::Load("/sys/kernel/btf/vmlinux").value());
  return btf;
}

class ResolveTest : public ::testing::TestWithParam<TestKernel> {
 protected:
  ResolveTest() : btf_(testing::LoadKernel(GetParam())) {}

  std::vector<Btf> btf_;  // of the kernel, then of its modules
};

TEST_P(ResolveTest, EveryTracepointIsRecordedOrANamedException) {
  size_t resolved_count = 0;
  for (const Btf& btf : btf_) {
    for (const std::string& name : TracepointNames(btf)) {
      const auto resolved =
          ResolveTracepoint(btf, Catalogue::BuiltIn(), name, {.cluster_wide = true});
      if (!resolved) {
        EXPECT_EQ(resolved.error().code, ErrorCode::kUnsupported) << resolved.error().message;
        EXPECT_TRUE(IsException(name)) << resolved.error().message;
        continue;
      }
      ++resolved_count;
      const auto event = EventDescription::Parse(resolved->description);
      EXPECT_TRUE(event) << name << ": " << event.error().message;
    }
  }
  EXPECT_GT(resolved_count, 500u);
}

TEST_P(ResolveTest, EveryTracepointOfAListedSubsystemHasAnEntry) {
  if (!testing::KnowsSubsystems(GetParam())) GTEST_SKIP() << "tracefs is not mounted";
  const Catalogue& catalogue = Catalogue::BuiltIn();
  size_t checked = 0;
  for (const std::string_view subsystem : kSubsystems) {
    const std::set<std::string> names = testing::SubsystemNames(GetParam(), subsystem);
    for (const Btf& btf : btf_) {
      for (const std::string& name : TracepointNames(btf)) {
        if (!names.contains(name)) continue;
        ++checked;
        EXPECT_NE(catalogue.Tracepoint(name), nullptr) << subsystem << ":" << name;
      }
    }
  }
  for (size_t module = 1; module < btf_.size(); ++module) {
    for (const std::string& name : TracepointNames(btf_[module])) {
      ++checked;
      EXPECT_NE(catalogue.Tracepoint(name), nullptr) << name;
    }
  }
  EXPECT_GT(checked, 250u);
}

// Returns the structures that a tracepoint passes and that the catalogue does not know.
std::set<std::string> UnknownStructures(const Btf& btf, const Tracepoint& tracepoint) {
  std::set<std::string> unknown;
  for (const Argument& argument : tracepoint.arguments) {
    const BtfType pointer = btf.Resolve(argument.type);
    if (pointer.kind != BtfKind::kPointer) continue;
    const BtfType target = btf.Resolve(pointer.size_or_ref);
    if (target.kind == BtfKind::kStruct && Catalogue::BuiltIn().Structure(target.name) == nullptr)
      unknown.insert(std::string(target.name));
  }
  return unknown;
}

// One entry covers all of xfs, a new tracepoint included. The catalogue must still know the
// structures that it passes.
TEST_P(ResolveTest, ArgumentsOfAPatternsTracepointsAreKnownOrANamedException) {
  if (GetParam().folder.empty()) GTEST_SKIP() << "the running kernel may be newer than the list";
  const Catalogue& catalogue = Catalogue::BuiltIn();
  std::map<std::string, std::set<std::string>> unknown;
  for (const Btf& btf : btf_) {
    for (const std::string& name : TracepointNames(btf)) {
      const TracepointEntry* entry = catalogue.Tracepoint(name);
      if (entry == nullptr || !entry->arguments) continue;
      const auto tracepoint = FindTracepoint(btf, name);
      if (!tracepoint) continue;
      for (const std::string& structure : UnknownStructures(btf, *tracepoint))
        if (!kAddressesOnly.contains(structure)) unknown[structure].insert(name);
    }
  }
  for (const auto& [structure, names] : unknown)
    ADD_FAILURE() << "of struct " << structure
                  << " only the address is recorded: " << *names.begin() << " and "
                  << names.size() - 1 << " more";
}

// A field that no kernel has is a mistake in the catalogue, or of a kernel long gone.
TEST_P(ResolveTest, FewFieldsAreLeftOut) {
  size_t left_out = 0;
  for (const Btf& btf : btf_) {
    for (const std::string& name : TracepointNames(btf)) {
      const auto resolved =
          ResolveTracepoint(btf, Catalogue::BuiltIn(), name, {.cluster_wide = true});
      if (!resolved) continue;
      const TracepointEntry* entry = Catalogue::BuiltIn().Tracepoint(name);
      for (const std::string& text : resolved->left_out) {
        if (entry != nullptr && !entry->arguments) ++left_out;
        std::cout << name << ": " << text << "\n";
      }
    }
  }
  EXPECT_LT(left_out, 40u);
}

INSTANTIATE_TEST_SUITE_P(Kernels, ResolveTest, ::testing::ValuesIn(testing::TestKernels()),
                         [](const auto& kernel) { return kernel.param.label; });

Resolved Resolve(std::string_view name, bool cluster_wide) {
  auto resolved =
      ResolveTracepoint(Running(), Catalogue::BuiltIn(), name, {.cluster_wide = cluster_wide});
  EXPECT_TRUE(resolved) << resolved.error().message;
  return resolved ? *resolved : Resolved{};
}

std::vector<std::string> FieldNamesOf(const Resolved& resolved) {
  std::vector<std::string> names;
  const EventDescription event = EventDescription::Parse(resolved.description).value();
  for (const FieldDescription& field : event.fields) names.push_back(field.name);
  return names;
}

TEST(Resolve, GivesViewersTheNamesThatTheyKnow) {
  using Names = std::vector<std::string>;
  EXPECT_EQ(FieldNamesOf(Resolve("sched_switch", false)),
            (Names{"prev_comm", "prev_tid", "prev_prio", "prev_state", "next_comm", "next_tid",
                   "next_prio"}));
  EXPECT_EQ(FieldNamesOf(Resolve("sched_waking", false)),
            (Names{"comm", "tid", "prio", "target_cpu"}));
  EXPECT_EQ(Resolve("softirq_entry", true).name, "irq_softirq_entry");
  EXPECT_EQ(FieldNamesOf(Resolve("irq_handler_entry", true)), (Names{"irq", "name"}));
  EXPECT_EQ(Resolve("kmalloc", true).name, "kmem_kmalloc");
  EXPECT_EQ(FieldNamesOf(Resolve("net_dev_xmit", true)), (Names{"skbaddr", "rc", "len", "name"}));
}

TEST(Resolve, HidesTasksThatAreNotTheSessions) {
  const auto tasks = [](const Resolved& resolved) {
    return std::ranges::count(resolved.fetch, FetchCode::kTask, &FetchStep::code);
  };
  EXPECT_EQ(tasks(Resolve("sched_switch", false)), 7);
  EXPECT_EQ(tasks(Resolve("sched_waking", false)), 4);
  EXPECT_EQ(tasks(Resolve("signal_generate", false)), 3);
  EXPECT_EQ(tasks(Resolve("sched_process_exit", false)), 0) << "recorded for that task only";
}

TEST(Resolve, KnowsTheSubjectsOfEvents) {
  EXPECT_EQ(Resolve("sched_switch", false).subjects, 0b110u);
  EXPECT_EQ(Resolve("sched_waking", false).subjects, WEFT_KERNEL_SUBJECT_CURRENT | 1u);
  EXPECT_EQ(Resolve("irq_handler_entry", true).subjects, 0u);
  const auto refused = ResolveTracepoint(Running(), Catalogue::BuiltIn(), "irq_handler_entry", {});
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, ErrorCode::kPermission);
  EXPECT_EQ(ResolveTracepoint(Running(), Catalogue::BuiltIn(), "no_such", {}).error().code,
            ErrorCode::kNotFound);
}

TEST(Resolve, ShowsAddressesOfTheKernelToClustersOnly) {
  const auto has = [](const std::vector<std::string>& names, std::string_view name) {
    return std::ranges::find(names, name) != names.end();
  };
  EXPECT_TRUE(has(FieldNamesOf(Resolve("kmalloc", true)), "ptr"));
  const Resolved tenant = Resolve("kmalloc", false);
  EXPECT_FALSE(has(FieldNamesOf(tenant), "ptr"));
  EXPECT_FALSE(has(FieldNamesOf(tenant), "call_site"));
  EXPECT_TRUE(has(tenant.withheld, "ptr: an address of the kernel"));
}

TEST(Resolve, MatchesByBothNames) {
  const auto match = [](const std::string& pattern, const std::vector<std::string>& but = {}) {
    return MatchTracepoints(Running(), Catalogue::BuiltIn(), pattern, but);
  };
  using Names = std::vector<std::string>;
  EXPECT_EQ(match("irq_softirq_*"), (Names{"softirq_entry", "softirq_exit", "softirq_raise"}));
  EXPECT_EQ(match("softirq_*", {"irq_softirq_raise"}), (Names{"softirq_entry", "softirq_exit"}));
  EXPECT_TRUE(match("no_such_*").empty());
}

TEST(Resolve, ANameMayBeginWithADigitAndIsNotEmpty) {
  testing::BtfBuilder b;
  const uint32_t type = b.Int("int", 4, 1);
  const uint32_t probe = b.Pairs(13, "", 0, {{"__data", b.Pointer(0), 0}, {"type", type, 0}});
  b.Type(12, "__traceiter_9p_client_req", probe);
  b.Type(12, "__traceiter_", probe);
  const Btf btf = std::move(Btf::Parse(b.Bytes()).value());
  EXPECT_EQ(ResolveTracepoint(btf, Catalogue::BuiltIn(), "", {.cluster_wide = true}).error().code,
            ErrorCode::kNotFound);
  const auto resolved =
      ResolveTracepoint(btf, Catalogue::BuiltIn(), "9p_client_req", {.cluster_wide = true});
  ASSERT_TRUE(resolved) << resolved.error().message;
  EXPECT_EQ(FieldNamesOf(*resolved), std::vector<std::string>{"type"});
}

TEST(Resolve, APathThatThisKernelDoesNotHaveLeavesItsFieldOutByName) {
  testing::BtfBuilder b;
  const uint32_t s32 = b.Int("int", 4, 1);
  const uint32_t task = b.Pointer(b.Struct("task_struct", 8, {{"pid", s32, 0}}));
  b.Type(12, "__traceiter_made", b.Pairs(13, "", 0, {{"__data", b.Pointer(0), 0}, {"p", task, 0}}));
  const Btf btf = std::move(Btf::Parse(b.Bytes()).value());
  const std::string_view document[] = {
      "tracepoints: {made: {fields: {tid: p.pid, gone: p.gone.pid, other: q.pid}}}"};
  const Catalogue catalogue = Catalogue::Parse(document).value();
  const auto resolved = ResolveTracepoint(btf, catalogue, "made", {.cluster_wide = true});
  ASSERT_TRUE(resolved) << resolved.error().message;
  EXPECT_EQ(FieldNamesOf(*resolved), std::vector<std::string>{"tid"});
  ASSERT_EQ(resolved->left_out.size(), 2u);
  EXPECT_NE(resolved->left_out[0].find("gone: "), std::string::npos) << resolved->left_out[0];
  EXPECT_NE(resolved->left_out[1].find("other: "), std::string::npos) << resolved->left_out[1];
}

// The example of docs/formats/catalogue.md.
TEST(Resolve, MakesTheProgramOfTheDocumentedExample) {
  testing::BtfBuilder b;
  const uint32_t s32 = b.Int("int", 4, 1);
  const uint32_t text = b.Array(b.Int("char", 1, 1), 16);
  const uint32_t task =
      b.Struct("task_struct", 9000,
               {{"prio", s32, 108 * 8}, {"pid", s32, 2432 * 8}, {"comm", text, 2976 * 8}});
  const uint32_t pointer = b.Pointer(task);
  const uint32_t flag = b.Int("_Bool", 1, 4);
  const uint32_t state = b.Int("unsigned int", 4);
  const uint32_t data = b.Pointer(0);
  const uint32_t probe = b.Pairs(13, "", 0,
                                 {{"__data", data, 0},
                                  {"preempt", flag, 0},
                                  {"prev", pointer, 0},
                                  {"next", pointer, 0},
                                  {"prev_state", state, 0}});
  b.Type(12, "__traceiter_sched_switch", probe);
  const Btf btf = std::move(Btf::Parse(b.Bytes()).value());
  const Resolved resolved =
      ResolveTracepoint(btf, Catalogue::BuiltIn(), "sched_switch", {}).value();
  EXPECT_EQ(resolved.subjects, 0b110u);
  // code, arg, size, flags, offset: bytes as lib/abi/fetch.h has them
  const uint8_t expected[] = {
      1,  1, 8,  0, 0,    0,    0,    0,    0, 0, 0, 0, 0, 0, 0, 0,  // ARG 1
      6,  0, 0,  0, 0,    0,    0,    0,    0, 0, 0, 0, 0, 0, 0, 0,  // TASK
      17, 0, 16, 2, 0xa0, 0x0b, 0,    0,    0, 0, 0, 0, 0, 0, 0, 0,  // BYTES 2976
      1,  1, 8,  0, 0,    0,    0,    0,    0, 0, 0, 0, 0, 0, 0, 0,  // ARG 1
      6,  0, 0,  0, 0,    0,    0,    0,    0, 0, 0, 0, 0, 0, 0, 0,  // TASK
      2,  0, 4,  3, 0x80, 0x09, 0,    0,    0, 0, 0, 0, 0, 0, 0, 0,  // LOAD 2432
      16, 0, 4,  0, 0,    0,    0,    0,    0, 0, 0, 0, 0, 0, 0, 0,  // STORE
      1,  1, 8,  0, 0,    0,    0,    0,    0, 0, 0, 0, 0, 0, 0, 0,  // ARG 1
      6,  0, 0,  0, 0,    0,    0,    0,    0, 0, 0, 0, 0, 0, 0, 0,  // TASK
      2,  0, 4,  3, 108,  0,    0,    0,    0, 0, 0, 0, 0, 0, 0, 0,  // LOAD 108
      3,  0, 0,  0, 0x9c, 0xff, 0xff, 0xff, 0, 0, 0, 0, 0, 0, 0, 0,  // ADD -100
      16, 0, 4,  0, 0,    0,    0,    0,    0, 0, 0, 0, 0, 0, 0, 0,  // STORE
  };
  const std::vector<weft_fetch_op> program = FetchProgram(resolved.fetch);
  ASSERT_GE(program.size() * sizeof(weft_fetch_op), sizeof(expected));
  EXPECT_EQ(std::memcmp(program.data(), expected, sizeof(expected)), 0);
}

TEST(Catalogue, RefusesUnknownEntries) {
  const auto error = [](std::string_view text) {
    const std::string_view documents[] = {text};
    const auto catalogue = Catalogue::Parse(documents);
    return catalogue ? std::string() : catalogue.error().message;
  };
  EXPECT_EQ(error("tracepoints: {a: {fields: {x: y}}}"), "");
  EXPECT_NE(error("nonsense: 1").find("what is 'nonsense'?"), std::string::npos);
  EXPECT_NE(error("tracepoints: {a: {fields: {x: {path: y, z: 1}}}}").find("what is 'z'?"),
            std::string::npos);
  EXPECT_NE(error("tracepoints: {a: {fields: {x: 'y.'}}}").find("character 3"), std::string::npos);
  EXPECT_NE(error("tracepoints: {a: {}}").find("wants either"), std::string::npos);
  EXPECT_NE(error("tracepoints: {a b: {fields: {}}, b: {fields: {}}}").find("a second entry"),
            std::string::npos);
  EXPECT_NE(error("tracepoints: {a: {fields: {'x-y': y}}}").find("no name of a field"),
            std::string::npos);
  EXPECT_NE(error("tracepoints: {a: {fields: {x: {path: y, bits: [60, 5]}}}}").find("bounds"),
            std::string::npos);
  EXPECT_NE(error("a: [").find("catalogue document 0"), std::string::npos);
}

}  // namespace
}  // namespace weft::kernel
