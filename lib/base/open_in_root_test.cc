// SPDX-License-Identifier: Apache-2.0
// Files of a container are found in it and nowhere else, whatever its links say.
#include "lib/base/open_in_root.h"

#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>

namespace weft {
namespace {

class OpenInRootTest : public ::testing::Test {
 protected:
  OpenInRootTest() {
    char name[] = "/tmp/weft-object-XXXXXX";
    root_ = ::mkdtemp(name);
    std::filesystem::create_directories(root_ + "/bin");
    std::ofstream(root_ + "/bin/program") << "inside";
  }
  ~OpenInRootTest() override { std::filesystem::remove_all(root_); }

  [[nodiscard]] std::string Read(const std::string& path) const {
    const auto file = OpenInRoot(root_, path);
    if (!file) return file.error().message;
    char text[64] = {};
    EXPECT_GE(::read(file->get(), text, sizeof(text) - 1), 0);
    return text;
  }
  void Link(const std::string& target, const std::string& name) const {
    ASSERT_EQ(::symlink(target.c_str(), (root_ + name).c_str()), 0);
  }

  std::string root_;
};

TEST_F(OpenInRootTest, LinksStayInside) {
  Link("/bin/program", "/absolute");
  Link("../../../../bin/program", "/upwards");
  Link("/proc/self/exe", "/magic");
  Link("/etc/passwd", "/out");
  Link("/loop", "/loop");
  EXPECT_EQ(Read("/bin/program"), "inside");
  EXPECT_EQ(Read("/absolute"), "inside");
  EXPECT_EQ(Read("/upwards"), "inside");
  EXPECT_EQ(Read("/magic"), "No such file or directory");
  EXPECT_EQ(Read("/out"), "No such file or directory");
  EXPECT_EQ(Read("/loop"), "Too many levels of symbolic links");
}

TEST_F(OpenInRootTest, OnlyRegularFilesAreOpened) {
  ASSERT_EQ(::mkfifo((root_ + "/fifo").c_str(), 0600), 0);
  EXPECT_EQ(Read("/fifo"), "no regular file");
  EXPECT_EQ(Read("/bin"), "no regular file");
  EXPECT_EQ(Read("/none"), "No such file or directory");
  EXPECT_FALSE(OpenInRoot(root_ + "/none", "/bin/program"));
  // Links in /proc that are not paths are not followed.
  EXPECT_FALSE(OpenInRoot("/", "/proc/self/exe"));
}

}  // namespace
}  // namespace weft
