// SPDX-License-Identifier: Apache-2.0
// See page.h.
#include "lib/metrics/page.h"

#include "lib/metrics/families.h"

namespace weft::metrics {
namespace {

std::string_view ProgramOf(Part part) {
  switch (part) {
    case Part::kAgent:
      return "weft-node-agent";
    case Part::kRelay:
      return "weft-relay";
    case Part::kController:
      return "weft-controller";
    case Part::kWebhook:
      return "weft-webhook";
  }
  __builtin_unreachable();
}

std::string_view NameOf(Kind kind) {
  switch (kind) {
    case Kind::kCounter:
      return "counter";
    case Kind::kGauge:
      return "gauge";
  }
  __builtin_unreachable();
}

std::string Row(const Family& family) {
  std::string labels;
  for (std::size_t i = 0; i < CountLabels(family); ++i)
    labels += (i == 0 ? "`" : ", `") + std::string(family.labels[i]) + "`";
  return "| `" + std::string(family.name) + "` | " + std::string(NameOf(family.kind)) + " | " +
         labels + " | " + std::string(family.help) + " |\n";
}

}  // namespace

std::string Tables() {
  std::string out;
  for (const Part part : {Part::kAgent, Part::kRelay, Part::kController, Part::kWebhook}) {
    out += "\n## " + std::string(ProgramOf(part)) +
           "\n\n| name | type | labels | meaning |\n|---|---|---|---|\n";
    for (const Family& family : kFamilies)
      if (family.part == part) out += Row(family);
  }
  return out + "\n";
}

std::string WithTables(const std::string& page) {
  const std::size_t begin = page.find(kTablesBegin);
  const std::size_t end = page.find(kTablesEnd);
  if (begin == std::string::npos || end == std::string::npos || end < begin) return "";
  return page.substr(0, begin + kTablesBegin.size()) + Tables() + page.substr(end);
}

}  // namespace weft::metrics
