// SPDX-License-Identifier: Apache-2.0
// See record.h.
#include "cli/record.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/sysinfo.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <memory>
#include <optional>

#include "cli/attached.h"
#include "cli/event_check.h"
#include "cli/exit_status.h"
#include "cli/install_tree.h"
#include "cli/offered.h"
#include "cli/output_folder.h"
#include "cli/relay_address.h"
#include "cli/session_client.h"
#include "cli/summary.h"
#include "cli/traced_program.h"
#include "lib/api/filters.h"
#include "lib/api/parse.h"
#include "lib/api/write.h"
#include "lib/ipc/descriptor_budget.h"

namespace weft::cli {
namespace {

using std::chrono::milliseconds;

constexpr milliseconds kProgressInterval{500};

void Say(const std::string& text) { std::fprintf(stderr, "weft: %s\n", text.c_str()); }

int Complain(const Error& error, int status) {
  Say(error.message);
  return status;
}

// "PATH:...": the agent, which opens the file, is in another folder. What is no path, or of no
// file, stays as it is.
std::string WithAbsolutePath(const std::string& text) {
  const size_t colon = text.find(':');
  const std::string path = text.substr(0, colon);
  if (colon == std::string::npos || path.find('/') == std::string::npos) return text;
  const std::unique_ptr<char, void (*)(void*)> absolute(realpath(path.c_str(), nullptr), std::free);
  return absolute ? absolute.get() + text.substr(colon) : text;
}

api::Traces ReadTraces(const RecordOptions& options) {
  if (!options.file.empty()) return api::LoadTraces(options.file, api::CheckingFilters());
  api::ShortForm form = options.short_form;
  for (std::string& text : form.functions) text = WithAbsolutePath(text);
  for (std::string& text : form.usdt) text = WithAbsolutePath(text);
  auto trace = api::BuildTrace(form, api::CheckingFilters());
  if (!trace) return std::unexpected(trace.error());
  return std::vector<api::Trace>{std::move(*trace)};
}

std::string DefaultOutput(const std::string& name) {
  const time_t now = time(nullptr);
  tm parts{};
  localtime_r(&now, &parts);
  char stamp[32];
  strftime(stamp, sizeof(stamp), "%Y%m%d-%H%M%S", &parts);
  return name + "-" + stamp;
}

Result<UniqueFd> InMemory(const std::string& text) {
  UniqueFd fd(memfd_create("weft-traces", MFD_CLOEXEC));
  if (!fd) return FailErrno("memfd_create");
  if (write(fd.get(), text.data(), text.size()) != static_cast<ssize_t>(text.size()))
    return FailErrno("memfd");
  return fd;
}

// True if what `pid` writes to its standard output or error goes to the terminal `ours`. True also
// where that cannot be seen.
bool WritesTo(const struct stat& ours, pid_t pid) {
  for (const char* number : {"1", "2"}) {
    const std::string path = "/proc/" + std::to_string(pid) + "/fd/" + number;
    struct stat theirs{};
    if (stat(path.c_str(), &theirs) != 0) {
      if (errno == EACCES || errno == EPERM) return true;
      continue;  // it is closed, or the process is gone
    }
    if (S_ISCHR(theirs.st_mode) && theirs.st_rdev == ours.st_rdev) return true;
  }
  return false;
}

// One line on the terminal, drawn again and again. A program that writes to the same terminal would
// continue that line with its own text: while one is recorded, nothing is drawn.
class Progress {
 public:
  explicit Progress(bool wanted) : shown_(wanted && isatty(STDERR_FILENO) != 0) {
    shown_ = shown_ && fstat(STDERR_FILENO, &terminal_) == 0;
  }
  [[nodiscard]] bool CanBeDrawnBeside(const std::vector<pid_t>& programs) const {
    return shown_ &&
           std::ranges::none_of(programs, [&](pid_t pid) { return WritesTo(terminal_, pid); });
  }
  void Draw(const ipc::SessionState& state) {
    if (!shown_) return;
    std::fprintf(stderr, "\r\033[K%s", ProgressText(state).c_str());
    drawn_ = true;
  }
  void Clear() {
    if (drawn_) std::fprintf(stderr, "\r\033[K");
    drawn_ = false;
  }

