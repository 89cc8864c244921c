// SPDX-License-Identifier: Apache-2.0
// The names nearest to one that was not found, for a message. Thread-safety: one thread at a time.
#ifndef WEFT_NODE_AGENT_HOOKS_NEAR_NAMES_H_
#define WEFT_NODE_AGENT_HOOKS_NEAR_NAMES_H_

#include <cstddef>
#include <string>
#include <vector>

namespace weft::hooks {

struct NearName {
  size_t distance = 0;  // edits
  std::string name;
  std::string object;  // that has the function; "": the name is an object's
  auto operator<=>(const NearName&) const = default;
};

class NearNames {
 public:
  // `wanted`: a rule's name or object, of which wildcards at the end do not count.
  explicit NearNames(std::string wanted = "");

  // Takes a name that there is. After kMaxCompared names it takes none.
  void Offer(const std::string& name, const std::string& object);
  void Offer(const std::vector<NearName>& names);
  // Returns at most kNearNames, the nearest first: each within api::MostDistance.
  [[nodiscard]] const std::vector<NearName>& best() const { return best_; }

 private:
  void Keep(NearName name);

  std::string wanted_;
  size_t compared_ = 0;
  std::vector<NearName> best_;
};

// Returns ", did you mean \"a\" (libx.so) or \"b\" (libx.so)?"; "" if there are no names.
std::string DidYouMean(const std::vector<NearName>& names);

}  // namespace weft::hooks

#endif  // WEFT_NODE_AGENT_HOOKS_NEAR_NAMES_H_
