// SPDX-License-Identifier: Apache-2.0
// See local_mode.h.
#include "node-agent/agent/local/local_mode.h"

#include <fcntl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>

#include "lib/abi/control.h"
#include "lib/base/cgroup.h"
#include "lib/base/copy_fd.h"
#include "lib/base/kill_point.h"
#include "lib/ipc/descriptor_budget.h"
#include "lib/ipc/local_socket.h"
#include "node-agent/agent/base/limits.h"
#include "node-agent/agent/base/memory_limit.h"
#include "node-agent/agent/kernel/program_cgroup.h"
#include "node-agent/agent/local/local_module.h"
#include "node-agent/attach/load_library.h"

namespace weft::agent {
namespace {

constexpr const char* kClientsKey = "clients";
// Kinds of ipc::Refused: the request, the output, weft itself.
constexpr const char* kInput = "input";
constexpr const char* kOutput = "output";
constexpr const char* kTracing = "tracing";

Result<std::string> ReadWhole(const UniqueFd& fd) {
  struct stat st{};
  if (fstat(fd.get(), &st) != 0) return FailErrno("Traces");
  if (st.st_size < 0 || static_cast<size_t>(st.st_size) > kMaxTracesBytes)
    return Fail(ErrorCode::kLimit, "the Traces are larger than 4 MiB");
  std::string text(static_cast<size_t>(st.st_size), '\0');
  size_t done = 0;
  while (done < text.size()) {
    const ssize_t n =
        pread(fd.get(), text.data() + done, text.size() - done, static_cast<off_t>(done));
    if (n < 0) return FailErrno("Traces");
    if (n == 0) break;
    done += static_cast<size_t>(n);
  }
  text.resize(done);
  return text;
}

}  // namespace

// --- start ---------------------------------------------------------------------------------------

bool LocalMode::TakeKept(ipc::Kept& kept) {
  if (kept.key != kClientsKey) return false;
  socket_ = std::move(kept.fd);
  return true;
}

Status LocalMode::Restore() {
  AgentParts& parts = agent_.parts();
  const std::string& dir = parts.sessions.dir();
  const Status loaded = parts.sessions.Load(kLocalSession);
  if (!loaded && loaded.error().code != ErrorCode::kNotFound) return loaded;
  if (loaded && !session()->output.empty()) {
    WEFT_ASSIGN(OutputFolder folder, OutputFolder::Open(session()->output));
    parts.requests.SetOutput(std::move(folder));
  }
  WEFT_TRY(
      parts.pools.Open("", dir + "/local" WEFT_MEMORY_POOL_SUFFIX, RingBudget(OwnMemoryLimit())));
  WEFT_TRY(parts.areas.Open("", dir + "/local.ctl"));
  WEFT_TRY(parts.doorbells.Open("", dir));
  if (!socket_) {
    WEFT_ASSIGN(socket_, ipc::ListenAt(dir, kClientsSocket, 0600));
    agent_.ToKeeper(ipc::Keep{kClientsKey, "", CopyFd(socket_)});
  }
  return agent_.loop().Watch(socket_.get(), [this] { OnClientConnects(); });
}

void LocalMode::Resumed() {
  // An earlier agent died before it asked for the consumer.
  if (session() != nullptr && agent_.parts().consumers.Find(kConsumerName) == nullptr)
    agent_.parts().consumers.Start(kConsumerName);
  agent_.TakeArrivals();
}

// --- the cli -------------------------------------------------------------------------------------

void LocalMode::OnClientConnects() {
  UniqueFd fd(accept4(socket_.get(), nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK));
  // The socket's mode (0600) says who may connect: this user.
  if (!fd || clients_.size() >= ipc::BudgetOf(ipc::DescriptorLimit()).waiting) return;
  const uint64_t number = next_client_++;
  Client& client = clients_[number];
  client.connection = ipc::Connection(std::move(fd));
  (void)agent_.loop().WatchConnection(
      client.connection, [this, number](auto message) { OnClient(number, std::move(message)); });
}

void LocalMode::OnClient(uint64_t number, Result<ipc::Message> message) {
  auto it = clients_.find(number);
  if (it == clients_.end()) return;
  Client& client = it->second;
  if (!message) {
    agent_.loop().Unwatch(client.connection.fd());
    clients_.erase(it);
    return;
  }
  if (const auto* create = std::get_if<ipc::CreateSession>(&*message)) {
    Create(client, *create);
  } else if (std::holds_alternative<ipc::StartSession>(*message)) {
    client.waits_for_start = true;
    StartSession();
  } else if (std::holds_alternative<ipc::StopSession>(*message)) {
    client.waits_for_stop = true;
    StopSession();
  } else if (std::holds_alternative<ipc::DumpState>(*message)) {
    if (session() != nullptr) agent_.parts().kernel.DumpState(*session());
  } else if (std::holds_alternative<ipc::QuerySession>(*message)) {
    (void)client.connection.Send(State());
  } else if (std::holds_alternative<ipc::DestroySession>(*message)) {
    OwnerGone();
  }
}

void LocalMode::Create(Client& client, const ipc::CreateSession& command) {
  // The owner asks again if an earlier agent died before it answered.
  if (session() == nullptr) {
    if (const auto refusal = Make(command)) {
      (void)client.connection.Send(ipc::Refused{refusal->kind, refusal->why});
      return;
    }
    KillPoint("created");
    agent_.parts().consumers.Start(kConsumerName);
    KillPoint("consumer_asked_for");
  }
  (void)client.connection.Send(State());
}

std::optional<LocalMode::Refusal> LocalMode::Make(const ipc::CreateSession& command) {
  const auto refuse = [](const Error& error, const char* kind) {
    return Refusal{kind, error.message};
  };
  const auto text = ReadWhole(command.traces);
  if (!text) return refuse(text.error(), kInput);
  auto session = Session::Create(command, *text, [this] { return ProbeOrLoadModule(modules_); });
  if (!session) return refuse(session.error(), kInput);
  // Processes that run already have another folder, and perhaps another control group.
  const uint64_t limit = command.attach.empty() ? OwnMemoryLimit() : 0;
  for (SessionChannel& channel : session->channels)
    if (!channel.of_kernel()) channel.FitIntoMemory(limit);
  if (command.relay.host.empty()) {
    auto output = OutputFolder::Open(command.output);
    if (!output) return refuse(output.error(), kOutput);
    agent_.parts().requests.SetOutput(std::move(*output));
  }
  if (session->RecordsKernel())
    if (auto refusal = MakeInKernel(*session, command)) return refusal;
  const std::string cgroup = session->cgroup;
  AttachedProcesses& attached = agent_.parts().attached;
  if (command.attach.empty()) {
    attached.AddStarter();
  } else if (const Status done =
                 attached.Attach(command.attach, [this](int32_t pid) { return LoadInto(pid); });
             !done) {
    Unmake(*session);
    attached.RemoveAll(command.attach);
    return refuse(done.error(), kInput);
  }
  SessionStore& sessions = agent_.parts().sessions;
  if (const Status saved = sessions.Add(kLocalSession, std::move(*session)); !saved) {
    if (!cgroup.empty()) RemoveCgroup(cgroup);
    attached.RemoveAll(command.attach);
    return refuse(saved.error(), kTracing);
  }
  return std::nullopt;
}

// This comes before the output folder has a file: what this kernel refuses must leave none.
std::optional<LocalMode::Refusal> LocalMode::MakeInKernel(Session& session,
                                                          const ipc::CreateSession& command) {
  if (const Status scoped = ScopeToProgram(session, command); !scoped)
    return Refusal{kInput, scoped.error().message};
  const Status made = agent_.parts().kernel.Make(session);
  if (made) return std::nullopt;
  Unmake(session);
  const ErrorCode code = made.error().code;
  const bool is_asked_wrong = code == ErrorCode::kInvalid || code == ErrorCode::kNotFound ||
                              code == ErrorCode::kUnsupported || code == ErrorCode::kLimit;
  return Refusal{is_asked_wrong ? kInput : kTracing, made.error().message};
}

void LocalMode::Unmake(const Session& session) {
  agent_.parts().kernel.Forget(session);
  if (!session.cgroup.empty()) RemoveCgroup(session.cgroup);
}

// The name is that of this session's folder, which no other session has at the same time.
Status LocalMode::ScopeToProgram(Session& session, const ipc::CreateSession& command) {
  if (!command.attach.empty()) {
    return Fail(ErrorCode::kInvalid,
                "kernel events of a program that runs already cannot be recorded: start it with "
                "weft record ... -- PROGRAM");
  }
  const std::string& dir = agent_.parts().sessions.dir();
  WEFT_ASSIGN(session.cgroup, MakeProgramCgroup(dir.substr(dir.rfind('/') + 1)));
  return {};
}

// The library finds no control file of this name, and makes an area of its own: a later recording
// can adopt that, too.
Status LocalMode::LoadInto(int32_t pid) {
  Status loaded = attach::LoadLibrary(pid, {.library = attach::OwnLibrary(),
                                            .folder = agent_.parts().sessions.dir(),
                                            .container = "attached",
                                            .is_meant = {}});
  if (loaded) return loaded;
  return std::unexpected(std::move(loaded).error().Context(
      "process " + std::to_string(pid) + ": libweft.so cannot be loaded into it"));
}

void LocalMode::UpdateHooks() {
  if (session() == nullptr) return;
  std::vector<hooks::HookRule> rules;
  bool any = false;
  for (const SessionChannel& channel : session()->channels) {
    any = any || !channel.functions.empty();
    if (channel.phase == ChannelPhase::kOn && !channel.paused)
      rules.insert(rules.end(), channel.functions.begin(), channel.functions.end());
  }
  const std::set<uint64_t> own_areas = agent_.parts().areas.AdoptedFor("");
  const bool gives_back = detaches_ && !own_areas.empty();
  if (!any && !gives_back) return;
  const Status set = hooks_.SetContainers({{.name = "",
                                            .pod_uid = "",
                                            .folder = agent_.parts().sessions.dir(),
                                            .control = "local.ctl",
                                            .rules = std::move(rules),
                                            .own_areas = own_areas,
                                            .gives_back = gives_back}});
  if (!set)
    Note((gives_back ? "functions of the program stay changed: " : "functions are not recorded: ") +
         set.error().message);
}

void LocalMode::StartSession() {
  if (phase() == ipc::Phase::kCreated) agent_.parts().channels.Start(*session());
  UpdateHooks();
  AnswerWaiting();
}

void LocalMode::StopSession() {
  agent_.parts().channels.Stop(
      [](const SessionChannel& c) { return c.phase == ChannelPhase::kOn; });
  UpdateHooks();
  AnswerWaiting();
}

// --- what became of it ---------------------------------------------------------------------------

void LocalMode::SessionChanged(Session&) {
  UpdateHooks();
  AnswerWaiting();
}

void LocalMode::RefuseStarts(const char* kind, const std::string& why) {
  for (auto& [number, client] : clients_) {
    if (!client.waits_for_start) continue;
    client.waits_for_start = false;
    (void)client.connection.Send(ipc::Refused{kind, why});
  }
}

// A channel with which a START cannot begin is not waited for at the end either; one that fails
// later may come back.
void LocalMode::ChannelFailed(Session& session, const std::string& why) {
  const bool starts =
      std::ranges::any_of(clients_, [](const auto& entry) { return entry.second.waits_for_start; });
  for (SessionChannel& channel : session.channels)
    if (starts && !channel.ready) channel.refused = true;
  RefuseStarts(kOutput, why);
}

void LocalMode::ConsumerFailed(const std::string&, const std::string& why) {
  RefuseStarts(kTracing, "weft-consumer does not start: " + why);
}

void LocalMode::OwnerGone() {
  owner_gone_ = true;
  KillPoint("owner_gone");
  StopSession();
}

void LocalMode::Tick(int64_t now_ns) {
  UpdateHooks();
  AnswerWaiting();
  GiveUpRefused(now_ns);
  if (!owner_gone_) return;
  if (owner_gone_ns_ == 0) owner_gone_ns_ = now_ns;
  const bool has_relay = session() != nullptr && !session()->relay.host.empty();
  if (has_relay && std::chrono::nanoseconds(now_ns - owner_gone_ns_) >= kLastRelayWait)
    agent_.parts().channels.GiveUp([](const SessionChannel&) { return true; }, "relay",
                                   session()->LossAtRelay());
  const ipc::Phase now = phase();
  if (now != ipc::Phase::kNone && now != ipc::Phase::kCreated && now != ipc::Phase::kStopped)
    return;
  if (!detaches_) {
    detaches_ = true;
    UpdateHooks();
  }
  if (!hooks_.is_settled()) return;
  if (session() != nullptr && !session()->cgroup.empty()) RemoveCgroup(session()->cgroup);
  agent_.Quit();
}

// A relay that is away may come back while `weft record` waits for it. One that refuses what is
// left, such as packets that are larger than its quota, would let it wait for ever.
void LocalMode::GiveUpRefused(int64_t now_ns) {
  const bool is_refused = phase() == ipc::Phase::kStopping && !session()->relay_refusal.empty();
  if (!is_refused) {
    refused_ns_ = 0;
    return;
  }
  if (refused_ns_ == 0) refused_ns_ = now_ns;
  if (std::chrono::nanoseconds(now_ns - refused_ns_) < kLastRefusedWait) return;
  Note("gave up on the relay, which refuses what is left: " + session()->relay_refusal +
       "; it counts as lost (relay/refused)");
  agent_.parts().channels.GiveUp([](const SessionChannel&) { return true; }, "relay",
                                 session()->LossAtRelay());
  refused_ns_ = now_ns;
}

void LocalMode::AnswerWaiting() {
  const ipc::Phase now = phase();
  for (auto& [number, client] : clients_) {
    const bool started = client.waits_for_start && now != ipc::Phase::kCreated &&
                         now != ipc::Phase::kStarting && hooks_.is_settled();
    const bool stopped =
        client.waits_for_stop && hooks_.is_settled() &&
        (now == ipc::Phase::kStopped || now == ipc::Phase::kNone || now == ipc::Phase::kCreated);
    if (!started && !stopped) continue;
    if (started) client.waits_for_start = false;
    if (stopped) client.waits_for_stop = false;
    (void)client.connection.Send(State());
  }
}

ipc::Phase LocalMode::phase() const {
  return session() == nullptr ? ipc::Phase::kNone : session()->phase();
}

ipc::SessionState LocalMode::State() {
  // What it notes comes before it is settled.
  const bool has_settled = hooks_.is_settled();
  for (std::string& note : hooks_.TakeNotes()) Note(std::move(note));
  ipc::SessionState state;
  if (session() != nullptr) state = session()->State();
  // Programs that run already are hooked before the user is told that they are recorded, and hooks
  // are off, or it is known why not, before the user is told that this has ended.
  if (state.phase == ipc::Phase::kReady && !has_settled) state.phase = ipc::Phase::kStarting;
  if (state.phase == ipc::Phase::kStopped && !has_settled) state.phase = ipc::Phase::kStopping;
  state.notices.insert(state.notices.end(), notices_.begin(), notices_.end());
  for (std::string& line : hooks_.Summary()) state.notices.push_back(std::move(line));
  state.hooked = hooks_.Hooked();
  state.searched = hooks_.Searched();
  state.processes = agent_.parts().processes.Alive();
  state.recoveries = agent_.recoveries();
  return state;
}

void LocalMode::Note(std::string text) {
  if (notices_.size() >= kMaxNotices) notices_.erase(notices_.begin());
  notices_.push_back(std::move(text));
}

}  // namespace weft::agent