 private:
  bool shown_;
  bool drawn_ = false;
  struct stat terminal_{};
};

class Recording {
 public:
  Recording(const RecordOptions& options, std::vector<api::Trace> traces)
      : options_(options), traces_(std::move(traces)), progress_(!options.quiet) {}

  int Run(const std::string& program, const InstallTree& tree) {
    const std::string name = program.substr(program.rfind('/') + 1);
    if (const int status = Prepare(name, tree); status != kExitOk) return status;
    auto traced = TracedProgram::Prepare();
    if (!traced) return Complain(traced.error(), kExitTracing);
    const Status started = traced->Start(
        program, options_.program,
        {.library = Library(tree), .folder = session_->folder(), .cgroup = session_->cgroup()});
    if (!started) {
      Say(started.error().message);
      const int status = started.error().sys_errno == ENOENT ? kExitNotFound : kExitNotExecutable;
      (void)Finish(*traced, false);
      return status;
    }
    if (!session_->cgroup().empty()) session_->DumpState();
    int status = 0;
    Follow({traced->pid()}, [&](milliseconds timeout) {
      const auto ended = traced->Wait(timeout);
      status = ended.value_or(0);
      return ended.has_value();
    });
    const int own = Finish(*traced, true);
    // As env(1) and timeout(1): who runs a program through weft sees its failure as without weft.
    return status != 0 ? status : own;
  }

  // Records the processes of --pid, and `named`.
  int RunAttached(const InstallTree& tree, const std::vector<int32_t>& named) {
    auto attached = Attached::Prepare(options_.pids, named);
    if (!attached) return Complain(attached.error(), kExitBadInput);
    if (const int status = Prepare("", tree, &*attached); status != kExitOk) return status;
    Follow(attached->pids(),
           [&](milliseconds timeout) { return attached->Wait(timeout) || Stopped(); });
    return Finish(*attached, true);
  }

 private:
  // Where the traces go; with a relay nowhere here.
  Result<OutputFolder> MakeOutput() {
    if (!options_.relay.empty()) return OutputFolder();
    return OutputFolder::Make(options_.output.empty() ? DefaultOutput(traces_.front().metadata.name)
                                                      : options_.output);
  }

  // Each Trace may have a channel of the kernel's beside the other one.
  [[nodiscard]] Status CheckDescriptors() const {
    const size_t limit = ipc::DescriptorLimit();
    const auto cpus = static_cast<size_t>(std::max(1, get_nprocs_conf()));
    const size_t needed = ipc::NeededDescriptors(2 * traces_.size(), cpus);
    if (limit >= needed) return {};
    return Fail(ErrorCode::kLimit, "the limit of open files is " + std::to_string(limit) +
                                       ", and recording needs " + std::to_string(needed) +
                                       " at least: raise the hard limit (ulimit -n)");
  }

  // `attached`: processes that run already, in place of `program`.
  int Prepare(const std::string& program, const InstallTree& tree, Attached* attached = nullptr) {
    if (const Status enough = CheckDescriptors(); !enough)
      return Complain(enough.error(), kExitTracing);
    ipc::RelayAddress relay;
    if (!options_.relay.empty()) {
      auto address = ParseRelayAddress(options_.relay);
      if (!address) return Complain(address.error(), kExitUsage);
      relay = std::move(*address);
    }
    auto output = MakeOutput();
    if (!output) return Complain(output.error(), kExitOutput);
    // Now: the file may be meant to lie in that folder.
    if (const Status writable = CheckSummaryFile(options_.summary_file); !writable) {
      output->TakeBack();
      return Complain(writable.error(), kExitUsage);
    }
    auto session = SessionClient::Begin(tree);
    if (!session) {
      output->TakeBack();
      return Complain(session.error(), kExitTracing);
    }
    session_ = std::make_unique<SessionClient>(std::move(*session));
    // Processes may have begun while the agent started.
    if (attached != nullptr) attached->AddCalled(options_.processes);
    auto text = InMemory(api::ToYaml(traces_));
    if (!text) {
      output->TakeBack();
      return Complain(text.error(), kExitTracing);
    }
    Status status =
        session_->Create({.traces = std::move(*text),
                          .file = options_.file.empty() ? "weft record" : options_.file,
                          .output = output->path(),
                          .relay = relay,
                          .ctf_version = options_.ctf_version,
                          .programs = attached ? attached->names() : program,
                          .uid = geteuid(),
                          .attach = attached ? attached->pids() : std::vector<int32_t>()});
    if (status) status = session_->Start();
    if (status) return kExitOk;
    const ErrorCode code = status.error().code;
    SayNotices();
    Complain(status.error(), kExitTracing);
    session_->Destroy();
    output->TakeBack();
    return code == ErrorCode::kInvalid      ? kExitBadInput
           : code == ErrorCode::kPermission ? kExitOutput
                                            : kExitTracing;
  }

