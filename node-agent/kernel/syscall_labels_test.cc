// SPDX-License-Identifier: Apache-2.0
// Names of numbers and bits (catalogue/syscall_labels.yaml) against the headers of the machine that
// builds this.
#include "node-agent/kernel/syscall_labels.h"

#include <gtest/gtest.h>

#include <map>
#include <set>
#include <string>

#include "node-agent/kernel/catalogue.h"

namespace weft::kernel {
namespace {

using Values = std::map<std::string, uint64_t>;

std::map<std::string, Values> Known() {
  std::map<std::string, Values> known;
  for (const known_label* labels :
       {weft_labels_of_uapi, weft_labels_of_libc, weft_labels_of_sockets, weft_labels_of_system})
    for (; labels->set != nullptr; ++labels) known[labels->set][labels->name] = labels->value;
  return known;
}

TEST(SyscallLabels, AreThoseOfTheHeaders) {
  const auto known = Known();
  EXPECT_GT(known.size(), 90u);
  for (const auto& [set, values] : known) {
    const auto* labels = Catalogue::BuiltIn().Labels(set);
    ASSERT_NE(labels, nullptr) << set;
    Values ours;
    for (const EnumMapping& label : *labels) ours[label.label] = label.begin;
    EXPECT_EQ(ours, values) << set;
  }
}

TEST(SyscallLabels, ASetHasOneLabelPerValue) {
  for (const auto& [set, values] : Known()) {
    std::set<uint64_t> once;
    for (const auto& [name, value] : values)
      EXPECT_TRUE(once.insert(value).second) << set << " " << name;
  }
}

TEST(SyscallLabels, EverySetThatAFieldNamesIsThere) {
  size_t named = 0;
  for (const SyscallEntry& entry : Catalogue::BuiltIn().syscalls()) {
    for (const SyscallField& field : entry.fields) {
      if (field.spec.labels.empty()) continue;
      EXPECT_NE(Catalogue::BuiltIn().Labels(field.spec.labels), nullptr)
          << entry.names.front() << " " << field.spec.name;
      ++named;
    }
  }
  EXPECT_GT(named, 120u);
}

}  // namespace
}  // namespace weft::kernel
