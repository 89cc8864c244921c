// SPDX-License-Identifier: Apache-2.0
#include "lib/ctf/text.h"

#include <gtest/gtest.h>

#include <random>
#include <string>

namespace weft::ctf {
namespace {

std::string Valid(std::string text) {
  text.resize(MakeTextValid(reinterpret_cast<uint8_t*>(text.data()), text.size()));
  return text;
}

// Decodes code points as RFC 3629 defines them: a slow second opinion.
std::string Oracle(const std::string& text) {
  std::string out;
  for (size_t at = 0; at < text.size() && text[at] != 0;) {
    const auto lead = static_cast<uint8_t>(text[at]);
    const size_t length = lead < 0x80   ? 1
                          : lead < 0xc0 ? 0
                          : lead < 0xe0 ? 2
                          : lead < 0xf0 ? 3
                          : lead < 0xf8 ? 4
                                        : 0;
    uint32_t code = lead;
    bool ok = length > 0 && at + length <= text.size();
    if (length > 1) code = lead & (0xff >> (length + 1));
    for (size_t i = 1; ok && i < length; i++) {
      const auto byte = static_cast<uint8_t>(text[at + i]);
      ok = (byte >> 6) == 2;
      code = code << 6 | (byte & 0x3f);
    }
    constexpr uint32_t kSmallest[] = {0, 0, 0x80, 0x800, 0x10000};
    ok = ok && code >= kSmallest[length] && code <= 0x10ffff && !(code >= 0xd800 && code < 0xe000);
    out += ok ? text.substr(at, length) : "?";
    at += ok ? length : 1;
  }
  return out;
}

TEST(Text, EndsAtTheFirstNul) {
  EXPECT_EQ(Valid(std::string("abc\0def", 7)), "abc");
  EXPECT_EQ(Valid(std::string("12345678\0abcdefgh", 17)), "12345678");
  EXPECT_EQ(Valid(std::string(1, '\0')), "");
  EXPECT_EQ(Valid(""), "");
}

TEST(Text, KeepsUtf8AndReplacesTheRest) {
  EXPECT_EQ(Valid("gr\xc3\xbc\xc3\x9f"), "gr\xc3\xbc\xc3\x9f");
  EXPECT_EQ(Valid("\xf0\x9f\x98\x80!"), "\xf0\x9f\x98\x80!");
  EXPECT_EQ(Valid("a\xff"), "a?");
  EXPECT_EQ(Valid("\xc0\x80"), "??");          // overlong NUL
  EXPECT_EQ(Valid("\xed\xa0\x80"), "???");     // surrogate
  EXPECT_EQ(Valid("cut \xe2\x82"), "cut ??");  // ends inside a sequence
}

TEST(Text, AllPairsAndRandomTextsAgreeWithTheOracle) {
  for (int a = 0; a < 256; a++) {
    for (int b = 0; b < 256; b++) {
      const std::string text = {static_cast<char>(a), static_cast<char>(b), 'x'};
      ASSERT_EQ(Valid(text), Oracle(text)) << a << " " << b;
    }
  }
  std::mt19937_64 random(1);
  constexpr char kBytes[] = "\x00\x7f\x80\x8f\x90\x9f\xa0\xbf\xc1\xc2\xdf\xe0\xed\xef\xf0\xf4\xf5z";
  for (int round = 0; round < 300'000; round++) {
    std::string text(random() % 20, 'a');
    for (char& c : text) {
      if (random() % 4 != 0) c = kBytes[random() % (sizeof(kBytes) - 1)];
    }
    ASSERT_EQ(Valid(text), Oracle(text));
  }
}

TEST(Text, NamesArePrintableAndIdentifiersPlain) {
  EXPECT_EQ(PrintableName("p:e\033[31m\n"), "p:e?[31m?");
  EXPECT_EQ(IdentifierName("perf:thread:cache-misses"), "perf_thread_cache_misses");
  EXPECT_EQ(IdentifierName(""), "_");
}

}  // namespace
}  // namespace weft::ctf
