// SPDX-License-Identifier: Apache-2.0
// Files of the repository that are made from the tables here, for tests.
// lint: not self-contained: WEFT_SOURCE_DIR is given to tests alone (cmake/weft.cmake).
#ifndef WEFT_LIB_API_TESTING_H_
#define WEFT_LIB_API_TESTING_H_

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>
#include <sstream>
#include <string>

#include "lib/api/crd.h"

namespace weft::api {

// `name`: a path from the top of the repository.
inline std::string ReadSource(const std::string& name) {
  const std::string path = std::string(WEFT_SOURCE_DIR) + "/" + name;
  std::ifstream in(path, std::ios::binary);
  EXPECT_TRUE(in.good()) << path;
  std::ostringstream out;
  out << in.rdbuf();
  return out.str();
}

inline constexpr const char* kRemake = "run build/release/lib/api/weft-api-gen .";

inline void ExpectCommitted(const std::string& name, const std::string& made) {
  EXPECT_EQ(ReadSource(name), made) << kRemake;
}

// Compares the text between the page's two marks.
inline void ExpectCommittedReference(const std::string& page, const std::string& made) {
  EXPECT_THAT(ReadSource(page), testing::HasSubstr(std::string(kReferenceBegin) + "\n" + made +
                                                   std::string(kReferenceEnd)))
      << kRemake;
}

}  // namespace weft::api

#endif  // WEFT_LIB_API_TESTING_H_
