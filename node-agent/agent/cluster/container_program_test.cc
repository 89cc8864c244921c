// SPDX-License-Identifier: Apache-2.0
// Which programs count as a container's: this process takes the place of a container's.
#include "node-agent/agent/cluster/container_program.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/sendfile.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>

#include "lib/base/unique_fd.h"

namespace weft::agent {
namespace {

constexpr uint64_t kNoNode = 1;  // no mount namespace has this number

std::vector<int32_t> NoOthers() { return {}; }

UniqueFd CopyOf(const char* path) {
  const UniqueFd file(open(path, O_RDONLY | O_CLOEXEC));
  UniqueFd copy(memfd_create("clone", MFD_CLOEXEC));
  struct stat st{};
  EXPECT_EQ(fstat(file.get(), &st), 0);
  for (off_t at = 0; at < st.st_size;)
    if (sendfile(copy.get(), file.get(), &at, static_cast<size_t>(st.st_size - at)) <= 0) break;
  return copy;
}

// Executes the file. Its end of a pipe closes then.
int32_t Start(const UniqueFd& program) {
  int begun[2] = {};
  EXPECT_EQ(pipe2(begun, O_CLOEXEC), 0);
  const int32_t pid = fork();
  if (pid == 0) {
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    char name[] = "sleep", seconds[] = "1000";
    char* arguments[] = {name, seconds, nullptr};
    fexecve(program.get(), arguments, environ);
    _exit(1);
  }
  close(begun[1]);
  char byte = 0;
  EXPECT_EQ(read(begun[0], &byte, 1), 0);
  close(begun[0]);
  return pid;
}

TEST(ContainerProgram, AProgramOnAMountOfTheContainerIsItsOwn) {
  EXPECT_TRUE(CheckProgram(getpid(), kNoNode, NoOthers));
}

TEST(ContainerProgram, WhatIsInTheNodesMountNamespaceIsTheNodes) {
  const Status checked = CheckProgram(getpid(), MountNamespaceOf(getpid()), NoOthers);
  ASSERT_FALSE(checked);
  EXPECT_EQ(checked.error().code, ErrorCode::kNotFound);
}

// The container runtime executes a copy of itself in memory.
TEST(ContainerProgram, AProgramOnNoMountOfTheContainerIsTheRuntimes) {
  const int32_t pid = Start(CopyOf("/bin/sleep"));
  const Status checked = CheckProgram(pid, kNoNode, [] { return std::vector{getpid()}; });
  kill(pid, SIGKILL);
  waitpid(pid, nullptr, 0);
  ASSERT_FALSE(checked);
  EXPECT_EQ(checked.error().code, ErrorCode::kUnsupported);
  EXPECT_EQ(CheckProgram(pid, kNoNode, NoOthers).error().code, ErrorCode::kNotFound);
}

}  // namespace
}  // namespace weft::agent
