// SPDX-License-Identifier: Apache-2.0
#include "node-agent/kernel/btf.h"

#include <gtest/gtest.h>

#include <filesystem>

#include "node-agent/kernel/btf_builder.h"

namespace weft::kernel {
namespace {

using testing::BtfBuilder;

Btf Parsed(const BtfBuilder& builder) {
  Result<Btf> btf = Btf::Parse(builder.Bytes());
  if (!btf) throw std::runtime_error(btf.error().message);
  return std::move(*btf);
}

TEST(Btf, ReadsIntegersAndResolvesNames) {
  BtfBuilder b;
  const uint32_t s32 = b.Int("int", 4, 1);
  const uint32_t alias = b.Type(8, "pid_t", s32);
  const uint32_t both = b.Type(10, "", b.Type(9, "", alias));
  const Btf btf = Parsed(b);
  const BtfType type = btf.Resolve(both);
  EXPECT_EQ(type.id, s32);
  EXPECT_EQ(type.name, "int");
  EXPECT_TRUE(btf.IntOf(type).is_signed);
  EXPECT_EQ(btf.IntOf(type).bits, 32);
  EXPECT_EQ(btf.SizeOf(both), 4u);
  EXPECT_EQ(btf.Find(BtfKind::kTypedef, "pid_t")->id, alias);
  EXPECT_FALSE(btf.Find(BtfKind::kStruct, "pid_t"));
}

TEST(Btf, IntegersOfClangHaveGccsNames) {
  BtfBuilder b;
  const uint32_t word = b.Int("unsigned long", 8);
  const uint32_t half = b.Int("short", 2, 1);
  const uint32_t alias = b.Type(8, "long", word);  // no integer: its own name
  const Btf btf = Parsed(b);
  EXPECT_EQ(btf.Type(word).name, "long unsigned int");
  EXPECT_EQ(btf.Type(half).name, "short int");
  EXPECT_EQ(btf.Type(alias).name, "long");
  EXPECT_EQ(btf.Find(BtfKind::kInt, "long unsigned int")->id, word);
  EXPECT_FALSE(btf.Find(BtfKind::kInt, "unsigned long"));
}

TEST(Btf, FindsMembersThroughMembersWithoutAName) {
  BtfBuilder b;
  const uint32_t u32 = b.Int("unsigned int", 4);
  const uint32_t inner = b.Struct("", 8, {{"x", u32, 0}, {"y", u32, 32}});
  const uint32_t choice = b.Struct("", 8, {{"", inner, 0}, {"z", u32, 0}}, false, 5);
  const uint32_t outer = b.Struct("outer", 16, {{"a", u32, 0}, {"", choice, 64}});
  const Btf btf = Parsed(b);
  EXPECT_EQ(btf.FindMember(btf.Type(outer), "y")->bit_offset, 96u);
  EXPECT_EQ(btf.FindMember(btf.Type(outer), "z")->bit_offset, 64u);
  EXPECT_FALSE(btf.FindMember(btf.Type(outer), "w"));
  EXPECT_FALSE(btf.FindMember(btf.Type(outer), ""));
  EXPECT_FALSE(btf.FindMember(btf.Type(u32), "a"));
}

TEST(Btf, ReadsBitFieldsArraysEnumsAndPrototypes) {
  BtfBuilder b;
  const uint32_t u32 = b.Int("unsigned int", 4);
  const uint32_t flags = b.Struct("flags", 4, {{"one", u32, 3u << 24 | 5}}, true);
  const uint32_t grid = b.Array(b.Array(u32, 3), 2);
  const uint32_t named = b.Pairs(6, "e", 4, {{"MINUS", 0xffffffff, 0}, {"ONE", 1, 0}}, true);
  const uint32_t large = b.Enum64("l", "LARGE", 0x1234567890ull);
  const uint32_t call = b.Pairs(13, "", 0, {{"__data", b.Pointer(0), 0}, {"n", u32, 0}});
  const Btf btf = Parsed(b);
  const BtfMember one = btf.Members(btf.Type(flags)).at(0);
  EXPECT_EQ(one.bit_offset, 5u);
  EXPECT_EQ(one.bit_size, 3u);
  EXPECT_EQ(btf.SizeOf(grid), 24u);
  EXPECT_EQ(btf.ArrayOf(btf.Type(grid)).count, 2u);
  EXPECT_EQ(btf.Enumerators(btf.Type(named)).at(0).value, ~0ull);
  EXPECT_EQ(btf.Enumerators(btf.Type(large)).at(0).value, 0x1234567890ull);
  EXPECT_EQ(btf.Parameters(btf.Type(call)).at(1).name, "n");
  EXPECT_FALSE(btf.SizeOf(call));
  EXPECT_FALSE(btf.SizeOf(0));
}

TEST(Btf, ReadsAModulesPartOnTopOfTheKernels) {
  BtfBuilder kernel;
  const uint32_t u32 = kernel.Int("u32", 4);
  auto base = std::make_shared<const Btf>(Parsed(kernel));
  BtfBuilder module(kernel.next(), kernel.strings());
  const uint32_t own = module.Struct("own", 4, {{"count", u32, 0}});
  const Result<Btf> btf = Btf::Parse(module.Bytes(), base);
  ASSERT_TRUE(btf) << btf.error().message;
  EXPECT_EQ(own, btf->first());
  EXPECT_EQ(btf->Type(own).name, "own");
  EXPECT_EQ(btf->Members(btf->Type(own)).at(0).name, "count");
  EXPECT_EQ(btf->Type(btf->Members(btf->Type(own)).at(0).type).name, "u32");
  EXPECT_EQ(btf->Find(BtfKind::kInt, "u32")->id, u32);
  EXPECT_EQ(btf->FindPrefix(BtfKind::kStruct, "o").size(), 1u);
  EXPECT_TRUE(btf->FindPrefix(BtfKind::kInt, "u").empty());
}

TEST(Btf, EndsInCirclesAndAtMissingTypes) {
  BtfBuilder b;
  const uint32_t self = b.Type(8, "self", 1);
  const uint32_t lost = b.Type(8, "lost", 77);
  const uint32_t array = b.Array(3, 0xffffffff);
  const uint32_t nest = b.Struct("", 8, {{"", 4, 0}, {"", 4, 0}, {"", 4, 0}});
  const Btf btf = Parsed(b);
  EXPECT_EQ(btf.Resolve(self).kind, BtfKind::kVoid);
  EXPECT_EQ(btf.Resolve(lost).kind, BtfKind::kVoid);
  EXPECT_FALSE(btf.SizeOf(array));
  EXPECT_FALSE(btf.FindMember(btf.Type(nest), "x"));
}

TEST(Btf, RefusesTruncatedData) {
  BtfBuilder b;
  b.Struct("outer", 16, {{"a", b.Int("u32", 4), 0}});
  const std::vector<uint8_t> whole = b.Bytes();
  ASSERT_TRUE(Btf::Parse(whole));
  for (size_t size = 0; size < whole.size(); ++size)
    EXPECT_FALSE(Btf::Parse({whole.begin(), whole.begin() + static_cast<ptrdiff_t>(size)}));
  const auto with = [&](size_t at, uint8_t value) {
    std::vector<uint8_t> bytes = whole;
    bytes.at(at) = value;
    return Btf::Parse(bytes).error().code;
  };
  EXPECT_EQ(with(0, 0xeb), ErrorCode::kUnsupported) << "another byte order";
  EXPECT_EQ(with(2, 2), ErrorCode::kUnsupported);
  EXPECT_EQ(with(24 + 7, 31), ErrorCode::kUnsupported) << "a kind";
  EXPECT_EQ(with(whole.size() - 1, 'x'), ErrorCode::kCorrupt);
}

TEST(Btf, ReadsTheRunningKernel) {
  const char* path = "/sys/kernel/btf/vmlinux";
  if (!std::filesystem::exists(path)) GTEST_SKIP() << "no " << path;
  const Result<Btf> btf = Btf::Load(path);
  ASSERT_TRUE(btf) << btf.error().message;
  const auto task = btf->Find(BtfKind::kStruct, "task_struct");
  ASSERT_TRUE(task);
  const auto comm = btf->FindMember(*task, "comm");
  ASSERT_TRUE(comm);
  EXPECT_EQ(btf->SizeOf(comm->type), 16u);
  EXPECT_GT(btf->FindPrefix(BtfKind::kTypedef, "btf_trace_").size(), 100u);
}

}  // namespace
}  // namespace weft::kernel
