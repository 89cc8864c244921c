// SPDX-License-Identifier: Apache-2.0
// See traced_program.h.
#include "cli/traced_program.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/signalfd.h>
#include <sys/wait.h>

#include <csignal>
#include <cstdlib>
#include <cstring>

#include "cli/exit_status.h"
#include "lib/base/signal_fd.h"

extern char** environ;

namespace weft::cli {
namespace {

constexpr int kPassedOn[] = {SIGHUP,  SIGINT,  SIGQUIT,  SIGTERM, SIGUSR1,
                             SIGUSR2, SIGALRM, SIGWINCH, SIGCONT};

sigset_t HeldSignals() {
  sigset_t set;
  sigemptyset(&set);
  sigaddset(&set, SIGCHLD);
  for (const int signal : kPassedOn) sigaddset(&set, signal);
  return set;
}

std::vector<std::string> Environment(const TracedProgram::Tracing& tracing) {
  std::vector<std::string> out;
  std::string preload;
  if (tracing.library.empty()) {
    for (char** entry = environ; *entry != nullptr; ++entry) out.emplace_back(*entry);
    return out;
  }
  for (char** entry = environ; *entry != nullptr; ++entry) {
    const std::string_view text(*entry);
    if (text.starts_with("WEFT_DIR=") || text.starts_with("WEFT_CONTAINER=")) continue;
    if (text.starts_with("LD_PRELOAD="))
      preload = text.substr(strlen("LD_PRELOAD="));
    else
      out.emplace_back(text);
  }
  if (!preload.empty()) preload += ":";
  out.push_back("LD_PRELOAD=" + preload + tracing.library);
  out.push_back("WEFT_DIR=" + tracing.folder);
  return out;
}

std::vector<char*> Pointers(const std::vector<std::string>& texts) {
  std::vector<char*> out;
  out.reserve(texts.size() + 1);
  for (const std::string& text : texts) out.push_back(const_cast<char*>(text.c_str()));
  out.push_back(nullptr);
  return out;
}

}  // namespace

Result<TracedProgram> TracedProgram::Prepare() {
  TracedProgram program;
  WEFT_ASSIGN(program.signals_, HoldSignals(HeldSignals()));
  return program;
}

// fork and not posix_spawn: an error of execve comes with its errno, for which shells have
// statuses.
Status TracedProgram::Start(const std::string& path, const std::vector<std::string>& arguments,
                            const Tracing& tracing) {
  int ends[2];
  if (pipe2(ends, O_CLOEXEC) != 0) return FailErrno("pipe");
  UniqueFd reading(ends[0]), writing(ends[1]);
  UniqueFd cgroup;
  if (!tracing.cgroup.empty()) {
    const std::string members = tracing.cgroup + "/cgroup.procs";
    cgroup.reset(open(members.c_str(), O_WRONLY | O_CLOEXEC));
    if (!cgroup) return FailErrno(members);
  }
  const std::vector<std::string> environment = Environment(tracing);
  const std::vector<char*> argv = Pointers(arguments);
  const std::vector<char*> envp = Pointers(environment);
  const sigset_t held = HeldSignals();
  pid_ = fork();
  if (pid_ < 0) return FailErrno("fork");
  if (pid_ == 0) {
    sigprocmask(SIG_UNBLOCK, &held, nullptr);
    // "0" is who writes it.
    if (!cgroup || write(cgroup.get(), "0", 1) == 1) execve(path.c_str(), argv.data(), envp.data());
    const int e = errno;
    (void)!write(writing.get(), &e, sizeof(e));
    _exit(kExitNotExecutable);
  }
  writing.reset();
  int e = 0;
  ssize_t n;
  do {
    n = read(reading.get(), &e, sizeof(e));
  } while (n < 0 && errno == EINTR);
  if (n != ssize_t{sizeof(e)}) return {};
  waitpid(pid_, nullptr, 0);
  pid_ = -1;
  return std::unexpected(Error{ErrorCode::kIo, e, path + ": " + std::strerror(e)});
}

// A terminal sends ^C and ^\ to the program itself: it is in the foreground with us.
void TracedProgram::Forward(int signal, int code) const {
  const bool from_terminal = code == SI_KERNEL && (signal == SIGINT || signal == SIGQUIT ||
                                                   signal == SIGWINCH || signal == SIGHUP);
  if (!from_terminal && pid_ > 0) kill(pid_, signal);
}

std::optional<int> TracedProgram::Wait(std::chrono::milliseconds timeout) {
  pollfd p{signals_.get(), POLLIN, 0};
  (void)poll(&p, 1, static_cast<int>(timeout.count()));
  signalfd_siginfo info;
  while (read(signals_.get(), &info, sizeof(info)) == ssize_t{sizeof(info)})
    if (info.ssi_signo != SIGCHLD) Forward(static_cast<int>(info.ssi_signo), info.ssi_code);
  int status = 0;
  if (pid_ < 0 || waitpid(pid_, &status, WNOHANG) != pid_) return std::nullopt;
  pid_ = -1;
  return WIFSIGNALED(status) ? kExitSignalBase + WTERMSIG(status) : WEXITSTATUS(status);
}

bool TracedProgram::Interrupted() {
  bool interrupted = false;
  signalfd_siginfo info;
  while (read(signals_.get(), &info, sizeof(info)) == ssize_t{sizeof(info)})
    interrupted |= info.ssi_signo == SIGINT || info.ssi_signo == SIGTERM ||
                   info.ssi_signo == SIGHUP || info.ssi_signo == SIGQUIT;
  return interrupted;
}

}  // namespace weft::cli
