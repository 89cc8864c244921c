// SPDX-License-Identifier: Apache-2.0
// weft-debuginfod BUILD-ID MAX-BYTES [UID]: gets one debug file from the servers of DEBUGINFOD_URLS
// into the cache, by elfutils' libdebuginfod, which also remembers what no server has. The agent
// starts it; a server's answer is foreign, so the program has nothing of the agent's but
//
//   1   where its answer goes: "done", or why there is no file
//   3   the cache folder
//
// With UID it becomes that user first, who owns the folder. It does not look at the file.
#include <elfutils/debuginfod.h>
#include <grp.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <cstdlib>
#include <cstring>
#include <string>

#include "lib/base/result.h"
#include "node-agent/hooks/limits.h"

namespace {

constexpr int kAnswer = 1, kFolder = 3;

// The cache folder may be below one that the user may not enter: it becomes the working folder.
weft::Status Confine(const char* max_bytes, const char* user) {
  if (fchdir(kFolder) != 0 || close(kFolder) != 0) return weft::FailErrno("the cache");
  const rlimit bytes{std::strtoull(max_bytes, nullptr, 10), std::strtoull(max_bytes, nullptr, 10)};
  const rlimit none{0, 0};
  std::signal(SIGXFSZ, SIG_IGN);
  if (setrlimit(RLIMIT_FSIZE, &bytes) != 0 || setrlimit(RLIMIT_CORE, &none) != 0)
    return weft::FailErrno("setrlimit");
  if (user != nullptr) {
    const auto uid = static_cast<uid_t>(std::strtoul(user, nullptr, 10));
    if (uid == 0 || setgroups(0, nullptr) != 0 || setresgid(uid, uid, uid) != 0 ||
        setresuid(uid, uid, uid) != 0)
      return weft::FailErrno("the user of the cache");
  }
  if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0) return weft::FailErrno("no_new_privs");
  return {};
}

std::string WhyNot(int error) {
  if (error == ENOENT) return "no server has its debug file";
  if (error == ETIME) return "the servers take too long";
  if (error == EFBIG || error == EIO) return "its debug file is too large, or the disk is full";
  // libdebuginfod has one number for both.
  if (error == ECONNREFUSED)
    return "there is no answer (Connection refused, or a certificate that is not trusted)";
  return std::string("there is no answer (") + std::strerror(error) + ")";
}

std::string Fetch(const char* build_id, const char* max_bytes) {
  setenv("DEBUGINFOD_CACHE_PATH", ".", 1);
  setenv("DEBUGINFOD_MAXSIZE", max_bytes, 1);
  setenv("DEBUGINFOD_TIMEOUT", weft::hooks::kServerTimeout, 0);
  setenv("DEBUGINFOD_MAXTIME", std::to_string(weft::hooks::kServerPatience.count()).c_str(), 0);
  setenv("DEBUGINFOD_RETRY_LIMIT", "0", 0);  // the agent asks again, later
  debuginfod_client* client = debuginfod_begin();
  if (client == nullptr) return std::strerror(errno);
  const int file = debuginfod_find_debuginfo(
      client, reinterpret_cast<const unsigned char*>(build_id), 0, nullptr);
  debuginfod_end(client);
  return file >= 0 ? weft::hooks::kDebuginfodDone : WhyNot(-file);
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 3 || argc > 4) return 2;
  const weft::Status confined = Confine(argv[2], argc == 4 ? argv[3] : nullptr);
  const std::string text = confined ? Fetch(argv[1], argv[2]) : confined.error().message;
  return write(kAnswer, text.data(), text.size()) == static_cast<ssize_t>(text.size()) ? 0 : 1;
}
