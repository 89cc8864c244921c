// SPDX-License-Identifier: GPL-2.0-only
// A machine with several nodes: the module allocates each CPU's part of a ring on that CPU's node;
// the test reads where from the kernel (/proc/vmallocinfo). The pages that readers map may lie on
// any node.
#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdint>
#include <fstream>
#include <map>
#include <sstream>
#include <string>

#include "kmod/tests/load.h"

namespace weft::kmod {
namespace {

constexpr uint32_t kSlotShift = 19;  // no other memory of the module has this size
constexpr uint64_t kPage = 4096;     // behind each area one that is not there

using Nodes = std::map<int, int>;

// Returns the number of CPUs of each node.
Nodes CpusOfNodes() {
  Nodes nodes;
  for (long cpu = 0; cpu < Cpus(); cpu++)
    for (int node = 0; node < 64; node++)
      if (::access(
              ("/sys/devices/system/cpu/cpu" + std::to_string(cpu) + "/node" + std::to_string(node))
                  .c_str(),
              F_OK) == 0)
        nodes[node]++;
  return nodes;
}

// Counts the areas of that size by the node that holds all their pages; -1: several nodes hold
// them.
Nodes AreasOfNodes(uint64_t bytes) {
  Nodes areas;
  std::ifstream info("/proc/vmallocinfo");
  for (std::string line; std::getline(info, line);) {
    if (line.find("[weft]") == std::string::npos) continue;
    std::istringstream words(line);
    std::string word;
    uint64_t size = 0;
    words >> word >> size;
    if (size != bytes + kPage) continue;
    int node = -1;
    uint64_t pages = 0;
    while (words >> word)
      if (word[0] == 'N' && word.find('=') != std::string::npos) {
        node = std::stoi(word.substr(1));
        pages = std::stoull(word.substr(word.find('=') + 1));
      }
    areas[pages == bytes / kPage ? node : -1]++;
  }
  return areas;
}

TEST(NumaTest, EachCpusPartOfARingIsOnItsNode) {
  if (::access("/sys/devices/system/node", F_OK) != 0) GTEST_SKIP() << "this kernel has no nodes";
  const Nodes cpus = CpusOfNodes();
  ASSERT_EQ(cpus.size(), 2U) << "this is for a machine with two nodes";
  ASSERT_NE(cpus.at(0), cpus.at(1)) << "a mistake would not be seen";
  ASSERT_EQ(AreasOfNodes(1U << kSlotShift), Nodes{});
  weft_kernel_channel channel = RightChannel();
  channel.slot_shift = kSlotShift;
  const Recording recording = Record(Sources()[0].event(), channel);
  ASSERT_TRUE(recording.valid());
  EXPECT_EQ(AreasOfNodes(1U << kSlotShift), cpus);
}

}  // namespace
}  // namespace weft::kmod
