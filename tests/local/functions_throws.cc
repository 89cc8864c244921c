// SPDX-License-Identifier: Apache-2.0
// C++ functions that are recorded without their program's knowledge: exceptions pass through them.
//   local_functions_throws N [FOLDER]
// With a FOLDER, as the program of attached.c: it makes FOLDER/ready, goes on when FOLDER/go is
// there, makes FOLDER/done, and ends when FOLDER/release is there. Meanwhile two threads throw.
#include <pthread.h>
#include <unistd.h>

#include <atomic>
#include <csetjmp>
#include <cstdio>
#include <cstdlib>
#include <stdexcept>
#include <string>
#include <thread>

// A function that is called as its prototype says, whatever the compiler knows of its callers.
#if defined(__clang__)
#define AS_WRITTEN __attribute__((noinline, optnone))
#define ENDS_WITH [[clang::musttail]]
#else
#define AS_WRITTEN __attribute__((noinline, noipa))
#define ENDS_WITH
#endif

namespace shop {

AS_WRITTEN int Deep(int n) {
  if (n == 0) throw std::runtime_error("deep");
  const int below = Deep(n - 1);
  __asm__ volatile("" : : "r"(below));  // no loop is made of it
  return below + 1;
}

// It ends with a jump, so what it calls returns to its caller.
AS_WRITTEN int Leads(int n) { ENDS_WITH return Deep(n); }

AS_WRITTEN int Price(int n) { return n * 2; }
AS_WRITTEN int Price(double n) { return static_cast<int>(n * 3); }

// Its destructor shows that frames between a throw and its handler are left in order.
struct Guard {
  __attribute__((always_inline)) explicit Guard(int& count) : count_(count) {}
  __attribute__((always_inline)) ~Guard() { ++count_; }
  int& count_;
};

AS_WRITTEN int Guarded(int n, int& count) {
  const Guard guard(count);
  return Deep(n) + 1;
}

AS_WRITTEN void Left(std::jmp_buf& to) { std::longjmp(to, 1); }

// It throws when a call that began later was left without a return.
AS_WRITTEN void Jumps() {
  std::jmp_buf to;
  if (setjmp(to) == 0) Left(to);
  throw std::runtime_error("jumps");
}

// Without a result it waits until its thread is cancelled.
AS_WRITTEN void Ended(void* result) {
  while (result == nullptr) pause();
  pthread_exit(result);
}

AS_WRITTEN void* Cancelled(void* unused) {
  Ended(unused);
  return nullptr;
}

}  // namespace shop

namespace other {

AS_WRITTEN void Guarded(int& count) {
  const shop::Guard guard(count);
  throw std::runtime_error("other");
}

}  // namespace other

namespace {

bool Throws(int n) {
  int caught = 0, left = 0;
  for (int i = 0; i < n; ++i) {
    try {
      other::Guarded(left);
    } catch (const std::runtime_error&) {
      ++caught;
    }
  }
  return caught == n && left == n;
}

int Run(int n) {
  int caught = 0, left = 0;
  for (int i = 0; i < n; ++i) {
    try {
      shop::Guarded(i % 7, left);
    } catch (const std::runtime_error& error) {
      caught += std::string(error.what()) == "deep" ? 1 : 0;
    }
    if (shop::Price(i) != i * 2 || shop::Price(i / 1.0) != i * 3) return 1;
  }
  pthread_t thread{};
  for (int i = 0; i < 10; ++i) {
    const bool is_cancelled = i % 2 != 0;
    if (pthread_create(&thread, nullptr, shop::Cancelled, is_cancelled ? nullptr : &thread) != 0)
      return 1;
    if (is_cancelled) pthread_cancel(thread);
    void* result = nullptr;
    pthread_join(thread, &result);
    if (result != (is_cancelled ? PTHREAD_CANCELED : &thread)) return 1;
  }
  if (caught != n || left != n) return 1;
  std::printf("caught %d\n", caught);
  return 0;
}

int RunWithFolder(int n, const std::string& folder) {
  const auto make = [&](const char* name) {
    std::FILE* file = std::fopen((folder + "/" + name).c_str(), "we");
    return file != nullptr && std::fclose(file) == 0;
  };
  const auto wait = [&](const char* name) {
    while (access((folder + "/" + name).c_str(), F_OK) != 0 && access(folder.c_str(), F_OK) == 0)
      usleep(1000);
  };
  std::atomic<bool> ends = false, is_wrong = false;
  const auto throw_always = [&] {
    while (!ends)
      if (!Throws(100)) is_wrong = true;
  };
  std::thread threads[] = {std::thread(throw_always), std::thread(throw_always)};
  if (!make("ready")) return 1;
  wait("go");
  const int result = Run(n);
  for (int i = 0; i < 10; ++i) {
    try {
      shop::Jumps();
    } catch (const std::runtime_error&) {
    }
    try {
      shop::Leads(2);
    } catch (const std::runtime_error&) {
    }
  }
  if (!make("done")) return 1;
  wait("release");
  ends = true;
  for (std::thread& thread : threads) thread.join();
  return is_wrong ? 1 : result;
}

}  // namespace

int main(int argc, char** argv) {
  const int n = argc > 1 ? std::atoi(argv[1]) : 1;
  return argc > 2 ? RunWithFolder(n, argv[2]) : Run(n);
}
