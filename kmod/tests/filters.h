// SPDX-License-Identifier: GPL-2.0-only
// Filters for events of these tests: programs that the agents' compiler makes, and damaged copies.
// Most damaged copies pass the first checks. One thread per Filters.
#ifndef WEFT_KMOD_TESTS_FILTERS_H_
#define WEFT_KMOD_TESTS_FILTERS_H_

#include <cstdint>
#include <random>
#include <string>
#include <vector>

namespace weft::kmod {

// Returns a program of the compiler; the test fails if it refuses the text.
std::vector<uint8_t> Compiled(const std::string& expression);

// Returns expressions over the fields of UserEvent() and over the module's contexts. Each fits that
// event.
const std::vector<std::string>& UserEventExpressions();
// Returns expressions over the fields f1, f2 and f3 (8 bytes).
const std::vector<std::string>& NumberExpressions();

class Filters {
 public:
  explicit Filters(const std::vector<std::string>& expressions);

  // Returns a program as the compiler made it.
  [[nodiscard]] const std::vector<uint8_t>& Right(std::mt19937_64& random) const;
  // Returns a spoilt program: bits or bytes changed, cut off, joined from two, or with its
  // instructions in another order.
  [[nodiscard]] std::vector<uint8_t> Spoilt(std::mt19937_64& random) const;

 private:
  std::vector<std::vector<uint8_t>> programs_;
};

}  // namespace weft::kmod

#endif  // WEFT_KMOD_TESTS_FILTERS_H_
