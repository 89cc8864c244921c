// SPDX-License-Identifier: Apache-2.0
// "Did you mean": finds the nearest of a few valid names. Thread-safety: pure
// functions.
#ifndef WEFT_LIB_API_NEAREST_H_
#define WEFT_LIB_API_NEAREST_H_

#include <cstddef>
#include <span>
#include <string>
#include <string_view>

namespace weft::api {

// Damerau-Levenshtein distance (optimal string alignment: insert, delete, replace, swap of
// neighbours each cost 1, no substring is edited twice), upper and lower case being equal.
// Strings over 64 bytes are "infinitely" far apart.
std::size_t EditDistance(std::string_view a, std::string_view b);

// Returns the largest distance at which a name may be meant by another one: a third of the longer
// one's length, at least 1.
std::size_t MostDistance(std::string_view a, std::string_view b);

// Returns the candidate with the smallest distance, the first of equals; "" if none is within
// MostDistance.
std::string_view Nearest(std::string_view name, std::span<const std::string_view> candidates);

// Returns `, did you mean "x"?`, or `; ` and the list of candidates if none is near.
std::string DidYouMean(std::string_view name, std::span<const std::string_view> candidates);

}  // namespace weft::api

#endif  // WEFT_LIB_API_NEAREST_H_
