// SPDX-License-Identifier: Apache-2.0
// See kill_point.h. Part of test builds only.
#include "node-agent/consumer/kill_point.h"

#include <signal.h>
#include <unistd.h>

#include <cstdlib>
#include <string>

namespace weft::consumer {
namespace {

struct Target {
  std::string name;
  long left = 0;
};

Target ReadTarget() {
  const char* text = std::getenv("WEFT_KILL_AT");
  if (text == nullptr) return {};
  const std::string all(text);
  const size_t colon = all.rfind(':');
  if (colon == std::string::npos) return {};
  return {all.substr(0, colon), std::strtol(all.c_str() + colon + 1, nullptr, 10)};
}

}  // namespace

void KillPoint(const char* name) {
  static Target target = ReadTarget();
  if (target.left <= 0 || target.name != name) return;
  if (--target.left == 0) ::kill(::getpid(), SIGKILL);
}

}  // namespace weft::consumer
