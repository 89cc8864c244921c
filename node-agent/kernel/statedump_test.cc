// SPDX-License-Identifier: Apache-2.0
// The catalogue's states against kernels: the running one, and those of the virtual machines'
// cache.
#include "node-agent/kernel/statedump.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <set>

#include "lib/event/description.h"
#include "node-agent/kernel/test_kernels.h"

namespace weft::kernel {
namespace {

using testing::TestKernel;

class StatedumpTest : public ::testing::TestWithParam<TestKernel> {
 protected:
  StatedumpTest() : btf_(testing::LoadKernel(GetParam())), states_(btf_.front()) {}

  [[nodiscard]] Result<Resolved> Resolve(const std::string& event, bool cluster_wide) const {
    const auto& all = Catalogue::BuiltIn().states();
    const auto entry = std::ranges::find(all, event, &StateEntry::event);
    if (entry == all.end()) return Fail(ErrorCode::kNotFound, event);
    return states_.Resolve(Catalogue::BuiltIn(), *entry, {.cluster_wide = cluster_wide});
  }

  std::vector<Btf> btf_;
  Statedump states_;
};

TEST_P(StatedumpTest, EveryStateIsResolvedWithAllItsFields) {
  std::set<uint32_t> numbers;
  for (const StateEntry& entry : Catalogue::BuiltIn().states()) {
    const auto resolved = states_.Resolve(Catalogue::BuiltIn(), entry, {.cluster_wide = true});
    ASSERT_TRUE(resolved) << resolved.error().message;
    EXPECT_EQ(resolved->left_out, std::vector<std::string>()) << entry.event;
    EXPECT_EQ(resolved->kind, uint32_t{WEFT_KERNEL_STATE});
    EXPECT_EQ(resolved->subjects, 0u);
    numbers.insert(resolved->number);
  }
  EXPECT_EQ(numbers.size(), size_t{WEFT_KERNEL_STATE_MAX}) << "each has an event";
}

TEST_P(StatedumpTest, StatesOfTheMachineAreForClustersOnly) {
  for (const char* event : {"lttng_statedump_block_device", "lttng_statedump_interrupt",
                            "lttng_statedump_cpu_topology"}) {
    EXPECT_TRUE(Resolve(event, true)) << event;
    EXPECT_EQ(Resolve(event, false).error().code, ErrorCode::kPermission) << event;
  }
}

TEST_P(StatedumpTest, AParentIsShownOnlyIfItIsInScope) {
  const Resolved resolved = Resolve("lttng_statedump_process_state", false).value();
  size_t at = 0;
  for (const FetchStep& op : resolved.fetch) {
    ++at;
    if (op.code != FetchCode::kArgument || op.arg != 1) continue;
    EXPECT_EQ(resolved.fetch.at(at).code, FetchCode::kTask);
  }
}

TEST_P(StatedumpTest, TenantsGetNoKernelAddresses) {
  for (const StateEntry& entry : Catalogue::BuiltIn().states()) {
    const auto resolved = states_.Resolve(Catalogue::BuiltIn(), entry, {});
    if (!resolved) continue;
    const EventDescription event = EventDescription::Parse(resolved->description).value();
    for (const FieldDescription& field : event.fields)
      EXPECT_EQ(field.flags & WEFT_FIELD_POINTER, 0) << entry.event << "." << field.name;
  }
}

INSTANTIATE_TEST_SUITE_P(Kernels, StatedumpTest, ::testing::ValuesIn(testing::TestKernels()),
                         [](const auto& kernel) { return kernel.param.label; });

TEST(Catalogue, RefusesStatesThatItDoesNotKnow) {
  const auto error = [](std::string_view text) {
    const std::string_view documents[] = {text};
    const auto catalogue = Catalogue::Parse(documents);
    return catalogue ? std::string() : catalogue.error().message;
  };
  EXPECT_EQ(error("states: {a: {of: file, fields: {x: file.f_mode}}}"), "");
  EXPECT_NE(error("states: {a: {fields: {x: y}}}").find("of what?"), std::string::npos);
  EXPECT_NE(error("states: {a: {of: file, z: 1}}").find("what is 'z'?"), std::string::npos);
  EXPECT_NE(error("states: {a: {of: file}, a: {of: end}}").find("a second event"),
            std::string::npos);
}

}  // namespace
}  // namespace weft::kernel
