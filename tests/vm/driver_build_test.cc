// SPDX-License-Identifier: Apache-2.0
// weft.ko as a node builds it, with a guest's headers and its compiler, on this machine: the same
// module as ./dev kmod build makes of the same sources.
#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>

#include "node-agent/kernel/driver.h"
#include "node-agent/kernel/driver_build.h"
#include "node-agent/kernel/test_kernels.h"

namespace weft::kernel {
namespace {

namespace fs = std::filesystem;

TEST(BuildOnTheNode, MakesTheSameModule) {
  const char* prebuilt = std::getenv("WEFT_MODULE");
  ASSERT_NE(prebuilt, nullptr) << "run it by ./dev test vm";
  const auto expected = ReadModuleInfo(prebuilt);
  ASSERT_TRUE(expected) << expected.error().message;
  char name[] = "/tmp/weft-build-test-XXXXXX";
  ASSERT_NE(mkdtemp(name), nullptr);
  const fs::path folder = name;
  // The folders are those of the image.
  for (const char* part : {"kmod", "lib/abi", "lib/event"}) {
    fs::create_directories(folder / "sources" / part);
    for (const auto& file : fs::directory_iterator(fs::path(WEFT_SOURCE_DIR) / part))
      if (file.is_regular_file()) fs::copy(file.path(), folder / "sources" / part);
  }
  Host host = ThisHost();
  host.release = expected->release();
  host.headers = testing::KernelCache() / fs::path(prebuilt).parent_path().filename() / "headers";
  const auto built = BuildModule(host, folder / "sources", folder / host.release);
  ASSERT_TRUE(built) << built.error().message;
  const auto found = FindDriver(host, {.folders = {folder}});
  EXPECT_FALSE(found) << "it lies where it was built";
  const auto info = ReadModuleInfo(*built);
  ASSERT_TRUE(info) << info.error().message;
  EXPECT_EQ(info->name, "weft");
  EXPECT_EQ(info->vermagic, expected->vermagic);
  EXPECT_EQ(info->srcversion, expected->srcversion);
  EXPECT_EQ(info->abi, expected->abi);
  fs::remove_all(folder);
}

}  // namespace
}  // namespace weft::kernel
