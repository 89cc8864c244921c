// SPDX-License-Identifier: Apache-2.0
// What was sent to the doorbell before a Sync is there after it, whoever was slower: caller or keeper.
#include "node-agent/keeper/doorbell.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <sys/un.h>

#include <cstring>
#include <vector>

namespace weft::keeper {
namespace {

class DoorbellTest : public ::testing::Test {
 protected:
  void SetUp() override {
    loop.emplace(*ipc::Loop::Make());
    UniqueFd listening(socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0));
    // A name that the kernel chooses, outside of the file system.
    sockaddr_un any{.sun_family = AF_UNIX, .sun_path = {}};
    ASSERT_EQ(bind(listening.get(), reinterpret_cast<sockaddr*>(&any), sizeof(any.sun_family)), 0);
    address_size = sizeof(address);
    ASSERT_EQ(getsockname(listening.get(), reinterpret_cast<sockaddr*>(&address), &address_size),
              0);
    ASSERT_EQ(listen(listening.get(), 16), 0);
    doorbell.emplace(*loop, "test", std::move(listening),
                     [this](Caller caller) { messages.push_back(caller.message); });
  }

  UniqueFd Call() {
    UniqueFd fd(socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0));
    EXPECT_EQ(connect(fd.get(), reinterpret_cast<sockaddr*>(&address), address_size), 0);
    return fd;
  }

  static void Say(const UniqueFd& connection, std::string text) {
    const UniqueFd memory(memfd_create("test", MFD_CLOEXEC));
    alignas(cmsghdr) char control[CMSG_SPACE(sizeof(int))] = {};
    iovec part{text.data(), text.size()};
    msghdr header{};
    header.msg_iov = &part;
    header.msg_iovlen = 1;
    header.msg_control = control;
    header.msg_controllen = sizeof(control);
    cmsghdr* rights = CMSG_FIRSTHDR(&header);
    rights->cmsg_level = SOL_SOCKET;
    rights->cmsg_type = SCM_RIGHTS;
    rights->cmsg_len = CMSG_LEN(sizeof(int));
    const int fd = memory.get();
    std::memcpy(CMSG_DATA(rights), &fd, sizeof(fd));
    ASSERT_EQ(sendmsg(connection.get(), &header, 0), static_cast<ssize_t>(text.size()));
  }

  std::vector<std::string> messages;
  std::optional<ipc::Loop> loop;
  sockaddr_un address{};
  socklen_t address_size = 0;
  std::optional<Doorbell> doorbell;
};

TEST_F(DoorbellTest, ACallerInTheBacklog) {
  Say(Call(), "one");
  doorbell->AnswerAll();
  EXPECT_EQ(messages, std::vector<std::string>{"one"});
}

// The loop need not come to know that it can be read: a Sync may stand before it in the same round.
TEST_F(DoorbellTest, ACallerThatSpeaksAfterItWasAccepted) {
  UniqueFd early = Call();
  const UniqueFd silent = Call();
  doorbell->AnswerAll();
  EXPECT_TRUE(messages.empty());
  Say(early, "early");
  early.reset();
  Say(Call(), "late");
  doorbell->AnswerAll();
  EXPECT_EQ(messages, (std::vector<std::string>{"early", "late"}));
}

}  // namespace
}  // namespace weft::keeper
