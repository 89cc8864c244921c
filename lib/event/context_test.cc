// SPDX-License-Identifier: Apache-2.0
// The table of contexts (lib/abi/context.h) against LTTng-UST 2.13's list, written down here again.
#include "lib/abi/context.h"

#include <gtest/gtest.h>

#include <cstring>
#include <string_view>

namespace weft {
namespace {

struct Expected {
  const char* name;
  uint16_t id;
  uint8_t type;
  uint8_t size;
};

constexpr Expected kContexts[] = {
    {"vpid", 1, WEFT_CONTEXT_INT, 4},
    {"vtid", 2, WEFT_CONTEXT_INT, 4},
    {"pthread_id", 3, WEFT_CONTEXT_UINT, 8},
    {"procname", 4, WEFT_CONTEXT_TEXT, 16},
    {"ip", 5, WEFT_CONTEXT_UINT, 8},
    {"cpu_id", 6, WEFT_CONTEXT_INT, 4},
    {"vuid", 7, WEFT_CONTEXT_UINT, 4},
    {"veuid", 8, WEFT_CONTEXT_UINT, 4},
    {"vsuid", 9, WEFT_CONTEXT_UINT, 4},
    {"vgid", 10, WEFT_CONTEXT_UINT, 4},
    {"vegid", 11, WEFT_CONTEXT_UINT, 4},
    {"vsgid", 12, WEFT_CONTEXT_UINT, 4},
    {"cgroup_ns", 13, WEFT_CONTEXT_UINT, 8},
    {"ipc_ns", 14, WEFT_CONTEXT_UINT, 8},
    {"mnt_ns", 15, WEFT_CONTEXT_UINT, 8},
    {"net_ns", 16, WEFT_CONTEXT_UINT, 8},
    {"pid_ns", 17, WEFT_CONTEXT_UINT, 8},
    {"user_ns", 18, WEFT_CONTEXT_UINT, 8},
    {"uts_ns", 19, WEFT_CONTEXT_UINT, 8},
    {"time_ns", 20, WEFT_CONTEXT_UINT, 8},
    {"pid", 128, WEFT_CONTEXT_INT, 4},
    {"tid", 129, WEFT_CONTEXT_INT, 4},
    {"ppid", 130, WEFT_CONTEXT_INT, 4},
    {"vppid", 131, WEFT_CONTEXT_INT, 4},
    {"prio", 132, WEFT_CONTEXT_INT, 4},
    {"nice", 133, WEFT_CONTEXT_INT, 4},
    {"uid", 134, WEFT_CONTEXT_UINT, 4},
    {"euid", 135, WEFT_CONTEXT_UINT, 4},
    {"suid", 136, WEFT_CONTEXT_UINT, 4},
    {"gid", 137, WEFT_CONTEXT_UINT, 4},
    {"egid", 138, WEFT_CONTEXT_UINT, 4},
    {"sgid", 139, WEFT_CONTEXT_UINT, 4},
    {"cgroup_id", 140, WEFT_CONTEXT_UINT, 8},
    {"hostname", 141, WEFT_CONTEXT_TEXT, 65},
    {"interruptible", 142, WEFT_CONTEXT_INT, 4},
    {"preemptible", 143, WEFT_CONTEXT_INT, 4},
    {"need_reschedule", 144, WEFT_CONTEXT_INT, 4},
    {"migratable", 145, WEFT_CONTEXT_INT, 4},
    {"callstack-kernel", 146, WEFT_CONTEXT_ADDRESSES, 0},
    {"callstack-user", 147, WEFT_CONTEXT_ADDRESSES, 0},
};

TEST(Contexts, HaveLttngsNamesAndFixedNumbers) {
  for (const Expected& expected : kContexts) {
    const weft_context_info* info =
        weft_context_by_name(expected.name, static_cast<uint32_t>(std::strlen(expected.name)));
    ASSERT_NE(info, nullptr) << expected.name;
    EXPECT_EQ(info->id, expected.id) << expected.name;
    EXPECT_EQ(info->type, expected.type) << expected.name;
    EXPECT_EQ(info->size, expected.size) << expected.name;
    EXPECT_EQ(weft_context_by_id(expected.id), info);
  }
}

TEST(Contexts, ContextsWithGivenNamesAreFoundByNumberOnly) {
  uint32_t count = 0;
  ASSERT_NE(weft_context_table(&count), nullptr);
  EXPECT_EQ(count, std::size(kContexts) + 3);
  EXPECT_EQ(weft_context_by_id(WEFT_CONTEXT_PERF_THREAD)->size, 8);
  EXPECT_EQ(weft_context_by_id(WEFT_CONTEXT_APP)->type, WEFT_CONTEXT_DYNAMIC);
  for (const std::string_view name :
       {"", "vpi", "vpidx", "$app.", "perf:thread:", "perf:cpu:", "a_name_beyond_all"})
    EXPECT_EQ(weft_context_by_name(name.data(), static_cast<uint32_t>(name.size())), nullptr)
        << name;
  EXPECT_EQ(weft_context_by_id(0), nullptr);
  EXPECT_EQ(weft_context_by_id(999), nullptr);
}

}  // namespace
}  // namespace weft
