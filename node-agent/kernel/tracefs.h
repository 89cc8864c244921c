// SPDX-License-Identifier: Apache-2.0
// The kernel's tracefs, which names the parameters of system calls. It is this process's; in a
// container the node's; if none is mounted, one that only this object has, mounted at no place.
//
// Thread-safety: it needs none; it is immutable after Open.
#ifndef WEFT_NODE_AGENT_KERNEL_TRACEFS_H_
#define WEFT_NODE_AGENT_KERNEL_TRACEFS_H_

#include <span>
#include <string>

#include "lib/base/unique_fd.h"

namespace weft::kernel {

class Tracefs {
 public:
  static Tracefs Open();
  // `mounted`: the places where it may be mounted, tried in order.
  static Tracefs Open(std::span<const std::string> mounted);

  // Returns its root, which exists as long as this object; "": there is none.
  [[nodiscard]] const std::string& path() const { return path_; }
  // Returns why path() is "" and what to do, for messages.
  [[nodiscard]] const std::string& problem() const { return problem_; }

 private:
  std::string path_, problem_;
  UniqueFd mount_;
};

}  // namespace weft::kernel

#endif  // WEFT_NODE_AGENT_KERNEL_TRACEFS_H_
