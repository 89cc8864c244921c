// SPDX-License-Identifier: Apache-2.0
#include "node-agent/hooks/displace.h"

#include <gtest/gtest.h>
#include <sys/mman.h>

#include <cstring>
#include <string>

#include "lib/abi/hooks.h"

namespace weft::hooks {
namespace {

constexpr size_t kPage = 4096;
constexpr size_t kFar = size_t{1} << 30;  // from the functions to where they are moved
constexpr uint64_t kAny = 0x400000;

using Code = std::vector<uint8_t>;

bool ReadNothing(uint64_t, void*, size_t) { return false; }

// Memory for functions and, a GiB away, for what is moved.
class Place {
 public:
  Place() {
    memory_ = static_cast<uint8_t*>(mmap(nullptr, kFar + kPage, PROT_READ | PROT_WRITE | PROT_EXEC,
                                         MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0));
  }
  ~Place() { munmap(memory_, kFar + kPage); }
  Place(const Place&) = delete;
  Place& operator=(const Place&) = delete;

  [[nodiscard]] bool is_there() const { return memory_ != MAP_FAILED; }
  uint8_t* function() { return memory_; }
  uint8_t* moved() { return memory_ + kFar; }

 private:
  uint8_t* memory_;
};

// Clang's sanitizer looks for a type before the code of what is called by a pointer. There is none
// before the code of these tests.
#if defined(__clang__)
#define CALLS_UNTYPED_CODE __attribute__((no_sanitize("function")))
#else
#define CALLS_UNTYPED_CODE
#endif

CALLS_UNTYPED_CODE uint64_t CallCode(const uint8_t* code, uint64_t a, uint64_t b) {
  return reinterpret_cast<uint64_t (*)(uint64_t, uint64_t)>(reinterpret_cast<uintptr_t>(code))(a,
                                                                                               b);
}

struct Sample {
  const char* name;
  Code code;
};

// Functions of two integers. Each ends at its last `ret`; data may follow.
const Sample kSamples[] = {
    {"PushAndFrame", {0x55, 0x48, 0x89, 0xe5, 0x48, 0x8d, 0x04, 0x37, 0x5d, 0xc3}},
    {"EndbrThenAdd", {0xf3, 0x0f, 0x1e, 0xfa, 0x48, 0x8d, 0x04, 0x77, 0xc3}},
    // mov rax, [rip + 4]; add rax, rdi; ret; data
    {"LoadsRelative",
     {0x48, 0x8b, 0x05, 0x04, 0, 0, 0, 0x48, 0x01, 0xf8, 0xc3, 1, 2, 3, 4, 5, 6, 7, 8}},
    // lea rax, [rip + 3]; add rax, rsi; sub rax, [rip - 7 ...]: the address itself cancels out
    {"TakesAddress", {0x48, 0x8d, 0x05, 0x10, 0,    0,    0,    0x48, 0x8d, 0x0d, 0x0c, 0,
                      0,    0,    0x48, 0x29, 0xc8, 0x48, 0x01, 0xf0, 0xc3, 0x90, 0x90, 0x90}},
    // test rdi, rdi; je +3; lea eax, [rdi+1]; ret ... short branch in the first bytes
    {"ShortBranch",
     {0x48, 0x85, 0xff, 0x74, 0x05, 0x48, 0x8d, 0x47, 0x07, 0xc3, 0x48, 0x89, 0xf0, 0xc3}},
    // cmp rdi, rsi; jb near
    {"LongBranch",
     {0x48, 0x39, 0xf7, 0x0f, 0x82, 0x04, 0, 0, 0, 0x48, 0x89, 0xf8, 0xc3, 0x48, 0x89, 0xf0, 0xc3}},
    // call of the lea behind the padding; add rax, rsi; ret
    {"CallsAtTheBegin",
     {0xe8, 0x06, 0, 0, 0, 0x48, 0x01, 0xf0, 0xc3, 0x90, 0x90, 0x48, 0x8d, 0x47, 0x07, 0xc3}},
    // push rbx; call; pop rbx; ret
    {"CallsInFirstBytes", {0x53, 0xe8, 0x02, 0, 0, 0, 0x5b, 0xc3, 0x48, 0x8d, 0x04, 0x77, 0xc3}},
    // xor eax, eax; ret; padding
    {"ShortBeforePadding", {0x31, 0xc0, 0xc3, 0x66, 0x90, 0xcc}},
    // jmp near
    {"JumpsFar", {0xe9, 0x02, 0, 0, 0, 0x90, 0x90, 0x48, 0x31, 0xf7, 0x48, 0x89, 0xf8, 0xc3}},
    // mov eax, 5; ret
    {"ReturnsConstant", {0xb8, 0x05, 0, 0, 0, 0xc3}},
    // mov rax, rdi; xchg; ret as the last displaced: mov rax,rdi (3) inc eax(2)... ret
    {"ReturnsInFirstBytes", {0x48, 0x8d, 0x47, 0x01, 0xc3}},
    // cmp dword [rip+9], edi; sete al; movzx eax, al; ret; data
    {"ComparesRelative",
     {0x39, 0x3d, 0x07, 0, 0, 0, 0x0f, 0x94, 0xc0, 0x0f, 0xb6, 0xc0, 0xc3, 3, 0, 0, 0}},
    // mov dword [rip+10], imm32 ; mov eax,[rip+..]; ret: displacement followed by an immediate
    {"StoresRelative", {0xc7, 0x05, 0x07, 0, 0, 0,    0x44, 0x33, 0x22, 0x11, 0x8b,
                        0x05, 0x01, 0,    0, 0, 0xc3, 0,    0,    0,    0}},
};

class Moves : public testing::TestWithParam<Sample> {};

// The differential test: what was moved does what it did, natively, for many arguments.
TEST_P(Moves, DoesWhatTheFunctionDoes) {
  Place place;
  ASSERT_TRUE(place.is_there());
  const Code& code = GetParam().code;
  std::memcpy(place.function(), code.data(), code.size());
  const auto address = reinterpret_cast<uint64_t>(place.function());
  const auto to = reinterpret_cast<uint64_t>(place.moved());
  const auto moved = Displace(address, code, to);
  ASSERT_TRUE(moved) << moved.error().message;
  ASSERT_LE(moved->size(), size_t{WEFT_HOOK_THUNK_BYTES - 32});
  std::memcpy(place.moved(), moved->data(), moved->size());
  constexpr uint64_t kValues[] = {0, 1, 3, 7, 0x7fffffff, 0x80000000, 0xffffffff, UINT64_MAX};
  for (const uint64_t a : kValues)
    for (const uint64_t b : kValues)
      EXPECT_EQ(CallCode(place.moved(), a, b), CallCode(place.function(), a, b)) << a << " " << b;
  // With the jump in place, calls of the function go through what was moved.
  const auto jump = JumpFrom(address, to);
  ASSERT_TRUE(jump);
  Code before(code.begin(), code.end());
  std::vector<uint64_t> results;
  for (const uint64_t a : kValues) results.push_back(CallCode(place.function(), a, a / 3));
  std::memcpy(place.function(), jump->data(), WEFT_HOOK_JUMP_BYTES);
  for (size_t i = 0; i < results.size(); ++i)
    EXPECT_EQ(CallCode(place.function(), kValues[i], kValues[i] / 3), results[i]);
}

// A call through a word near the code, as -fno-plt makes it, returns where it did.
TEST(Calls, ThroughAWordReturnWhereTheyDid) {
  Place place;
  ASSERT_TRUE(place.is_there());
  // call [rip + 10]; add rax, rsi; ret; the callee: lea rax, [rdi+7]; ret; its address
  const Code code{0xff, 0x15, 0x0a, 0,    0, 0, 0x48, 0x01, 0xf0, 0xc3, 0x48, 0x8d,
                  0x47, 0x07, 0xc3, 0x90, 0, 0, 0,    0,    0,    0,    0,    0};
  std::memcpy(place.function(), code.data(), code.size());
  const auto address = reinterpret_cast<uint64_t>(place.function());
  const uint64_t callee = address + 10;
  std::memcpy(place.function() + 16, &callee, sizeof(callee));
  EXPECT_TRUE(CallsInFirstBytes(code));
  const auto moved = Displace(address, code, reinterpret_cast<uint64_t>(place.moved()));
  ASSERT_TRUE(moved) << moved.error().message;
  std::memcpy(place.moved(), moved->data(), moved->size());
  EXPECT_EQ(CallCode(place.moved(), 100, 20), 127u);
}

INSTANTIATE_TEST_SUITE_P(Samples, Moves, testing::ValuesIn(kSamples),
                         [](const auto& info) { return std::string(info.param.name); });

std::string WhyNot(const Code& code, uint64_t address = kAny,
                   const ReadMemory& read = ReadNothing) {
  if (const Status checked = CheckEntry(address, code, read); !checked)
    return checked.error().message;
  const auto moved = Displace(address, code, address + kFar);
  return moved ? "" : moved.error().message;
}

TEST(Refuses, FunctionShorterThanTheJump) {
  EXPECT_NE(WhyNot({0x31, 0xc0, 0xc3}), "");
  EXPECT_NE(WhyNot({0x31, 0xc0, 0xc3, 0x90, 0x55, 0x90}), "");  // what follows is code
  EXPECT_NE(WhyNot({0x31, 0xc0, 0xc3, 0x90}), "");
}

TEST(Padding, IsWhatDoesNothingAndWhole) {
  EXPECT_TRUE(IsPadding(Code{0x90, 0x66, 0x90, 0xcc, 0x0f, 0x1f, 0x40, 0x00}));
  EXPECT_FALSE(IsPadding(Code{0x90, 0x0f, 0x1f, 0x40}));
  EXPECT_FALSE(IsPadding(Code{0x90, 0xc3}));
  EXPECT_FALSE(IsPadding(Code{0xf3, 0x0f, 0x1e, 0xfa}));  // endbr64 begins a function
  EXPECT_FALSE(IsPadding(Code{}));
  EXPECT_EQ(CodeBytes(kAny, 3), 16u);
  EXPECT_EQ(CodeBytes(kAny + 14, 3), 3u);
  EXPECT_EQ(CodeBytes(kAny + 14, 300), 300u);
}

TEST(Refuses, JumpAcrossTwoPages) {
  const Code code{0x55, 0x48, 0x89, 0xe5, 0x5d, 0xc3};
  EXPECT_EQ(WhyNot(code, kAny + 4096 - 5), "");
  EXPECT_NE(WhyNot(code, kAny + 4096 - 4), "");
}

TEST(Refuses, ShortJumpBeforeCode) {
  EXPECT_EQ(WhyNot({0xeb, 0x03, 0x90, 0x90, 0x90, 0x48, 0x8d, 0x04, 0x3e, 0xc3}), "");
  EXPECT_NE(WhyNot({0xeb, 0x03, 0x90, 0xc3, 0x90, 0x48, 0x8d, 0x04, 0x3e, 0xc3}), "");
}

TEST(Refuses, BranchIntoTheFirstBytes) {
  // endbr64; dec edi; jne endbr64+4; ret
  EXPECT_NE(WhyNot({0xf3, 0x0f, 0x1e, 0xfa, 0xff, 0xcf, 0x75, 0xfc, 0xc3}).find("branches"),
            std::string::npos);
}

TEST(Refuses, JumpTableIntoTheFirstBytes) {
  // endbr64; lea rax, [rip+table]; movsxd rcx, [rax+rdi*4]; add rax, rcx; jmp rax
  const Code code{0xf3, 0x0f, 0x1e, 0xfa, 0x48, 0x8d, 0x05, 0,    0x01, 0,
                  0,    0x48, 0x63, 0x0c, 0xb8, 0x48, 0x01, 0xc8, 0xff, 0xe0};
  const uint64_t table = kAny + 11 + 0x100;
  const auto read = [&](int32_t to) {
    return [=](uint64_t at, void* out, size_t size) {
      const auto distance = static_cast<int32_t>(kAny + static_cast<uint64_t>(to) - table);
      if (size == 4) std::memcpy(out, &distance, size);
      // One entry, then something else.
      static const int32_t other = 0x100;
      if (size == 4 && at != table) std::memcpy(out, &other, size);
      return true;
    };
  };
  EXPECT_EQ(WhyNot(code, kAny, read(18)), "");
  EXPECT_NE(WhyNot(code, kAny, read(4)).find("jump table"), std::string::npos);
}

TEST(Refuses, WhatCannotBeMoved) {
  EXPECT_NE(WhyNot({0x90, 0x90, 0x90, 0xff, 0xd0, 0xc3}).find("by a register"), std::string::npos);
  EXPECT_NE(WhyNot({0xff, 0xd0, 0x90, 0x90, 0x90, 0xc3}).find("returns into"), std::string::npos);
  EXPECT_NE(WhyNot({0x0f, 0x05, 0x90, 0x90, 0x90, 0xc3}).find("system call"), std::string::npos);
  EXPECT_NE(WhyNot({0xe3, 0x04, 0x90, 0x90, 0x90, 0x90, 0xc3}).find("longer form"),
            std::string::npos);                                       // jrcxz
  EXPECT_NE(WhyNot({0xe2, 0x04, 0x90, 0x90, 0x90, 0x90, 0xc3}), "");  // loop
  EXPECT_NE(WhyNot({0x06, 0x06, 0x06, 0x06, 0x06, 0x06}).find("instructions"), std::string::npos);
}

TEST(Refuses, DistancesBeyondTwoGiB) {
  const Code loads{0x48, 0x8b, 0x05, 0x04, 0, 0, 0, 0xc3};
  EXPECT_TRUE(Displace(kAny, loads, kAny + (uint64_t{1} << 30)));
  EXPECT_FALSE(Displace(kAny, loads, kAny + (uint64_t{1} << 32)));
  EXPECT_FALSE(JumpFrom(kAny, kAny + (uint64_t{1} << 32)));
}

}  // namespace
}  // namespace weft::hooks
