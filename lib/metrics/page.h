// SPDX-License-Identifier: Apache-2.0
// The tables of docs/metrics.md, made from families.h. `weft-metrics-gen TOP` writes them into the
// page between its two marks; metrics_test.cc fails when the page has others.
// Thread-safety: pure functions.
#ifndef WEFT_LIB_METRICS_PAGE_H_
#define WEFT_LIB_METRICS_PAGE_H_

#include <string>
#include <string_view>

namespace weft::metrics {

inline constexpr std::string_view kTablesBegin =
    "<!-- made from lib/metrics/families.h by weft-metrics-gen -->\n";
inline constexpr std::string_view kTablesEnd = "<!-- end of what was made -->\n";

// Returns a table in Markdown for each part.
std::string Tables();

// `page` with Tables() between its marks; "": it lacks a mark.
std::string WithTables(const std::string& page);

}  // namespace weft::metrics

#endif  // WEFT_LIB_METRICS_PAGE_H_
