// SPDX-License-Identifier: Apache-2.0
// Makes calls that may take seconds, each on a thread of its own, and passes what they return to
// the agent's loop. Used by the loop's thread.
#ifndef WEFT_NODE_AGENT_AGENT_BASE_BACKGROUND_CALLS_H_
#define WEFT_NODE_AGENT_AGENT_BASE_BACKGROUND_CALLS_H_

#include <sys/eventfd.h>
#include <unistd.h>

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <thread>
#include <utility>
#include <vector>

#include "lib/base/result.h"
#include "lib/base/unique_fd.h"
#include "lib/ipc/loop.h"

namespace weft::agent {

template <typename T>
class BackgroundCalls {
 public:
  using Call = std::function<Result<T>()>;
  using Done = std::function<void(Result<T>)>;

  // At most `most` calls are under way.
  BackgroundCalls(ipc::Loop& loop, size_t most) : loop_(loop), most_(most) {}
  BackgroundCalls(const BackgroundCalls&) = delete;
  BackgroundCalls& operator=(const BackgroundCalls&) = delete;
  ~BackgroundCalls() {
    if (finished_ != nullptr) loop_.Unwatch(finished_->event.get());
  }

  // `call` owns all that it uses: its thread may outlive this object. `done` is called in the loop,
  // unless this object is gone by then. kLimit: there are too many calls; `done` is called at once.
  void Start(Call call, Done done) {
    if (const Status ready = Prepare(); !ready) return done(std::unexpected(ready.error()));
    if (waiting_.size() >= most_) return done(Fail(ErrorCode::kLimit, "too many at a time"));
    const uint64_t number = next_++;
    waiting_[number] = std::move(done);
    std::thread([finished = finished_, call = std::move(call), number] {
      Result<T> result = call();
      const std::lock_guard lock(finished->mutex);
      finished->list.emplace_back(number, std::move(result));
      const uint64_t one = 1;
      (void)!write(finished->event.get(), &one, sizeof(one));
    }).detach();
  }

 private:
  struct Finished {
    UniqueFd event;
    std::mutex mutex;
    std::vector<std::pair<uint64_t, Result<T>>> list;
  };

  Status Prepare() {
    if (finished_ != nullptr) return {};
    auto finished = std::make_shared<Finished>();
    finished->event.reset(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
    if (!finished->event) return FailErrno("eventfd");
    WEFT_TRY(loop_.Watch(finished->event.get(), [this] { TakeFinished(); }));
    finished_ = std::move(finished);
    return {};
  }

  void TakeFinished() {
    uint64_t count = 0;
    (void)!read(finished_->event.get(), &count, sizeof(count));
    std::vector<std::pair<uint64_t, Result<T>>> list;
    {
      const std::lock_guard lock(finished_->mutex);
      list.swap(finished_->list);
    }
    for (auto& [number, result] : list) {
      const auto found = waiting_.find(number);
      if (found == waiting_.end()) continue;
      const Done done = std::move(found->second);
      waiting_.erase(found);
      done(std::move(result));
    }
  }

  ipc::Loop& loop_;
  const size_t most_;
  std::shared_ptr<Finished> finished_;  // the threads', too
  std::map<uint64_t, Done> waiting_;
  uint64_t next_ = 1;
};

}  // namespace weft::agent

#endif  // WEFT_NODE_AGENT_AGENT_BASE_BACKGROUND_CALLS_H_
