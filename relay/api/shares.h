// SPDX-License-Identifier: Apache-2.0
// Limits how many pieces of work of one kind are under way at a time, in total and for each
// owner (a namespace, a user, ...), so that no owner takes what others need. Thread-safe.
#ifndef WEFT_RELAY_API_SHARES_H_
#define WEFT_RELAY_API_SHARES_H_

#include <map>
#include <memory>
#include <mutex>
#include <string>

namespace weft::relay_api {

class Shares {
 public:
  Shares(int most, int most_of_one) : most_(most), most_of_one_(most_of_one) {}

  // The work is under way until the result, and all copies of it, have ended. Not after this object
  // has. Null: as many are under way already.
  std::shared_ptr<void> Begin(const std::string& owner) {
    const std::lock_guard lock(mutex_);
    const auto of_it = of_.find(owner);
    if (count_ >= most_ || (of_it != of_.end() && of_it->second >= most_of_one_)) return nullptr;
    count_++;
    of_[owner]++;
    return {this, [this, owner](void*) {
              const std::lock_guard ended(mutex_);
              count_--;
              if (--of_[owner] == 0) of_.erase(owner);
            }};
  }

 private:
  const int most_;
  const int most_of_one_;
  std::mutex mutex_;
  int count_ = 0;
  std::map<std::string, int> of_;  // by owner
};

}  // namespace weft::relay_api

#endif  // WEFT_RELAY_API_SHARES_H_
