// SPDX-License-Identifier: Apache-2.0
// Runs a call that may take long, or never end, on a thread of its own. Thread-safety: pure
// functions.
#ifndef WEFT_LIB_BASE_BACKGROUND_H_
#define WEFT_LIB_BASE_BACKGROUND_H_

#include <pthread.h>

#include <chrono>
#include <csignal>
#include <future>
#include <thread>
#include <type_traits>
#include <utility>

namespace weft {

// The caller need not wait: the thread goes on when the future is gone, so `call` owns all that it
// uses.
template <typename Call>
std::future<std::invoke_result_t<Call&>> InBackground(Call call) {
  std::packaged_task<std::invoke_result_t<Call&>()> task(std::move(call));
  auto result = task.get_future();
  std::thread(std::move(task)).detach();
  return result;
}

// A thread that no signal is delivered to: all are for the others.
template <typename Call>
std::thread ThreadWithoutSignals(Call call) {
  sigset_t all, before;
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, &before);
  std::thread thread(std::move(call));
  pthread_sigmask(SIG_SETMASK, &before, nullptr);
  return thread;
}

// `future` is valid.
template <typename T>
bool IsDone(const std::future<T>& future) {
  return future.wait_for(std::chrono::seconds(0)) == std::future_status::ready;
}

}  // namespace weft

#endif  // WEFT_LIB_BASE_BACKGROUND_H_
