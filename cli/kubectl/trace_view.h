// SPDX-License-Identifier: Apache-2.0
// The right to read one Trace at the relay: a secret that only this process knows, and a TraceView
// in the Trace's namespace with the secret's hash. The relay lets the holder of the secret read.
// Thread-safety: one thread per object.
#ifndef WEFT_CLI_KUBECTL_TRACE_VIEW_H_
#define WEFT_CLI_KUBECTL_TRACE_VIEW_H_

#include <chrono>
#include <string>

#include "cli/kubectl/connection.h"
#include "lib/base/result.h"

namespace weft::kubectl {

// A view that its maker could not delete ends by itself after this time. A new one is made when
// half of it is over.
inline constexpr std::chrono::minutes kViewLife{10};

// NAMESPACE.VIEW.SECRET, as the relay's header X-Weft-Token has it.
std::string ViewToken(const std::string& name_space, const std::string& view,
                      const std::string& secret);

// 64 random digits. kIo: the kernel has no randomness.
Result<std::string> MakeSecret();

class TraceView {
 public:
  // `connection` outlives the object. Nothing is made before the first Token().
  TraceView(const Connection& connection, std::string trace)
      : connection_(connection), trace_(std::move(trace)) {}
  TraceView(const TraceView&) = delete;
  TraceView& operator=(const TraceView&) = delete;
  ~TraceView();  // deletes the view, if that is possible

  // Makes a view if there is none, or if half of its life is over.
  Result<std::string> Token();

 private:
  using Clock = std::chrono::steady_clock;

  void Delete();

  const Connection& connection_;
  const std::string trace_;
  std::string name_;  // of the view; "": none
  std::string token_;
  Clock::time_point made_;
};

}  // namespace weft::kubectl

#endif  // WEFT_CLI_KUBECTL_TRACE_VIEW_H_
