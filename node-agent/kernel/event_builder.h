// SPDX-License-Identifier: Apache-2.0
// Collects an event's fields within the limits of lib/abi/fetch.h.
// Thread-safety: none.
#ifndef WEFT_NODE_AGENT_KERNEL_EVENT_BUILDER_H_
#define WEFT_NODE_AGENT_KERNEL_EVENT_BUILDER_H_

#include <string>
#include <vector>

#include "node-agent/kernel/field.h"
#include "node-agent/kernel/resolve.h"

namespace weft::kernel {

class EventBuilder {
 public:
  // `name`: the event's; `kind`: of enum weft_kernel_event_kind.
  EventBuilder(std::string name, uint32_t kind);

  // Adds the field, or notes why it is left out: an error, or no room. A second field of a name
  // is passed over.
  void Add(const std::string& name, Result<Field> field);

  // Sets description and steps of *out (and its name, kind and what was left out), and proves that
  // weft.ko takes the program that is made of them. An error is a bug in the agent.
  Status Finish(Resolved* out);

 private:
  [[nodiscard]] bool HasRoom(const Field& field) const;

  uint32_t kind_;
  EventDescription event_;
  std::vector<FetchStep> ops_;
  std::vector<std::string> left_out_, withheld_;
  uint32_t segment_bytes_ = 0;
};

}  // namespace weft::kernel

#endif  // WEFT_NODE_AGENT_KERNEL_EVENT_BUILDER_H_
