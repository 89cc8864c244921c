// SPDX-License-Identifier: Apache-2.0
// weft-install-test --relay HOST:PORT --namespace NAMESPACE --trace TRACE: emits events in a pod of
// a Trace, and ends with 0 when the relay has stored exactly these. `helm test` runs it. Names the
// step that failed, with the parts of weft that take part in it.
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <string>
#include <thread>

#include "deploy/install_test/install_test_tp.h"
#include "deploy/install_test/relay_metrics.h"

namespace {

using weft::install_test::ReadMetrics;
using weft::install_test::Relay;
using weft::install_test::StoredEvents;

constexpr uint32_t kEvents = 1000;
constexpr std::chrono::seconds kStepLimit{60};
constexpr std::chrono::milliseconds kPoll{100};

struct Flags {
  Relay relay;
  std::string name_space;
  std::string trace;
};

bool Parse(int argc, char** argv, Flags& flags) {
  for (int i = 1; i + 1 < argc; i += 2) {
    const std::string name = argv[i];
    const std::string value = argv[i + 1];
    if (name == "--namespace") {
      flags.name_space = value;
    } else if (name == "--trace") {
      flags.trace = value;
    } else if (const size_t colon = value.rfind(':');
               name == "--relay" && colon != std::string::npos) {
      flags.relay = {.host = value.substr(0, colon), .port = value.substr(colon + 1)};
    } else {
      return false;
    }
  }
  return argc % 2 == 1 && !flags.relay.host.empty() && !flags.name_space.empty() &&
         !flags.trace.empty();
}

int Fail(const std::string& text) {
  std::fprintf(stderr, "weft-install-test: %s\n", text.c_str());
  return 1;
}

bool Wait(const std::function<bool()>& done) {
  for (const auto end = std::chrono::steady_clock::now() + kStepLimit;
       std::chrono::steady_clock::now() < end; std::this_thread::sleep_for(kPoll)) {
    if (done()) return true;
  }
  return false;
}

int Run(const Flags& flags) {
  if (std::getenv("WEFT_CONTAINER") == nullptr) {
    return Fail(
        "this pod has no library of weft. The controller delivers the library to the namespace, "
        "the webhook adds it to the pod. Look at the logs of both Deployments. The Job tries "
        "again.");
  }
  std::puts("the library is in this pod: controller and webhook work");
  const auto before = ReadMetrics(flags.relay);
  if (!before) return Fail("the relay does not answer: " + before.error().message);
  std::puts("the relay answers");
  if (!Wait([] { return tracepoint_enabled(weft_install_test, step) != 0; })) {
    return Fail("no event was turned on. Look at: kubectl -n " + flags.name_space +
                " describe traces,tracesessions; and at the log of this node's agent.");
  }
  std::puts("the Trace turned the event on: the agent of this node works");
  for (uint32_t i = 0; i < kEvents; i++) tracepoint(weft_install_test, step, i);

  const uint64_t wanted = StoredEvents(*before, flags.name_space, flags.trace) + kEvents;
  uint64_t stored = 0;
  const bool all = Wait([&] {
    const auto now = ReadMetrics(flags.relay);
    if (now) stored = StoredEvents(*now, flags.name_space, flags.trace);
    return stored >= wanted;
  });
  if (!all || stored != wanted) {
    return Fail("emitted " + std::to_string(kEvents) + " events, but the relay counts " +
                std::to_string(stored) + " instead of " + std::to_string(wanted) +
                ". Look at the logs of relay and agents, and at the Trace's status.");
  }
  std::printf("the relay stored all %u events\n", kEvents);
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  // A line is in the log when it is printed.
  std::setvbuf(stdout, nullptr, _IOLBF, 0);
  Flags flags;
  if (!Parse(argc, argv, flags)) {
    std::fputs("usage: weft-install-test --relay HOST:PORT --namespace NAMESPACE --trace TRACE\n",
               stderr);
    return 2;
  }
  return Run(flags);
}