  // "": the Traces have events of the kernel only, for which the program runs as without weft.
  // ld.so takes spaces and colons for separators.
  std::string Library(const InstallTree& tree) const {
    if (std::ranges::none_of(traces_, [](const api::Trace& t) { return t.spec.RecordsUser(); }))
      return "";
    if (tree.library.find_first_of(" :") == std::string::npos) return tree.library;
    std::string link = session_->folder() + "/libweft.so";
    return symlink(tree.library.c_str(), link.c_str()) == 0 ? link : tree.library;
  }

  template <typename Wait>
  void Follow(const std::vector<pid_t>& programs, const Wait& wait) {
    while (!wait(kProgressInterval)) {
      if (!progress_.CanBeDrawnBeside(programs)) {
        progress_.Clear();
        continue;
      }
      if (!session_->Query()) continue;
      if (auto state = session_->Poll(milliseconds(50))) progress_.Draw(*state);
    }
  }

  // The duration of every Trace is over, or weft's own processes are gone. The attached processes
  // go on, so only this check ends the recording.
  bool Stopped() {
    if (!session_->Query()) return session_->lost();
    const auto state = session_->Poll(milliseconds(50));
    return state && state->phase == ipc::Phase::kStopped;
  }

  template <typename Followed>
  int Finish(Followed& followed, bool show) {
    Status status = session_->RequestStop();
    std::optional<ipc::SessionState> state;
    auto next_query = std::chrono::steady_clock::now() + kProgressInterval;
    while (status) {
      auto answer = session_->Poll(milliseconds(50));
      if (answer) {
        progress_.Draw(*answer);
        if (answer->phase == ipc::Phase::kStopped) {
          state = std::move(*answer);
          break;
        }
      } else if (answer.error().code != ErrorCode::kTimeout) {
        status = std::unexpected(answer.error());
      }
      if (followed.Interrupted()) {
        progress_.Clear();
        Say("interrupted: what is left is written in the background");
        return kExitTracing;
      }
      if (std::chrono::steady_clock::now() >= next_query) {
        next_query += kProgressInterval;
        (void)session_->Query();
      }
    }
    progress_.Clear();
    if (!state) {
      SayNotices();
      if (session_->lost()) session_->Destroy();
      return Complain(status.error(), kExitTracing);
    }
    const bool shown = !show || Show(*state);
    session_->Destroy();
    if (OutputFailed(*state) || !shown) return kExitOutput;
    if (Incomplete(*state)) return kExitTracing;
    if (!show || options_.allow_missing || !HasHookedNothing(*state)) return kExitOk;
    if (state->searched == 0) {
      Say("nothing was recorded, because no process was ready to be hooked: none loaded "
          "libweft.so, or weft could not search it in time. See the lines above for the reason; if "
          "there is none, record longer. --allow-missing takes this for success");
      return kExitTracing;
    }
    Say("nothing was recorded, because no function was hooked: the lines above have the reasons; "
        "--allow-missing takes this for success");
    return kExitBadInput;
  }

