// SPDX-License-Identifier: Apache-2.0
// What was sent to the doorbell before a Sync is there after it, whether the caller or the
// keeper was slower. And whatever hostile programs send or leave unsent: nothing of it stays,
// nothing waits, a neighbour gets through.
#include "node-agent/keeper/doorbell.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/mman.h>
#include <sys/un.h>

#include <cstring>
#include <filesystem>
#include <vector>

#include "lib/ipc/limits.h"
#include "node-agent/keeper/vault.h"

namespace weft::keeper {
namespace {

size_t OpenDescriptors() {
  const std::filesystem::directory_iterator all("/proc/self/fd");
  return static_cast<size_t>(std::distance(begin(all), end(all)));
}

UniqueFd Memory() { return UniqueFd(memfd_create("test", MFD_CLOEXEC)); }

void SendWith(const UniqueFd& connection, std::string text, const std::vector<int>& fds) {
  std::vector<uint64_t> control(CMSG_SPACE(sizeof(int) * fds.size()) / sizeof(uint64_t) + 1);
  iovec part{text.data(), text.size()};
  msghdr header{};
  header.msg_iov = &part;
  header.msg_iovlen = 1;
  if (!fds.empty()) {
    header.msg_control = control.data();
    header.msg_controllen = CMSG_SPACE(sizeof(int) * fds.size());
    cmsghdr* rights = CMSG_FIRSTHDR(&header);
    rights->cmsg_level = SOL_SOCKET;
    rights->cmsg_type = SCM_RIGHTS;
    rights->cmsg_len = CMSG_LEN(sizeof(int) * fds.size());
    std::memcpy(CMSG_DATA(rights), fds.data(), sizeof(int) * fds.size());
  }
  ASSERT_EQ(sendmsg(connection.get(), &header, 0), static_cast<ssize_t>(text.size()));
}

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
    ASSERT_EQ(listen(listening.get(), ipc::kListenBacklog), 0);
    doorbell.emplace(
        *loop, "test", std::move(listening), [this](Caller caller) { take(std::move(caller)); },
        [this] { return messages.size() < room; });
    take = [this](Caller caller) { messages.push_back(caller.message); };
    quiet = OpenDescriptors();
  }

  UniqueFd Call() {
    UniqueFd fd(socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0));
    EXPECT_EQ(connect(fd.get(), reinterpret_cast<sockaddr*>(&address), address_size), 0);
    return fd;
  }

  static void Say(const UniqueFd& connection, std::string text) {
    const UniqueFd memory = Memory();
    SendWith(connection, std::move(text), {memory.get()});
  }

  // A neighbour is heard as ever, nothing else is, and no descriptor is left.
  void ExpectOnlyANeighbour() {
    Say(Call(), "neighbour");
    doorbell->AnswerAll();
    EXPECT_EQ(messages, std::vector<std::string>{"neighbour"});
    messages.clear();
    EXPECT_EQ(OpenDescriptors(), quiet);
  }

  std::vector<std::string> messages;
  size_t room = SIZE_MAX;  // for messages
  std::optional<ipc::Loop> loop;
  sockaddr_un address{};
  socklen_t address_size = 0;
  Doorbell::Handler take;
  std::optional<Doorbell> doorbell;
  size_t quiet = 0;  // descriptors that are open while no process calls
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

TEST_F(DoorbellTest, MoreSilentCallersThanItKeeps) {
  std::vector<UniqueFd> silent;
  for (size_t i = 0; i < kMaxSilentCallers + 50; ++i) {
    silent.push_back(Call());
    if (i % 100 == 0) doorbell->AnswerAll();
  }
  doorbell->AnswerAll();
  // Each has a connection and a pidfd.
  EXPECT_LE(OpenDescriptors(), quiet + silent.size() + 2 * kMaxSilentCallers);
  char byte;
  EXPECT_EQ(recv(silent[49].get(), &byte, 1, MSG_DONTWAIT), 0) << "the oldest are gone";
  EXPECT_LT(recv(silent[50].get(), &byte, 1, MSG_DONTWAIT), 0);
  Say(Call(), "neighbour");
  Say(silent.back(), "not silent after all");
  doorbell->AnswerAll();
  EXPECT_EQ(messages, (std::vector<std::string>{"not silent after all", "neighbour"}));
  messages.clear();
  silent.clear();
  ExpectOnlyANeighbour();
}

