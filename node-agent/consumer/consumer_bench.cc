// SPDX-License-Identifier: Apache-2.0
// How long a consumer takes for an event, from ring memory to the file: rings are filled first,
// then read by a consumer in this process. Arguments: slots and payload bytes (default 2 and 32);
// the trace is written under $TMPDIR. Prints CPU time (user, system) and real time per event.
#include <sys/resource.h>

#include <chrono>
#include <cstdio>

#include "lib/ring/testing/test_writer.h"
#include "node-agent/consumer/testing.h"

namespace {

using weft::consumer::testing::Definition;
using weft::consumer::testing::Folder;
using weft::consumer::testing::Running;
using weft::ring::testing::MakeDescription;
using weft::ring::testing::TestWriter;

uint64_t Fill(TestWriter& writer, uint32_t slots, size_t payload) {
  weft::ring::MachineTicks ticks(WEFT_CLOCK_TSC);
  const std::vector<uint8_t> body(payload, 7);
  uint64_t events = 0;
  for (bool room = true; room;) {
    room = false;
    for (uint32_t slot = 0; slot < slots; slot++) {
      // A slot's ring takes no more than its size, since nothing reads it.
      if (!writer.Write(slot, 0, static_cast<uint16_t>(slot), ticks.Ticks(), body)) continue;
      events++;
      room = true;
    }
  }
  return events;
}

double Nanoseconds(const timeval& time) {
  return static_cast<double>(time.tv_sec) * 1e9 + static_cast<double>(time.tv_usec) * 1e3;
}

struct CpuTime {
  double user = 0;
  double system = 0;
};

CpuTime Used() {
  rusage usage{};
  ::getrusage(RUSAGE_SELF, &usage);
  return {Nanoseconds(usage.ru_utime), Nanoseconds(usage.ru_stime)};
}

}  // namespace

int main(int argc, char** argv) {
  const auto slots = static_cast<uint32_t>(argc > 1 ? std::atoi(argv[1]) : 2);
  const auto payload = static_cast<size_t>(argc > 2 ? std::atoi(argv[2]) : 32) / 8 * 8;
  std::vector<std::string> fields;
  fields.reserve(payload / 8);
  for (size_t i = 0; i < payload / 8; i++) fields.push_back("f" + std::to_string(i));
  for (int round = 0; round < 5; round++) {
    TestWriter writer({.slots = slots + 1, .subbuf_shift = 24, .subbufs_shift = 2});
    writer.Describe(0, MakeDescription("p:e", fields));
    const uint64_t events = Fill(writer, slots, payload);
    Folder folder;
    const weft::UniqueFd journal(memfd_create("journal", MFD_CLOEXEC));
    Running running(folder, journal);
    if (!running.consumer->AddChannel(Definition()) ||
        !running.consumer->AddRing(1, writer.Fd(), 1, 1)) {
      return 1;
    }
    running.consumer->StopChannels({1});
    const CpuTime before = Used();
    const auto start = std::chrono::steady_clock::now();
    while (!running.consumer->Find(1)->drained()) running.consumer->Round();
    const auto end = std::chrono::steady_clock::now();
    const CpuTime after = Used();
    const auto counts = running.consumer->Find(1)->Counts();
    const auto n = static_cast<double>(events);
    std::printf("%llu events, each: %.1f ns user, %.1f ns system, %.1f ns real, %.1f bytes\n",
                static_cast<unsigned long long>(counts.delivered), (after.user - before.user) / n,
                (after.system - before.system) / n,
                std::chrono::duration<double, std::nano>(end - start).count() / n,
                static_cast<double>(counts.bytes) / n);
  }
  return 0;
}
