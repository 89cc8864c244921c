// SPDX-License-Identifier: Apache-2.0
// Any text as a ticket: it is refused, unless it is the one that was issued.
#include <algorithm>
#include <chrono>
#include <cstdint>
#include <cstdlib>
#include <string>
#include <string_view>

#include "relay/trust/ticket.h"

using weft::relay_trust::TicketBook;
using weft::relay_trust::TicketFault;

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const TicketBook book({1, 2, 3}, [] { return std::chrono::seconds(1000); });
  // Node, namespace, ticket: one line each.
  std::string_view rest(reinterpret_cast<const char*>(data), size);
  const auto take = [&rest] {
    const std::string_view line = rest.substr(0, rest.find('\n'));
    rest.remove_prefix(std::min(line.size() + 1, rest.size()));
    return line;
  };
  const std::string_view node = take();
  const std::string_view name_space = take();
  const auto issued = book.Issue(node, name_space);
  if (!issued || book.Check(node, name_space, *issued) != TicketFault::kNone) std::abort();
  const bool is_good = book.Check(node, name_space, rest) == TicketFault::kNone;
  if (is_good && rest != *issued) std::abort();
  return 0;
}
