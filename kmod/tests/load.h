// SPDX-License-Identifier: GPL-2.0-only
// Events of which a test knows every one: system calls and tracepoints that nothing else in a
// guest makes, each with a number of its own. Threads are bound to no CPU unless the test binds
// them.
#ifndef WEFT_KMOD_TESTS_LOAD_H_
#define WEFT_KMOD_TESTS_LOAD_H_

#include <sched.h>

#include <atomic>
#include <cstdint>
#include <functional>
#include <thread>
#include <vector>

#include "kmod/tests/device.h"

namespace weft::kmod {

// A source of events: makes exactly one event for each call, whose first field is `value`.
struct Source {
  const char* name;
  uint32_t needs;  // enum weft_kernel_feature
  std::function<Event()> event;
  void (*emit)(uint64_t value);
  uint64_t cost = 1;  // storms of it have as many times fewer events
};
const std::vector<Source>& Sources();

uint32_t Features();
long Cpus();  // online
// Is WEFT_LONG "1"? In this long form, a test does many times as much.
bool IsLong();
uint64_t Scaled(uint64_t count);

// Threads that emit values (thread << 32 | n), n from 0, each `count` of them. Join or the
// destructor joins them.
class Storm {
 public:
  Storm(const Source& source, unsigned threads, uint64_t count);
  ~Storm() { Join(); }
  Storm(const Storm&) = delete;
  Storm& operator=(const Storm&) = delete;

  [[nodiscard]] bool over() const { return running_ == 0; }
  void Join();

 private:
  std::atomic<unsigned> running_;
  std::vector<std::thread> threads_;
};

// The calling thread stays on this CPU as long as the object lives.
class OnCpu {
 public:
  explicit OnCpu(long cpu);
  ~OnCpu();
  OnCpu(const OnCpu&) = delete;
  OnCpu& operator=(const OnCpu&) = delete;

 private:
  cpu_set_t before_{};
};

// Threads that emit until the end of the object's life.
class Noise {
 public:
  explicit Noise(void (*emit)(uint64_t), unsigned threads = 2);
  ~Noise();
  Noise(const Noise&) = delete;
  Noise& operator=(const Noise&) = delete;

 private:
  std::atomic<bool> stop_{false};
  std::vector<std::thread> threads_;
};

}  // namespace weft::kmod

#endif  // WEFT_KMOD_TESTS_LOAD_H_
