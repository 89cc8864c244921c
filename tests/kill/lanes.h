// SPDX-License-Identifier: Apache-2.0
// The records that were read of each lane (books.h). A lane is one line of execution of one
// process, so its records lie in one ring set, each once, and ascend with their sequence and their
// time. Missing records were discarded or overwritten there. One thread.
#ifndef WEFT_TESTS_KILL_LANES_H_
#define WEFT_TESTS_KILL_LANES_H_

#include <array>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "tests/kill/books.h"

namespace weft::kill_test {

class Lanes {
 public:
  struct Record {
    uint64_t sequence = 0;
    uint64_t time = 0;
    uint32_t ring_set = 0;
    uint32_t slot = 0;
  };

  // Call it in the order in which the slot gives the records.
  void Saw(uint64_t lane, const Record& record) { lanes_[lane].push_back(record); }

  // Call it after the program's end. `lost`: for each ring set, the events that it discarded or
  // overwrote. Returns the first contradiction; "": there is none.
  [[nodiscard]] std::string Contradiction(const stress_books& books,
                                          std::span<const uint64_t> lost) const;

 private:
  // `missing`: ended and not seen. `open`: begun, not ended and not seen; it may have been lost or
  // not.
  struct Balance {
    uint64_t missing = 0;
    uint64_t open = 0;
  };
  [[nodiscard]] std::string Order(uint64_t lane, const stress_lane& book) const;
  [[nodiscard]] Balance Missing(uint64_t lane, const stress_lane& book) const;

  std::array<std::vector<Record>, STRESS_LANES> lanes_;
};

}  // namespace weft::kill_test

#endif  // WEFT_TESTS_KILL_LANES_H_
