// SPDX-License-Identifier: Apache-2.0
// See kill_point.h. Part of test builds only.
#include "lib/base/kill_point.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <string>

namespace weft {
namespace {

struct Target {
  std::string name;
  long left = 0;
};

// Returns the number of this process among those of its program, from 0. It runs before main,
// because a sandbox opens no files.
size_t CountLife() {
  const char* path = std::getenv("WEFT_KILL_LIVES");
  if (path == nullptr) return 0;
  const int fd = ::open(path, O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC, 0666);
  struct stat file{};
  if (fd < 0 || ::write(fd, "x", 1) != 1 || ::fstat(fd, &file) != 0) ::abort();
  ::close(fd);
  return static_cast<size_t>(file.st_size) - 1;
}

const size_t life = CountLife();

Target ReadTarget() {
  const char* text = std::getenv("WEFT_KILL_AT");
  if (text == nullptr) return {};
  std::string rest(text);
  for (size_t i = 0; i < life; ++i) {
    const size_t comma = rest.find(',');
    if (comma == std::string::npos) return {};
    rest.erase(0, comma + 1);
  }
  rest.erase(std::min(rest.size(), rest.find(',')));
  const size_t colon = rest.rfind(':');
  if (colon == std::string::npos) return {};
  return {rest.substr(0, colon), std::strtol(rest.c_str() + colon + 1, nullptr, 10)};
}

}  // namespace

void KillPoint(const char* name) {
  static Target target = ReadTarget();
  if (target.left <= 0 || target.name != name) return;
  if (--target.left == 0) ::kill(::getpid(), SIGKILL);
}

}  // namespace weft
