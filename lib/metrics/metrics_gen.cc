// SPDX-License-Identifier: Apache-2.0
// weft-metrics-gen TOP: writes the tables of docs/metrics.md in the repository at TOP.
#include <cstdio>
#include <fstream>
#include <iterator>
#include <string>

#include "lib/metrics/page.h"

int main(int argc, char** argv) {
  if (argc != 2) {
    std::fprintf(stderr, "usage: weft-metrics-gen TOP\n");
    return 2;
  }
  const std::string path = std::string(argv[1]) + "/docs/metrics.md";
  std::ifstream in(path, std::ios::binary);
  const std::string page{std::istreambuf_iterator<char>(in), {}};
  const std::string made = weft::metrics::WithTables(page);
  if (made.empty()) {
    std::fprintf(stderr, "weft-metrics-gen: %s lacks the two marks that its tables stand between\n",
                 path.c_str());
    return 1;
  }
  std::ofstream out(path, std::ios::binary);
  out << made;
  out.close();
  if (!out) std::fprintf(stderr, "weft-metrics-gen: cannot write %s\n", path.c_str());
  return out ? 0 : 1;
}
