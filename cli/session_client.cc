// SPDX-License-Identifier: Apache-2.0
// See session_client.h.
#include "cli/session_client.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <memory>
#include <thread>

#include "lib/base/cgroup.h"

namespace weft::cli {
namespace {

using std::chrono::milliseconds;
using Clock = std::chrono::steady_clock;

// Starting three processes takes milliseconds; a machine that is busy, or sanitized, needs
// patience.
constexpr milliseconds kStartTime{120'000};
// What the keeper says of failed starts before weft gives up; it says one thing per failure.
constexpr size_t kStartFailures = 5;
// For an agent that is being restarted.
constexpr milliseconds kReconnectTime{120'000};
constexpr milliseconds kRetry{20};
// Time for consumers to flush. The keeper kills a consumer that exceeds the keeper's own limit.
constexpr milliseconds kEndTime{40'000};

}  // namespace

Result<SessionClient> SessionClient::Begin(const InstallTree& tree) {
  ClearAbandonedFolders(RuntimeFolder());
  SessionClient client;
  WEFT_ASSIGN(client.folder_, SessionFolder::Make());
  const std::string& name = client.folder_.path();
  auto keeper =
      ipc::StartChild(tree.bin + "/weft-keeper", {"--dir", name, "--bin", tree.bin, "--owner-fd",
                                                  std::to_string(ipc::kKeeperFd), "--remove-dir"});
  if (!keeper) {
    client.folder_.Remove();
    return std::unexpected(keeper.error());
  }
  client.keeper_ = std::move(*keeper);
  Status started = client.WaitForKeeper(kStartTime);
  if (started) started = client.Connect(kStartTime);
  if (started) return client;
  client.Destroy();
  return std::unexpected(started.error());
}

Result<SessionClient> SessionClient::Attach(const std::string& folder) {
  SessionClient client;
  client.attached_ = folder;
  WEFT_TRY(client.Connect(milliseconds(0)));
  return client;
}

// Notices are kept; a Hello says that the agent is there.
void SessionClient::ReadKeeper() {
  while (keeper_.connection.valid()) {
    auto received = keeper_.connection.Receive();
    if (!received) return keeper_.connection.Close();
    if (!received->has_value()) return;
    if (auto* notice = std::get_if<ipc::Notice>(&**received))
      notices_.push_back(std::move(notice->message));
    greeted_ |= std::holds_alternative<ipc::Hello>(**received);
  }
}

Status SessionClient::WaitForKeeper(milliseconds timeout) {
  const auto deadline = Clock::now() + timeout;
  while (true) {
    ReadKeeper();
    if (greeted_) return {};
    const bool late = Clock::now() >= deadline;
    if (keeper_.connection.valid() && notices_.size() < kStartFailures && !late) {
      std::this_thread::sleep_for(kRetry / 10);
      continue;
    }
    std::string why = "weft-keeper did not start weft-agent and weft-consumer";
    if (!notices_.empty()) why += ": " + notices_.front();
    return Fail(ErrorCode::kTimeout, why);
  }
}

Status SessionClient::Connect(milliseconds timeout) {
  const auto deadline = Clock::now() + timeout;
  while (true) {
    auto channel = ipc::Connection::ConnectTo((attached_.empty() ? folder_.path() : attached_) +
                                              "/session.sock");
    if (channel) {
      agent_ = std::move(*channel);
      return {};
    }
    if (keeper_.pid > 0) ReadKeeper();
    if (lost())
      return Fail(ErrorCode::kClosed,
                  "weft-keeper ended, and the recording with it; the trace can be read up to that "
                  "moment");
    if (Clock::now() >= deadline) return std::unexpected(channel.error());
    std::this_thread::sleep_for(kRetry);
  }
}

Status SessionClient::Ask(const std::function<ipc::Message()>& make) {
  asked_ = make;
  Status sent = agent_.Send(make());
  if (sent || sent.error().code != ErrorCode::kClosed || keeper_.pid < 0) return sent;
  WEFT_TRY(Connect(kReconnectTime));
  return agent_.Send(make());
}

// An agent that died in the middle may have the session on disk, or not: its successor knows.
Status SessionClient::Create(ipc::CreateSession command) {
  WEFT_TRY(Ask([command = std::make_shared<ipc::CreateSession>(std::move(command))] {
    ipc::CreateSession copy;
    copy.traces.reset(fcntl(command->traces.get(), F_DUPFD_CLOEXEC, 3));
    copy.file = command->file;
    copy.output = command->output;
    copy.relay = command->relay;
    copy.ctf_version = command->ctf_version;
    copy.programs = command->programs;
    copy.uid = command->uid;
    copy.attach = command->attach;
    return copy;
  }));
  return WaitFor([](const ipc::SessionState& state) { return state.phase != ipc::Phase::kNone; });
}

Status SessionClient::Start() {
  WEFT_TRY(Ask([] { return ipc::StartSession{}; }));
  // A short duration may be over before all is ready.
  return WaitFor([](const ipc::SessionState& state) { return state.phase >= ipc::Phase::kReady; });
}

Status SessionClient::WaitFor(const std::function<bool(const ipc::SessionState&)>& reached) {
  const auto deadline = Clock::now() + kReconnectTime;
  while (true) {
    const auto state = Poll(kRetry);
    if (state && reached(*state)) {
      cgroup_ = state->cgroup;
      return {};
    }
    if (!state && state.error().code != ErrorCode::kTimeout) return std::unexpected(state.error());
    if (Clock::now() >= deadline)
      return Fail(ErrorCode::kTimeout, "weft-agent does not answer; record again");
  }
}

Status SessionClient::RequestStop() {
  return Ask([] { return ipc::StopSession{}; });
}

void SessionClient::DumpState() {
  if (agent_.valid()) (void)agent_.Send(ipc::DumpState{});
}

Status SessionClient::Query() {
  Status sent = agent_.valid() ? agent_.Send(ipc::QuerySession{})
                               : Status(Fail(ErrorCode::kClosed, "no connection"));
  if (sent || sent.error().code != ErrorCode::kClosed || keeper_.pid < 0) return sent;
  return Reconnect(milliseconds(0));
}

// An agent that follows another one gets the request that the other may not have answered, and
// answers it with the session's state.
Status SessionClient::Reconnect(milliseconds timeout) {
  WEFT_TRY(Connect(timeout));
  return asked_ ? agent_.Send(asked_()) : agent_.Send(ipc::QuerySession{});
}

Result<ipc::SessionState> SessionClient::Poll(milliseconds timeout) {
  if (keeper_.pid > 0) ReadKeeper();
  auto message = agent_.Wait(timeout);
  if (!message && message.error().code == ErrorCode::kClosed && keeper_.pid > 0) {
    WEFT_TRY(Reconnect(kReconnectTime));
    return Fail(ErrorCode::kTimeout, "weft-agent was restarted");
  }
  if (!message) return std::unexpected(message.error());
  if (auto* refused = std::get_if<ipc::Refused>(&*message))
    return Fail(refused->kind == "input"    ? ErrorCode::kInvalid
                : refused->kind == "output" ? ErrorCode::kPermission
                                            : ErrorCode::kUnsupported,
                std::move(refused->message));
  if (auto* state = std::get_if<ipc::SessionState>(&*message)) return std::move(*state);
  return Fail(ErrorCode::kCorrupt, "weft-agent sent an unexpected message");
}

void SessionClient::Destroy() {
  if (keeper_.pid < 0) return;
  if (agent_.valid()) (void)agent_.Send(ipc::DestroySession{});
  const auto deadline = Clock::now() + kEndTime;
  bool ended = false;
  while (!(ended = waitpid(keeper_.pid, nullptr, WNOHANG) != 0) && Clock::now() < deadline) {
    ReadKeeper();
    // The owner's end stays open until the agent had its say. Closing it says the same to an agent
    // that follows one that died before it did.
    if (!agent_.valid() || !agent_.Receive()) {
      agent_.Close();
      keeper_.connection.Close();
    }
    std::this_thread::sleep_for(kRetry / 10);
  }
  agent_.Close();
  keeper_.connection.Close();
  if (!ended) {
    // The others end when their channels to it do.
    kill(keeper_.pid, SIGKILL);
    (void)waitpid(keeper_.pid, nullptr, 0);
  }
  keeper_.pid = -1;
  RemoveWhatIsLeft();
}

// What keeper and agent remove where they end in order.
void SessionClient::RemoveWhatIsLeft() {
  if (access(folder_.path().c_str(), F_OK) != 0) return;
  if (!cgroup_.empty()) RemoveCgroup(cgroup_);
  folder_.Remove();
}

std::vector<std::string> SessionClient::TakeNotices() {
  if (keeper_.pid > 0) ReadKeeper();
  return std::exchange(notices_, {});
}

}  // namespace weft::cli
