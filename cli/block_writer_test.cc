// SPDX-License-Identifier: Apache-2.0
#include "cli/block_writer.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <memory>

namespace weft::cli {
namespace {

struct Close {
  void operator()(std::FILE* file) const { std::fclose(file); }
};
using File = std::unique_ptr<std::FILE, Close>;

TEST(BlockWriter, WritesBlocksInOrder) {
  const File file(std::tmpfile());
  std::string expected;
  {
    BlockWriter writer(file.get());
    for (int i = 0; i < 1000; i++) {
      std::string block(static_cast<size_t>(1 + i * 37 % 5000), static_cast<char>('a' + i % 26));
      expected += block;
      ASSERT_TRUE(writer.Write(block));
      ASSERT_TRUE(block.empty());
      if (i % 100 == 0) {
        ASSERT_TRUE(writer.Flush());
        ASSERT_EQ(std::ftell(file.get()), static_cast<long>(expected.size()));
      }
    }
    ASSERT_TRUE(writer.Flush());
  }
  std::rewind(file.get());
  std::string text(expected.size() + 1, '\0');
  text.resize(std::fread(text.data(), 1, text.size(), file.get()));
  EXPECT_EQ(text, expected);
}

TEST(BlockWriter, NeedsNoBlock) {
  const File file(std::tmpfile());
  BlockWriter writer(file.get());
  std::string nothing;
  EXPECT_TRUE(writer.Write(nothing));
  EXPECT_TRUE(writer.Flush());
}

TEST(BlockWriter, ReportsAFullDisk) {
  const File file(std::fopen("/dev/full", "w"));
  BlockWriter writer(file.get());
  bool ok = true;
  for (int i = 0; ok && i < 100; i++) {
    std::string block(100'000, 'x');
    ok = writer.Write(block);
  }
  EXPECT_FALSE(ok);
  EXPECT_EQ(errno, ENOSPC);
  errno = 0;
  EXPECT_FALSE(writer.Flush());
  EXPECT_EQ(errno, ENOSPC);
}

TEST(BlockWriter, ReportsAFullDiskAtTheEnd) {
  const File file(std::fopen("/dev/full", "w"));
  BlockWriter writer(file.get());
  std::string block("short: it stays in the buffer of the file");
  (void)writer.Write(block);
  EXPECT_FALSE(writer.Flush());
  EXPECT_EQ(errno, ENOSPC);
}

TEST(BlockWriter, ReportsAReaderThatLeft) {
  std::signal(SIGPIPE, SIG_IGN);
  int ends[2];
  ASSERT_EQ(pipe(ends), 0);
  close(ends[0]);
  const File file(fdopen(ends[1], "w"));
  BlockWriter writer(file.get());
  std::string block(100'000, 'x');
  (void)writer.Write(block);
  EXPECT_FALSE(writer.Flush());
  EXPECT_EQ(errno, EPIPE);
}

}  // namespace
}  // namespace weft::cli
