// SPDX-License-Identifier: Apache-2.0
// The relay's HTTPS API (docs/openapi/relay.yaml), reached through the API server's proxy of the
// Service weft-relay. Answers are foreign. Thread-safety: one thread per object.
#ifndef WEFT_CLI_KUBECTL_RELAY_CLIENT_H_
#define WEFT_CLI_KUBECTL_RELAY_CLIENT_H_

#include <cstdint>
#include <optional>
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
  std::uint64_t offset = 0;  // of the first packet of the time that was asked for; below `size`
  // Streams have these, too (docs/openapi/relay.yaml):
  bool live = false;
  std::uint64_t kept = 0;
  std::uint64_t safe_time = 0;  // 0: not known
  bool operator==(const RelayFile&) const = default;
};

// Parses the answer of listFiles. kCorrupt: it is none, or has a name that is no IsRelayPath.
Result<std::vector<RelayFile>> ParseFiles(std::string_view text);

// Nanoseconds since 1970; both ends belong to it.
struct TimeRange {
  std::uint64_t since = 0;
  std::uint64_t until = UINT64_MAX;
  bool operator==(const TimeRange&) const = default;
};

struct RelayCounts {
  std::uint64_t events = 0;
  std::uint64_t bytes = 0;
  std::uint64_t discarded = 0;
  std::uint64_t lost = 0;
  bool operator==(const RelayCounts&) const = default;
};

struct RelayRates {
  std::string pod;       // foreign
  RelayCounts total;     // since the relay began
  RelayCounts recently;  // in all seconds that were asked for
  bool operator==(const RelayRates&) const = default;
};

// Parses the answer of getRates. kCorrupt: it is none.
Result<std::vector<RelayRates>> ParseRates(std::string_view text);

// Bytes of a file.
struct RelayPart {
  std::string path;
  std::uint64_t offset = 0;
  std::uint64_t size = 0;
};

// Parses the answer of getParts. One element for each part; std::nullopt: there is no such file any
// more. kCorrupt: it is no such answer, or has more bytes than were asked for.
Result<std::vector<std::optional<std::string>>> ParseParts(std::string_view answer,
                                                           const std::vector<RelayPart>& parts);

// What one request takes: parts, bytes of all of them, and bytes of its target.
inline constexpr std::size_t kMaxParts = 256;
inline constexpr std::uint64_t kMaxPartsBytes = std::uint64_t{4} << 20;
inline constexpr std::size_t kMaxPartsTarget = 8 * 1024;

// Begins all targets of the relay's API: the API server's proxy of it, up to "/v1".
std::string RelayTarget(const Connection& connection);

class RelayClient {
 public:
  // `folder`: NAME/UID of the Trace. Both references outlive the object.
  RelayClient(const Connection& connection, TraceView& view, std::string folder);

  // kNotFound: the relay has nothing of this Trace yet.
  Result<std::vector<RelayFile>> Files(const TimeRange& range = {});

  // What arrived of each pod in the last `seconds` seconds.
  Result<std::vector<RelayRates>> Rates(int seconds);

  // `size` bytes from `offset` on; fewer if the file is shorter.
  Result<std::string> Read(const std::string& path, std::uint64_t offset, std::uint64_t size);

  // Reads several parts by one request; a part is shorter where its file ends. They must be within
  // the limits above.
  Result<std::vector<std::optional<std::string>>> ReadParts(const std::vector<RelayPart>& parts);

 private:
  Result<std::string> Get(const std::string& below, const std::string& range);

  const Connection& connection_;
  TraceView& view_;
  std::string base_;  // of all targets
};

}  // namespace weft::kubectl

#endif  // WEFT_CLI_KUBECTL_RELAY_CLIENT_H_
