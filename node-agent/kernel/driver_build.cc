// SPDX-License-Identifier: Apache-2.0
// See driver_build.h.
#include "node-agent/kernel/driver_build.h"

#include <fcntl.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <vector>

#include "lib/base/empty_input.h"
#include "lib/base/unique_fd.h"
#include "node-agent/kernel/driver.h"
#include "node-agent/kernel/limits.h"

namespace weft::kernel {
namespace {

namespace fs = std::filesystem;

struct Ran {
  int status = -1;
  std::string output;  // its first kMaxBuildOutput bytes
};

// Runs in the child of a process with threads, so it makes system calls only.
[[noreturn]] void Become(const std::string& root, char* const* words, char* const* environment,
                         int input, int output) {
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (dup2(input, STDIN_FILENO) < 0 || dup2(output, STDOUT_FILENO) < 0 ||
      dup2(output, STDERR_FILENO) < 0)
    _exit(126);
  if (!root.empty() && (chroot(root.c_str()) != 0 || chdir("/") != 0)) _exit(126);
  execvpe(words[0], words, environment);
  _exit(127);
}

// Runs a command in the host's root, with a plain environment.
Result<Ran> Run(const std::string& root, std::vector<std::string> words) {
  WEFT_ASSIGN(const UniqueFd input, OpenEmptyInput());
  int ends[2];
  if (pipe2(ends, O_CLOEXEC) != 0) return FailErrno("pipe");
  const UniqueFd from(ends[0]);
  UniqueFd to(ends[1]);
  std::vector<char*> argv;
  argv.reserve(words.size() + 1);
  for (std::string& word : words) argv.push_back(word.data());
  argv.push_back(nullptr);
  std::string path = "PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin";
  std::string locale = "LC_ALL=C";
  char* environment[] = {path.data(), locale.data(), nullptr};
  const pid_t child = fork();
  if (child < 0) return FailErrno("fork");
  if (child == 0) Become(root, argv.data(), environment, input.get(), to.get());
  to.reset();
  Ran ran;
  char buffer[4096];
  ssize_t n = 0;
  while ((n = read(from.get(), buffer, sizeof(buffer))) > 0 || (n < 0 && errno == EINTR)) {
    const size_t room = kMaxBuildOutput - ran.output.size();
    if (n > 0) ran.output.append(buffer, std::min(static_cast<size_t>(n), room));
  }
  int status = 0;
  while (waitpid(child, &status, 0) < 0 && errno == EINTR) {
  }
  ran.status = WIFEXITED(status) ? WEXITSTATUS(status) : -1;
  return ran;
}

std::string FirstLine(const std::string& text) { return text.substr(0, text.find('\n')); }

// Returns the suffixes that the names of LLVM's commands may have: for "Debian clang version
// 16.0.6", none and "-16". An empty result: it is another compiler.
std::vector<std::string> ClangSuffixes(const std::string& compiler) {
  constexpr std::string_view kVersion = "clang version ";
  const size_t at = compiler.find(kVersion);
  if (at == std::string::npos) return {};
  const size_t begin = at + kVersion.size();
  const size_t end = compiler.find_first_not_of("0123456789", begin);
  return {"", "-" + compiler.substr(begin, end - begin)};
}

Status HasCompiler(const Host& host, const std::string& command, const std::string& wanted) {
  WEFT_ASSIGN(const Ran ran, Run(host.root, {command, "--version"}));
  if (ran.status != 0)
    return Fail(ErrorCode::kNotFound,
                "the node has no " + wanted + ", which its kernel was built with");
  if (FirstLine(ran.output) != wanted)
    return Fail(ErrorCode::kNotFound,
                "the kernel was built with " + wanted + ", the node has " + FirstLine(ran.output));
  return {};
}

// Returns make's arguments for the compiler of the node's kernel.
Result<std::vector<std::string>> FindCompiler(const Host& host) {
  const std::string path = host.root + host.headers + "/include/config/auto.conf";
  std::ifstream in(path);
  if (!in)
    return Fail(ErrorCode::kNotFound, "the node has no headers of its kernel: " + host.headers);
  const std::string configuration{std::istreambuf_iterator<char>(in), {}};
  const std::string wanted = CompilerOf(configuration);
  // gcc says the name it was called by.
  const std::string command = wanted.substr(0, wanted.find(' '));
  if (command.empty()) return Fail(ErrorCode::kNotFound, path + ": does not name the compiler");
  Status found;
  for (const std::string& suffix : ClangSuffixes(wanted)) {
    found = HasCompiler(host, "clang" + suffix, wanted);
    if (!found) continue;
    std::vector<std::string> words = {"CC=clang" + suffix};
    // Links with the linker that the kernel was linked with. Kernels from Linux 5.18 on know the
    // form with a suffix.
    if (configuration.find("CONFIG_LD_IS_LLD=y") != std::string::npos)
      words.push_back("LLVM=" + (suffix.empty() ? std::string("1") : suffix));
    return words;
  }
  if (found) found = HasCompiler(host, command, wanted);
  if (!found) return std::unexpected(found.error());
  return std::vector<std::string>{"CC=" + command};
}

Status CopySources(const std::string& sources, const std::string& folder) {
  std::error_code error;
  fs::remove_all(folder, error);
  fs::create_directories(folder, error);
  for (const char* part : {"/kmod", "/lib"}) {
    if (!error) fs::copy(sources + part, folder + part, fs::copy_options::recursive, error);
  }
  if (error) return Fail(ErrorCode::kIo, folder + ": " + error.message());
  return {};
}

std::string LastLines(const std::string& output) {
  constexpr size_t kMost = 400;
  return output.size() <= kMost ? output : "..." + output.substr(output.size() - kMost);
}

}  // namespace

std::string CompilerOf(std::string_view configuration) {
  constexpr std::string_view kKey = "CONFIG_CC_VERSION_TEXT=";
  const size_t at = configuration.find(kKey);
  if (at == std::string_view::npos) return "";
  std::string_view text = configuration.substr(at + kKey.size());
  if (text.starts_with('"')) text.remove_prefix(1);  // until Linux 5.17
  return std::string(text.substr(0, text.find_first_of("\"\n")));
}

Result<std::string> BuildModule(const Host& host, const std::string& sources,
                                const std::string& folder) {
  WEFT_ASSIGN(const std::vector<std::string> compiler, FindCompiler(host));
  WEFT_TRY(CopySources(sources, folder));
  std::vector<std::string> words = {"make",   "-s", "-C", host.headers, "M=" + folder + "/kmod",
                                    "modules"};
  words.insert(words.end(), compiler.begin(), compiler.end());
  WEFT_ASSIGN(const Ran ran, Run(host.root, std::move(words)));
  if (ran.status == 127) return Fail(ErrorCode::kNotFound, "the node has no make");
  if (ran.status != 0)
    return Fail(ErrorCode::kIo, "weft.ko does not build on the node: " + LastLines(ran.output));
  return folder + "/kmod/weft.ko";
}

}  // namespace weft::kernel
