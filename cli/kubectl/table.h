// SPDX-License-Identifier: Apache-2.0
// Tables for terminals, as kubectl prints them: columns as wide as their widest cell, no lines.
// Thread-safety: pure functions.
#ifndef WEFT_CLI_KUBECTL_TABLE_H_
#define WEFT_CLI_KUBECTL_TABLE_H_

#include <algorithm>
#include <string>
#include <vector>

namespace weft::kubectl {

// Cells are Printable. All rows have as many as the first one.
using Row = std::vector<std::string>;

// The rows, each with an end of line.
inline std::string Table(const std::vector<Row>& rows) {
  constexpr std::size_t kGap = 3;
  std::string text;
  if (rows.empty()) return text;
  std::vector<std::size_t> widths(rows.front().size());
  for (const Row& row : rows)
    for (std::size_t i = 0; i < row.size(); ++i) widths[i] = std::max(widths[i], row[i].size());
  for (const Row& row : rows) {
    for (std::size_t i = 0; i + 1 < row.size(); ++i)
      text += row[i] + std::string(widths[i] + kGap - row[i].size(), ' ');
    text += row.back() + "\n";
  }
  return text;
}

}  // namespace weft::kubectl

#endif  // WEFT_CLI_KUBECTL_TABLE_H_
