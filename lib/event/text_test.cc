// SPDX-License-Identifier: Apache-2.0
#include "lib/event/text.h"

#include <gtest/gtest.h>

namespace weft {
namespace {

TEST(PrintableUtf8, TakesWellFormedText) {
  EXPECT_TRUE(IsPrintableUtf8(""));
  EXPECT_TRUE(IsPrintableUtf8("shop:order ~"));
  EXPECT_TRUE(
      IsPrintableUtf8("gr\xc3\xb6\xc3\x9f"
                      "e \xe2\x82\xac \xf0\x9f\x98\x80"));
  EXPECT_TRUE(IsPrintableUtf8("\xf4\x8f\xbf\xbf")) << "U+10FFFF";
}

TEST(PrintableUtf8, RefusesMalformedText) {
  for (const char* text :
       {"\xff", "\x80", "a\xc3", "\xc3(", "\xe2\x82", "\xc0\xaf", "\xc1\xbf", "\xe0\x9f\xbf",
        "\xed\xa0\x80", "\xf0\x8f\xbf\xbf", "\xf4\x90\x80\x80", "\xf8\x88\x80\x80\x80"})
    EXPECT_FALSE(IsPrintableUtf8(text)) << testing::PrintToString(text);
}

TEST(PrintableUtf8, RefusesControlCharacters) {
  EXPECT_FALSE(IsPrintableUtf8(std::string_view("a\0b", 3)));
  EXPECT_FALSE(IsPrintableUtf8("\x1b[31m"));
  EXPECT_FALSE(IsPrintableUtf8("two\nlines"));
  EXPECT_FALSE(IsPrintableUtf8("\x7f"));
  EXPECT_FALSE(IsPrintableUtf8("\xc2\x9b")) << "U+009B starts escape sequences too";
}

TEST(Printable, KeepsWhatIsPrintableAndTheLength) {
  EXPECT_EQ(Printable("gr\xc3\xb6\xc3\x9ft"), "gr\xc3\xb6\xc3\x9ft");
  EXPECT_EQ(Printable("a\x1b[31m\xff\x7f"), "a [31m? ");
  EXPECT_EQ(Printable("\xc2\x9bm"), "??m");
}

TEST(Identifier, IsAnIdentifierOfC) {
  for (const char* text : {"a", "_", "_1", "Aa0_z"}) EXPECT_TRUE(IsIdentifier(text)) << text;
  for (const char* text : {"", "1a", "a-b", "a b", "a.b", "a:b", "\xc3\xb6"})
    EXPECT_FALSE(IsIdentifier(text)) << text;
}

TEST(FieldPath, IsIdentifiersWithIndexes) {
  for (const char* text : {"a", "a.b", "a[0]", "a.b[12].c[0][1]", "_.x"})
    EXPECT_TRUE(IsFieldPath(text)) << text;
  for (const char* text :
       {"", ".a", "a.", "a..b", "a[", "a[]", "a[x]", "a[1", "a[1]b", "[1]", "a.1"})
    EXPECT_FALSE(IsFieldPath(text)) << text;
}

}  // namespace
}  // namespace weft
