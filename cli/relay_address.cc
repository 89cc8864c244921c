// SPDX-License-Identifier: Apache-2.0
// See relay_address.h.
#include "cli/relay_address.h"

#include "cli/number.h"

namespace weft::cli {
namespace {

constexpr uint16_t kControlPort = 4460;
constexpr size_t kMaxHostBytes = 253;

// The number before the next colon or the end; 0: it is none.
uint16_t TakePort(std::string_view& text) {
  const std::string_view digits = text.substr(0, text.find(':'));
  text.remove_prefix(digits.size());
  return Number<uint16_t>(digits).value_or(0);
}

}  // namespace

Result<ipc::RelayAddress> ParseRelayAddress(const std::string& text) {
  const auto wrong = [&text] {
    return Fail(ErrorCode::kInvalid, "--relay " + text + ": not HOST[:PORT[:DATA-PORT]]");
  };
  std::string_view rest = text;
  const size_t bracket = rest.starts_with('[') ? rest.find(']') : std::string_view::npos;
  const bool bracketed = bracket != std::string_view::npos;
  const std::string_view host =
      bracketed ? rest.substr(1, bracket - 1) : rest.substr(0, rest.find(':'));
  if (host.empty() || host.size() > kMaxHostBytes) return wrong();
  rest.remove_prefix(bracketed ? bracket + 1 : host.size());
  ipc::RelayAddress address{std::string(host), kControlPort, 0};
  for (uint16_t* port : {&address.control_port, &address.data_port}) {
    if (rest.empty()) break;
    if (rest.front() != ':') return wrong();
    rest.remove_prefix(1);
    *port = TakePort(rest);
    if (*port == 0) return wrong();
  }
  if (!rest.empty()) return wrong();
  if (address.data_port == 0) address.data_port = static_cast<uint16_t>(address.control_port + 1);
  return address.data_port == 0 ? wrong() : Result<ipc::RelayAddress>(address);
}

}  // namespace weft::cli
