// SPDX-License-Identifier: Apache-2.0
// For tests: a folder in which keepers meet.
#ifndef WEFT_NODE_AGENT_KEEPER_TESTING_H_
#define WEFT_NODE_AGENT_KEEPER_TESTING_H_

#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <string>

namespace weft::keeper {

// Removes the folder at the end, after what a derived test holds.
class FolderTest : public testing::Test {
 protected:
  FolderTest() {
    char name[] = "/tmp/weft-keeper-test-XXXXXX";
    EXPECT_NE(mkdtemp(name), nullptr);
    folder_ = name;
  }
  ~FolderTest() override { std::filesystem::remove_all(folder_); }

  std::string folder_;
};

}  // namespace weft::keeper

#endif  // WEFT_NODE_AGENT_KEEPER_TESTING_H_
