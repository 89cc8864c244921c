// SPDX-License-Identifier: Apache-2.0
// C++: tracing in the constructors and destructors of objects with static and thread storage, and
// through an exception.
#include <cstdlib>
#include <stdexcept>
#include <thread>

#include "hit.h"

namespace {

struct Loud {
  Loud() {
    prepare_hits();
    hit();
  }
  ~Loud() { hit(); }
};

struct Reporter {
  ~Reporter() { report(); }
};

Reporter last;  // constructed first, destroyed last
Loud global;
thread_local Loud per_thread;

void Throw(int depth) {
  const Loud local;
  if (depth == 0) throw std::runtime_error("expected");
  Throw(depth - 1);
}

}  // namespace

int main() {
  static const Loud late;
  (void)&per_thread;
  std::thread([] {
    (void)&per_thread;
    hit();
  }).join();
  try {
    Throw(5);
  } catch (const std::runtime_error& error) {
    std::printf("%s\n", error.what());
    std::fflush(stdout);
  }
  std::exit(3);
}
