// SPDX-License-Identifier: Apache-2.0
// The relay's HTTPS API (docs/openapi/relay.yaml), reached through the API server's proxy of the
// Service weft-relay. Answers are foreign. Thread-safety: one thread per object.
#ifndef WEFT_CLI_KUBECTL_RELAY_CLIENT_H_
#define WEFT_CLI_KUBECTL_RELAY_CLIENT_H_

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "cli/kubectl/trace_view.h"
#include "lib/base/result.h"
#include "lib/kube/json.h"

namespace weft::kubectl {

struct RelayFile {
  std::string path;  // IsRelayPath
  std::uint64_t size = 0;
  bool operator==(const RelayFile&) const = default;
};

// Parses the answer of listFiles. kCorrupt: it is none, or has a name that is no IsRelayPath.
Result<std::vector<RelayFile>> ParseFiles(std::string_view text);

class RelayClient {
 public:
  // `folder`: NAME/UID of the Trace. Both references outlive the object.
  RelayClient(const Connection& connection, TraceView& view, std::string folder);

  // kNotFound: the relay has nothing of this Trace yet.
  Result<std::vector<RelayFile>> Files();

  // `size` bytes from `offset` on; fewer if the file is shorter.
  Result<std::string> Read(const std::string& path, std::uint64_t offset, std::uint64_t size);

 private:
  Result<std::string> Get(const std::string& below, const std::string& range);

  const Connection& connection_;
  TraceView& view_;
  std::string base_;  // of all targets
};

}  // namespace weft::kubectl

#endif  // WEFT_CLI_KUBECTL_RELAY_CLIENT_H_
