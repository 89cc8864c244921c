// SPDX-License-Identifier: Apache-2.0
// Functions that are left in the middle and gone on with later: coroutines with stacks of their own
// (ucontext), on one thread and moved between threads, and those of C++20, which have none. The
// program checks what they return: any difference ends it with a message and status 1. It prints
// how often each function returned.
//   local_functions_coroutines N [M]     M turns of those of C++20 (default: N)
#include <ucontext.h>

#include <array>
#include <coroutine>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <functional>
#include <memory>
#include <thread>
#include <utility>
#include <vector>

#include "tests/local/hooked.h"

namespace {

void Check(bool good, const char* what) {
  if (good) return;
  std::fprintf(stderr, "wrong: %s\n", what);
  std::_Exit(1);
}

struct Coroutine {
  static constexpr size_t kStack = 256 << 10;
  ucontext_t self{}, caller{};
  std::unique_ptr<char[]> stack = std::make_unique<char[]>(kStack);
  int n = 0;
  int64_t result = -1;
};

thread_local Coroutine* running = nullptr;

// Its caller may go on in another thread: no address of that thread is kept.
[[gnu::noinline]] Coroutine* Running() {
  __asm__ volatile("");
  return running;
}

}  // namespace

extern "C" {

HOOKED void yields() {
  Coroutine* self = Running();
  Check(swapcontext(&self->self, &self->caller) == 0, "swapcontext");
}

// Leaves the stack at each depth, on the way down and on the way up.
HOOKED int64_t descends(int n) {
  yields();
  const int64_t below = n == 0 ? 0 : descends(n - 1);
  yields();
  return below + n;
}

HOOKED void resumes(Coroutine* coroutine) {
  running = coroutine;
  Check(swapcontext(&coroutine->caller, &coroutine->self) == 0, "swapcontext");
}

}  // extern "C"

namespace {

void Run() {
  Coroutine* self = Running();
  self->result = descends(self->n);
  self = Running();
  setcontext(&self->caller);
}

constexpr int kDepth = 5, kYields = 2 * (kDepth + 1);

std::unique_ptr<Coroutine> Make() {
  auto coroutine = std::make_unique<Coroutine>();
  coroutine->n = kDepth;
  Check(getcontext(&coroutine->self) == 0, "getcontext");
  coroutine->self.uc_stack.ss_sp = coroutine->stack.get();
  coroutine->self.uc_stack.ss_size = Coroutine::kStack;
  makecontext(&coroutine->self, Run, 0);
  return coroutine;
}

// Goes on with coroutines in turn; each step of all of them on a thread of its own, if `moves`.
void RunStacks(int n, bool moves) {
  for (int i = 0; i < n; ++i) {
    std::array<std::unique_ptr<Coroutine>, 4> all;
    for (auto& coroutine : all) coroutine = Make();
    const auto step = [&] {
      for (auto& coroutine : all) resumes(coroutine.get());
    };
    for (int turn = 0; turn <= kYields; ++turn) {
      if (moves)
        std::thread(step).join();
      else
        step();
    }
    for (auto& coroutine : all)
      Check(coroutine->result == kDepth * (kDepth + 1) / 2, "result of a coroutine");
  }
}

// A coroutine of C++20 that hands over to another one by a jump.
struct Task {
  struct promise_type {
    std::coroutine_handle<> next = std::noop_coroutine();
    Task get_return_object() { return {std::coroutine_handle<promise_type>::from_promise(*this)}; }
    static std::suspend_always initial_suspend() noexcept { return {}; }
    static std::suspend_always final_suspend() noexcept { return {}; }
    static void return_void() {}
    static void unhandled_exception() { std::terminate(); }
  };
  std::coroutine_handle<promise_type> handle;
};

struct HandsOver {
  std::coroutine_handle<> to;
  static bool await_ready() noexcept { return false; }
  [[nodiscard]] std::coroutine_handle<> await_suspend(std::coroutine_handle<>) const noexcept {
    return to;
  }
  static void await_resume() noexcept {}
};

int64_t handed = 0;

Task Player(int n, std::coroutine_handle<>& other) {
  for (int i = 0; i < n; ++i) {
    ++handed;
    co_await HandsOver{other};
  }
}

void RunTasks(int n) {
  std::coroutine_handle<> left, right;
  const Task a = Player(n, right), b = Player(n, left);
  left = a.handle;
  right = b.handle;
  left.resume();
  Check(handed == 2 * n, "turns of two coroutines");
  a.handle.destroy();
  b.handle.destroy();
}

}  // namespace

int main(int argc, char** argv) {
  const int n = argc > 1 ? std::atoi(argv[1]) : 1;
  RunStacks(n, false);
  RunStacks(n, true);
  RunTasks(argc > 2 ? std::atoi(argv[2]) : n);
  std::printf("descends %d yields %d resumes %d handed %lld\n", 2 * n * 4 * (kDepth + 1),
              2 * n * 4 * kYields, 2 * n * 4 * (kYields + 1), static_cast<long long>(handed));
  return 0;
}