// Its message comes between the last look at silent callers and the accept that needs its place.
TEST_F(DoorbellTest, ReadsTheMessageOfACallerThatMakesWay) {
  std::vector<UniqueFd> silent;
  for (size_t i = 0; i < kMaxSilentCallers; ++i) silent.push_back(Call());
  doorbell->AnswerAll();
  take = [&](const Caller& caller) {
    messages.push_back(caller.message);
    if (caller.message == "first") Say(silent[0], "spoke");
  };
  Say(Call(), "first");
  silent.push_back(Call());
  doorbell->AnswerAll();
  EXPECT_EQ(messages, (std::vector<std::string>{"first", "spoke"}));
  char byte = 0;
  EXPECT_EQ(recv(silent[0].get(), &byte, 1, MSG_DONTWAIT), 0) << "it is gone";
}

TEST_F(DoorbellTest, PassesOnAMessageWithoutADescriptor) {
  bool had_descriptor = true;
  take = [&](const Caller& caller) {
    messages.push_back(caller.message);
    had_descriptor = caller.fd.valid();
  };
  SendWith(Call(), "a name", {});
  doorbell->AnswerAll();
  EXPECT_EQ(messages, std::vector<std::string>{"a name"});
  EXPECT_FALSE(had_descriptor);
  messages.clear();
  ExpectOnlyANeighbour();
}

TEST_F(DoorbellTest, ClosesDescriptorsThatAreNotOneRingSet) {
  const UniqueFd memory = Memory();
  SendWith(Call(), "", {});
  for (const size_t count : {2, 253}) {
    SendWith(Call(), "x", std::vector<int>(count, memory.get()));
    SendWith(Call(), "", std::vector<int>(count, memory.get()));
  }
  const UniqueFd no_memory(open("/dev/null", O_RDONLY | O_CLOEXEC));
  SendWith(Call(), "x", {no_memory.get()});
  // One message is read of each caller; what stands behind it goes with the connection.
  const UniqueFd chatty = Call();
  SendWith(chatty, "", {});
  for (int i = 0; i < 5; ++i) SendWith(chatty, "x", {memory.get(), memory.get()});
  doorbell->AnswerAll();
  quiet += 3;  // those of this test
  ExpectOnlyANeighbour();
}

