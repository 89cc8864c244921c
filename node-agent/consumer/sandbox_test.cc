// SPDX-License-Identifier: Apache-2.0
// What a consumer in its sandbox cannot do, and what must go on working there. Each case is a
// process of its own, linked with the very code of the product. That every thread of the real one
// is in it: tests/local/hostile_test.py.
#include "lib/sandbox/sandbox.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/ptrace.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "lib/http/certificates.h"
#include "lib/ring/slot_reader.h"
#include "lib/ring/testing/test_writer.h"
#include "lib/tls/engine.h"

namespace weft::consumer {
namespace {

constexpr int kNoSandbox = 99;

// Returns how a process ends that prepares itself, enters the sandbox and then does `work`.
int Inside(const std::function<int()>& work, const std::function<void()>& prepare = [] {}) {
  const pid_t pid = ::fork();
  if (pid == 0) {
    prepare();
    if (!EnterSandbox()) ::syscall(SYS_exit_group, kNoSandbox);
    const int status = work();
    ::syscall(SYS_exit_group, status);
  }
  int status = 0;
  ::waitpid(pid, &status, 0);
  return status;
}

void ExpectKilled(const char* what, const std::function<void()>& call) {
  const int status = Inside([&] {
    call();
    return 0;
  });
  EXPECT_TRUE(WIFSIGNALED(status) && WTERMSIG(status) == SIGSYS) << what << ": " << status;
}

TEST(Sandbox, KillsWhatAConsumerNeverDoes) {
  ExpectKilled("open", [] { (void)::open("/etc/passwd", O_RDONLY | O_CLOEXEC); });
  ExpectKilled("openat of a descriptor", [] { (void)::openat(0, ".", O_RDONLY | O_CLOEXEC); });
  ExpectKilled("ptrace", [] { ::ptrace(PTRACE_ATTACH, ::getppid(), 0, 0); });
  ExpectKilled("ptrace by number", [] { ::syscall(SYS_ptrace, PTRACE_TRACEME, 0, 0, 0); });
  ExpectKilled("execve", [] {
    char path[] = "/bin/true";
    char* const args[] = {path, nullptr};
    ::execve(path, args, nullptr);
  });
  ExpectKilled("socket", [] { (void)::socket(AF_INET, SOCK_STREAM, 0); });
  ExpectKilled("unix socket", [] { (void)::socket(AF_UNIX, SOCK_STREAM, 0); });
  ExpectKilled("socketpair", [] {
    int fds[2];
    (void)::socketpair(AF_UNIX, SOCK_STREAM, 0, fds);
  });
  ExpectKilled("fork", [] { (void)::fork(); });
  ExpectKilled("kill", [] { ::kill(1, 0); });
  ExpectKilled("memfd_create", [] { (void)memfd_create("x", 0); });
  ExpectKilled("process_vm_readv",
               [] { ::syscall(SYS_process_vm_readv, 1, nullptr, 0, nullptr, 0, 0); });
  ExpectKilled("pidfd_open", [] { ::syscall(SYS_pidfd_open, 1, 0); });
  ExpectKilled("unlink", [] { ::unlink("/tmp/nothing-of-this-name"); });
  ExpectKilled("io_uring_setup", [] { ::syscall(SYS_io_uring_setup, 1, nullptr); });
  ExpectKilled("bpf", [] { ::syscall(SYS_bpf, 0, nullptr, 0); });
  ExpectKilled("perf_event_open", [] { ::syscall(SYS_perf_event_open, nullptr, 0, 0, 0, 0); });
  ExpectKilled("executable memory", [] {
    (void)::mmap(nullptr, 4096, PROT_READ | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  });
  ExpectKilled("memory made executable", [] {
    static char page[8192];
    ::mprotect(page, 4096, PROT_READ | PROT_EXEC);
  });
  ExpectKilled("duplicating a descriptor", [] { (void)::fcntl(0, F_DUPFD, 10); });
  ExpectKilled("setuid", [] { (void)::setuid(0); });
}

TEST(Sandbox, AllowsMemoryOfAllSizes) {
  const int status = Inside([] {
    std::map<int, std::vector<char>> blocks;
    for (int round = 0; round < 3; round++) {
      for (int i = 0; i < 200; i++) blocks[i].assign(static_cast<size_t>(i) * i * 50, 'x');
      blocks.clear();
    }
    auto big = std::make_unique<std::string>(64 << 20, 'y');
    return big->back() == 'y' ? 0 : 1;
  });
  EXPECT_EQ(status, 0);
}

TEST(Sandbox, AllowsReadingARing) {
  ring::testing::TestWriter writer;
  const std::vector<uint8_t> body(8);
  writer.Write(0, 0, 0, 1, body);
  UniqueFd fd = writer.Fd();
  const int status = Inside([&] {
    auto set = ring::RingSet::Open(std::move(fd));
    if (!set) return 1;
    ring::SlotReader reader(*set, 0);
    std::vector<uint8_t> buffer(4096);
    if (!reader.Look() || !reader.Copy(buffer)) return 2;
    if (reader.Fetch() != ring::SlotReader::Step::kRecord) return 3;
    set->StoreTail(0, reader.position());
    set->StoreClosed();
    (void)ring::CloseBarrier();
    return 0;
  });
  EXPECT_EQ(status, 0);
  EXPECT_EQ(writer.slot(0)->closed, 1U);
}

TEST(Sandbox, AllowsMessagesWithDescriptorsAndFiles) {
  int ends[2];
  ASSERT_EQ(::socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends), 0);
  UniqueFd here(ends[0]);
  UniqueFd there(ends[1]);
  UniqueFd file(memfd_create("file", MFD_CLOEXEC));
  char byte = 'm';
  iovec part{&byte, 1};
  alignas(cmsghdr) char control[CMSG_SPACE(sizeof(int))] = {};
  msghdr message{};
  message.msg_iov = &part;
  message.msg_iovlen = 1;
  message.msg_control = control;
  message.msg_controllen = sizeof(control);
  cmsghdr* c = CMSG_FIRSTHDR(&message);
  c->cmsg_level = SOL_SOCKET;
  c->cmsg_type = SCM_RIGHTS;
  c->cmsg_len = CMSG_LEN(sizeof(int));
  const int fd = file.get();
  std::memcpy(CMSG_DATA(c), &fd, sizeof(fd));
  ASSERT_EQ(::sendmsg(here.get(), &message, 0), 1);
  const int status = Inside([&] {
    pollfd p{there.get(), POLLIN, 0};
    timespec second{1, 0};
    if (::ppoll(&p, 1, &second, nullptr) != 1) return 1;
    if (::recvmsg(there.get(), &message, MSG_CMSG_CLOEXEC) != 1) return 2;
    int got = -1;
    std::memcpy(&got, CMSG_DATA(CMSG_FIRSTHDR(&message)), sizeof(got));
    if (::pwrite(got, "hello", 5, 0) != 5 || ::ftruncate(got, 4) != 0 || ::fsync(got) != 0)
      return 3;
    return ::close(got);
  });
  EXPECT_EQ(status, 0);
  char text[8] = {};
  EXPECT_EQ(::pread(file.get(), text, sizeof(text), 0), 4);
  EXPECT_STREQ(text, "hell");
}

// What `make` returns, from a process of its own: this one stays as it is.
std::string Elsewhere(const std::function<std::string()>& make) {
  int ends[2];
  EXPECT_EQ(::pipe2(ends, O_CLOEXEC), 0);
  UniqueFd from(ends[0]);
  UniqueFd to(ends[1]);
  const pid_t pid = ::fork();
  if (pid == 0) {
    const std::string text = make();
    const bool whole =
        ::write(to.get(), text.data(), text.size()) == static_cast<ssize_t>(text.size());
    ::syscall(SYS_exit_group, whole ? 0 : 1);
  }
  to.reset();
  std::string text;
  char part[4096];
  for (ssize_t n = 0; (n = ::read(from.get(), part, sizeof(part))) > 0;)
    text.append(part, static_cast<size_t>(n));
  ::waitpid(pid, nullptr, 0);
  return text;
}

// OpenSSL has seen nothing but Prepare before the sandbox, as in the consumer.
TEST(Sandbox, AllowsTls) {
  const std::string pems = Elsewhere([] {
    const http::Validity today{.now = std::chrono::system_clock::now(),
                               .lifetime = std::chrono::hours(24)};
    const auto authority = http::MakeAuthority("ca", today);
    const auto server = http::MakeServerCertificate(*authority, {"relay.svc"}, today);
    return authority->certificate_pem + "|" + server->certificate_pem + "|" + server->key_pem;
  });
  const size_t first = pems.find('|');
  const size_t last = pems.rfind('|');
  ASSERT_LT(first, last);
  const int status = Inside(
      [&] {
        const auto trust = tls::ClientContext::Make(pems.substr(0, first));
        const auto identity = tls::ServerContext::Make(pems.substr(first + 1, last - first - 1),
                                                       pems.substr(last + 1));
        if (!trust || !identity) return 1;
        auto client = tls::Engine::Connect(*trust, "relay.svc");
        auto server = tls::Engine::Accept(*identity);
        if (!client || !server) return 2;
        while (!client->out().empty() || !server->out().empty()) {
          for (auto [from, to] : {std::pair{&*client, &*server}, std::pair{&*server, &*client}}) {
            const std::vector<uint8_t> bytes(from->out().begin(), from->out().end());
            from->Sent(bytes.size());
            if (!to->Receive(bytes)) return 3;
          }
        }
        const std::vector<uint8_t> sent(100'000, 7);
        if (!client->established() || !client->Write(sent)) return 4;
        const std::vector<uint8_t> bytes(client->out().begin(), client->out().end());
        std::vector<uint8_t> got(sent.size());
        if (!server->Receive(bytes) || server->Read(got).value_or(0) != got.size()) return 5;
        // A certificate that is refused takes other ways through OpenSSL.
        auto other = tls::Engine::Connect(*trust, "other.svc");
        auto again = tls::Engine::Accept(*identity);
        const std::vector<uint8_t> hello(other->out().begin(), other->out().end());
        (void)again->Receive(hello);
        const std::vector<uint8_t> answer(again->out().begin(), again->out().end());
        return other->Receive(answer) ? 6 : 0;
      },
      tls::Prepare);
  EXPECT_EQ(status, 0);
}

}  // namespace
}  // namespace weft::consumer
