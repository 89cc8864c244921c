// SPDX-License-Identifier: Apache-2.0
// weft.ko as a back end: sessions, rings and events made by ioctls on descriptors
// (lib/abi/kernel.h). It is thin: each call is one or a few ioctls. If the module refuses a call,
// the Error names what was refused.
#ifndef WEFT_NODE_AGENT_KERNEL_MODULE_H_
#define WEFT_NODE_AGENT_KERNEL_MODULE_H_

#include <string>
#include <utility>

#include "node-agent/kernel/backend.h"

namespace weft::kernel {

class ModuleBackend final : public Backend {
 public:
  explicit ModuleBackend(std::string device = WEFT_KERNEL_DEVICE) : device_(std::move(device)) {}

  [[nodiscard]] Result<Support> Probe() const override;
  [[nodiscard]] Result<UniqueFd> MakeSession(bool all) const override;
  [[nodiscard]] Status ChangeScope(const UniqueFd& session, uint64_t cgroup,
                                   weft_kernel_scope_change change) const override;
  [[nodiscard]] Status Track(const UniqueFd& session, const Trackers& trackers) const override;
  [[nodiscard]] Status Switch(const UniqueFd& session, bool on) const override;
  [[nodiscard]] Result<SessionState> StateOf(const UniqueFd& session) const override;
  [[nodiscard]] Status DumpState(const UniqueFd& session, uint64_t cgroup) const override;
  [[nodiscard]] Result<UniqueFd> MakeRing(const UniqueFd& session, const Ring& ring) const override;
  [[nodiscard]] Status AddEvent(const UniqueFd& ring, const Event& event) const override;

 private:
  std::string device_;
};

// Opens the device, with Probe's errors.
Result<UniqueFd> OpenModule(const std::string& device = WEFT_KERNEL_DEVICE);

// Returns the back end of this machine.
const Backend& ThisBackend();

}  // namespace weft::kernel

#endif  // WEFT_NODE_AGENT_KERNEL_MODULE_H_