TEST_F(DoorbellTest, TakesTheBeginningOfALongMessage) {
  Say(Call(), std::string(100'000, 'x'));
  doorbell->AnswerAll();
  EXPECT_EQ(messages, std::vector<std::string>{std::string(64, 'x')});
  messages.clear();
  ExpectOnlyANeighbour();
}

// The socket that is closed last waits until the peer, which never reads, has read everything; this
// test would, too.
UniqueFd Lingering(const UniqueFd& peer) {
  UniqueFd fd(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  sockaddr_in to{};
  socklen_t size = sizeof(to);
  EXPECT_EQ(getsockname(peer.get(), reinterpret_cast<sockaddr*>(&to), &size), 0);
  (void)connect(fd.get(), reinterpret_cast<sockaddr*>(&to), size);
  pollfd connected{fd.get(), POLLOUT, 0};
  EXPECT_EQ(poll(&connected, 1, -1), 1);
  const std::vector<char> bytes(65536);
  while (send(fd.get(), bytes.data(), bytes.size(), MSG_NOSIGNAL) > 0) {
  }
  const linger days{.l_onoff = 1, .l_linger = 1'000'000};
  EXPECT_EQ(setsockopt(fd.get(), SOL_SOCKET, SO_LINGER, &days, sizeof(days)), 0);
  return fd;
}

TEST_F(DoorbellTest, ClosesALingeringSocketWithoutWaiting) {
  const UniqueFd peer(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  const sockaddr_in any{
      .sin_family = AF_INET, .sin_port = 0, .sin_addr = {htonl(INADDR_LOOPBACK)}, .sin_zero = {}};
  ASSERT_EQ(bind(peer.get(), reinterpret_cast<const sockaddr*>(&any), sizeof(any)), 0);
  ASSERT_EQ(listen(peer.get(), 16), 0);
  quiet = OpenDescriptors();
  SendWith(Call(), "x", {Lingering(peer).get()});
  SendWith(Call(), "x", {Lingering(peer).get(), Lingering(peer).get()});
  for (const char* first : {"", "x"}) {
    const UniqueFd chatty = Call();
    SendWith(chatty, first, {});
    SendWith(chatty, "", {});
    SendWith(chatty, "", {Lingering(peer).get()});
  }
  doorbell->AnswerAll();
  EXPECT_EQ(messages, std::vector<std::string>{"x"}) << "it had no descriptor";
  messages.clear();
  ExpectOnlyANeighbour();
  const UniqueFd silent = Call();
  doorbell->AnswerAll();
  SendWith(silent, "x", {Lingering(peer).get()});
  SendWith(Call(), "x", {Lingering(peer).get()});
  doorbell.reset();
  EXPECT_EQ(OpenDescriptors(), quiet);
}

TEST_F(DoorbellTest, CallersWithoutEndAreAnsweredInTurns) {
  int answered = 0;
  take = [&](const Caller&) {
    if (++answered < 3 * ipc::kListenBacklog) Say(Call(), "again");
  };
  Say(Call(), "once");
  doorbell->AnswerAll();
  EXPECT_LE(answered, ipc::kListenBacklog + 1);
  take = [](const Caller&) {};
  doorbell->AnswerAll();
  take = [this](const Caller& caller) { messages.push_back(caller.message); };
  ExpectOnlyANeighbour();
}

TEST_F(DoorbellTest, CallersWaitWhileThereIsNoRoom) {
  room = 2;
  for (const char* text : {"1", "2", "3", "4", "5"}) Say(Call(), text);
  doorbell->AnswerAll();
  EXPECT_EQ(messages, (std::vector<std::string>{"1", "2"}));
  EXPECT_TRUE(doorbell->paused());
  EXPECT_TRUE(doorbell->owes());
  doorbell->GoOn();
  EXPECT_EQ(messages.size(), 2U) << "there is no room yet";
  room = 4;
  doorbell->GoOn();
  EXPECT_EQ(messages, (std::vector<std::string>{"1", "2", "3", "4"}));
  std::vector<std::string> refused;
  while (doorbell->owes())
    doorbell->Refuse([&](const Caller& caller) { refused.push_back(caller.message); });
  EXPECT_EQ(refused, std::vector<std::string>{"5"});
  messages.clear();
  doorbell->GoOn();
  ExpectOnlyANeighbour();
}

TEST_F(DoorbellTest, AnAcceptedCallerThatSpeaksWhileThereIsNoRoomWaits) {
  UniqueFd early = Call();
  doorbell->AnswerAll();
  room = 0;
  Say(early, "early");
  Say(Call(), "late");
  early.reset();
  doorbell->AnswerAll();
  EXPECT_TRUE(messages.empty());
  EXPECT_TRUE(doorbell->owes());
  room = SIZE_MAX;
  doorbell->GoOn();
  EXPECT_EQ(messages, (std::vector<std::string>{"early", "late"}));
  EXPECT_FALSE(doorbell->paused());
  EXPECT_FALSE(doorbell->owes());
  messages.clear();
  ExpectOnlyANeighbour();
}

TEST_F(DoorbellTest, ClosesWhatAFullVaultRefuses) {
  std::optional<Vault> vault(20);
  size_t refused = 0;
  take = [&](Caller caller) { refused += vault->AddCaller(std::move(caller)) ? 0 : 1; };
  for (int i = 0; i < 100; ++i) Say(Call(), "x");
  doorbell->AnswerAll();
  EXPECT_EQ(refused + vault->size(), 100U);
  EXPECT_EQ(OpenDescriptors(), quiet + 2 * vault->size())
      << "memory and pidfd of each that was taken";
  vault->Drop("bell/1");
  refused = 0;
  Say(Call(), "room again");
  doorbell->AnswerAll();
  EXPECT_EQ(refused, 0U);
  vault.reset();
  EXPECT_EQ(OpenDescriptors(), quiet);
}

}  // namespace
}  // namespace weft::keeper
