// SPDX-License-Identifier: Apache-2.0
// Parses what a client of the relay's API sends: target, token and range. All of it is foreign.
// Thread-safety: pure functions.
#ifndef WEFT_RELAY_API_REQUEST_H_
#define WEFT_RELAY_API_REQUEST_H_

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "lib/base/result.h"

namespace weft::relay_api {

enum class Verb {
  kListTraces,
  kListFiles,
  kGetFile,
  kGetParts,
  kGetArchive,
  kGetRates,
  kGetTicket
};

// Whether the archive may have given this name to a folder or file: it has no '/', no leading '.',
// and only letters, digits and "-_.".
bool IsStoredName(std::string_view name);

// A target of docs/openapi/relay.yaml. Each part is a stored name.
struct Route {
  Verb verb = Verb::kListTraces;
  std::string kubernetes_namespace;
  std::string trace;           // "": of kListTraces and kGetTicket
  std::string uid;             // of the Trace, in lower case
  std::string path;            // of kGetFile, below the Trace's folder
  bool is_compressed = false;  // of kGetArchive: by zstd
};

// kNotFound: there is no such target. Nothing is decoded: names that the archive gives need no
// escapes.
Result<Route> ParseRoute(std::string_view path);

// A credential, which is not checked yet.
struct Token {
  // The token of a TraceView is "NAMESPACE.NAME.SECRET". Empty: it is a token of Kubernetes.
  std::string view_namespace;
  std::string view_name;
  std::string secret;  // of the view, or the whole token of Kubernetes
  [[nodiscard]] bool is_view() const { return !view_namespace.empty(); }
};

// The token of the headers X-Weft-Token and Authorization ("": not sent); the first one has
// precedence. kPermission: there is none, or it has no token's form. The message is for the client,
// and has nothing of the token in it.
Result<Token> ParseToken(std::string_view weft_token, std::string_view authorization);

// "bytes=FIRST-" or "bytes=FIRST-LAST".
struct Range {
  uint64_t first = 0;
  std::optional<uint64_t> last;
};

// kInvalid: no such range. Several ranges, and those that count from the end, are not taken.
Result<Range> ParseRange(std::string_view text);

// Bytes of a file: `part=FIRST:SIZE:PATH` in a query.
struct Part {
  uint64_t first = 0;
  uint64_t size = 0;
  std::string path;  // below the Trace's folder, of stored names
};

// The parts that a query names, in its order. Other members are passed over. kInvalid: there are
// none, more than kMaxParts, or one of another form.
Result<std::vector<Part>> PartsIn(std::string_view query);

// The number that a query names: "a=1&NAME=2". Nothing: it does not name it. kInvalid: it is no
// number below 2^64. Other members are passed over.
Result<std::optional<uint64_t>> NumberIn(std::string_view query, std::string_view name);

// The pods that a query names: `pod=NAME` any number of times. Each is a stored name, or kInvalid.
// Other members are passed over.
Result<std::vector<std::string>> PodsIn(std::string_view query);

}  // namespace weft::relay_api

#endif  // WEFT_RELAY_API_REQUEST_H_
