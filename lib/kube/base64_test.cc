// SPDX-License-Identifier: Apache-2.0
// RFC 4648 section 10, all short strings back and forth, and what is not base64.
#include "lib/kube/base64.h"

#include <gtest/gtest.h>

namespace weft {
namespace {

TEST(Base64, TheRfcsExamples) {
  EXPECT_EQ(EncodeBase64(""), "");
  EXPECT_EQ(EncodeBase64("f"), "Zg==");
  EXPECT_EQ(EncodeBase64("fo"), "Zm8=");
  EXPECT_EQ(EncodeBase64("foo"), "Zm9v");
  EXPECT_EQ(EncodeBase64("foobar"), "Zm9vYmFy");
}

TEST(Base64, EveryPairOfBytesComesBack) {
  for (int a = 0; a < 256; ++a) {
    for (int b = 0; b < 256; ++b) {
      const std::string bytes = {static_cast<char>(a), static_cast<char>(b)};
      const auto back = DecodeBase64(EncodeBase64(bytes));
      ASSERT_TRUE(back.has_value());
      ASSERT_EQ(*back, bytes);
    }
  }
}

TEST(Base64, RefusesWhatIsNot) {
  for (const char* text : {"Z", "Zg", "Zg=", "Z===", "====", "Zm9 ", "Zh==", "Zm9v\n", "Zg==Zg=="})
    EXPECT_FALSE(DecodeBase64(text).has_value()) << text;
}

}  // namespace
}  // namespace weft