  // Returns whether the Traces record functions alone, and not one was hooked. An agent that came
  // after another one does not know what that hooked.
  [[nodiscard]] bool HasHookedNothing(const ipc::SessionState& state) const {
    return state.hooked == 0 && state.recoveries == 0 &&
           std::ranges::all_of(traces_,
                               [](const api::Trace& t) { return t.spec.RecordsFunctionsOnly(); }) &&
           std::ranges::all_of(state.traces, [](const ipc::TraceState& t) {
             return t.counts.recorded == 0 && t.counts.delivered == 0;
           });
  }

  // Returns whether weft could not take in all ring sets.
  static bool Incomplete(const ipc::SessionState& state) {
    for (const ipc::TraceState& trace : state.traces) {
      if (trace.counts.tail_unknown != 0) return true;
      for (const auto& [reason, count] : trace.counts.lost)
        if (count != 0 && reason.ends_with("/too_many_rings")) return true;
    }
    return false;
  }

  void SayNotices() {
    for (const std::string& notice : session_->TakeNotices()) Say(notice);
  }

  // False: the file of --summary cannot be written.
  bool Show(const ipc::SessionState& state) {
    if (!options_.quiet) {
      std::fputs(SummaryText(state).c_str(), stderr);
    } else {
      for (const std::string& notice : state.notices) Say(notice);
    }
    if (options_.summary_file.empty()) return true;
    std::FILE* file = std::fopen(options_.summary_file.c_str(), "we");
    bool written = file != nullptr && std::fputs(SummaryJson(state).c_str(), file) >= 0;
    if (file != nullptr) written = std::fclose(file) == 0 && written;
    if (!written) Say(FailErrno(options_.summary_file).error().message);
    return written;
  }

  const RecordOptions& options_;
  std::vector<api::Trace> traces_;
  Progress progress_;
  std::unique_ptr<SessionClient> session_;
};

// kExitOk: the events of the Traces can be there.
int CheckOffered(const RecordOptions& options, const api::Traces& traces,
                 const Result<Offered>& offered, const std::string& who) {
  if (!offered) return kExitOk;
  const EventCheck check = CheckEvents(*traces, *offered, who);
  for (const std::string& line : check.problems) Say(line);
  return check.is_wrong && !options.allow_missing ? kExitBadInput : kExitOk;
}

}  // namespace

int RunRecord(const RecordOptions& options) {
  std::vector<int32_t> named;
  for (const std::string& name : options.processes) {
    const std::vector<int32_t> pids = ProcessesCalled(name);
    if (pids.empty()) {
      Say("no process is called \"" + name +
          "\": --process takes the name of a process (ps -e) or of "
          "its program's file; try --pid PID");
      return kExitBadInput;
    }
    named.insert(named.end(), pids.begin(), pids.end());
  }
  auto traces = ReadTraces(options);
  if (!traces) {
    for (const api::Diagnostic& diagnostic : traces.error()) {
      Say(diagnostic.ToString());
      std::fputs(diagnostic.excerpt.c_str(), stderr);
    }
    return kExitBadInput;
  }
  const auto tree = FindInstallTree();
  if (options.program.empty()) {
    if (!tree) return Complain(tree.error(), kExitTracing);
    std::vector<int32_t> pids = options.pids;
    pids.insert(pids.end(), named.begin(), named.end());
    for (const int32_t pid : pids) {
      const int status =
          CheckOffered(options, traces, OfferedByProcess(pid), "process " + std::to_string(pid));
      if (status != kExitOk) return status;
    }
    return Recording(options, std::move(*traces)).RunAttached(*tree, named);
  }
  const auto program = FindProgram(options.program.front());
  if (!program)
    return Complain(program.error(), program.error().code == ErrorCode::kNotFound
                                         ? kExitNotFound
                                         : kExitNotExecutable);
  if (!tree) return Complain(tree.error(), kExitTracing);
  const int status = CheckOffered(options, traces, OfferedByProgram(*program), *program);
  if (status != kExitOk) return status;
  return Recording(options, std::move(*traces)).Run(*program, *tree);
}

}  // namespace weft::cli
