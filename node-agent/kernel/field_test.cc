// SPDX-License-Identifier: Apache-2.0
// Paths and fields: what they find in a kernel's types, and, by running the fetch programs over
// memory laid out as those types say, that they bring the right bytes.
#include "node-agent/kernel/field.h"

#include <gtest/gtest.h>

#include "node-agent/kernel/btf_builder.h"
#include "node-agent/kernel/fetch_reference.h"

namespace weft::kernel {
namespace {

using testing::BtfBuilder;
using testing::FetchReference;

// struct inner { int small; int wide; };
// struct task_struct { char comm[16]; u32 low:3, mid:7; struct inner *to; struct inner in; u16
// port;
//                      u8 raw[4]; struct { int counter; } refs; const char *text; u64 tail[]; };
struct Inner {
  int32_t small = -5;
  int32_t wide = 70000;
};
struct Outer {
  char comm[16] = "shell";
  uint32_t bits = 5 | 99u << 3;
  uint32_t pad = 0;
  Inner* to = nullptr;
  Inner in{7, 8};
  uint16_t port = 0x3412;
  uint8_t raw[4] = {9, 8, 7, 6};
  uint16_t pad2 = 0;
  int32_t refs = -3;
  uint32_t pad3 = 0;
  const char* text = "a longer text";
  uint64_t tail[2] = {11, 12};
};

class FieldTest : public ::testing::Test {
 protected:
  FieldTest() {
    BtfBuilder b;
    const uint32_t s32 = b.Int("int", 4, 1);
    const uint32_t u32 = b.Int("unsigned int", 4);
    const uint32_t u16 = b.Int("unsigned short", 2);
    const uint32_t u8 = b.Int("unsigned char", 1);
    const uint32_t u64 = b.Int("unsigned long", 8);
    const uint32_t chr = b.Int("char", 1, 1);
    const uint32_t inner = b.Struct("inner", 8, {{"small", s32, 0}, {"wide", s32, 32}});
    const uint32_t refs = b.Struct("", 4, {{"counter", s32, 0}});
    const uint32_t anonymous =
        b.Struct("", 4, {{"low", u32, 3u << 24}, {"mid", u32, 7u << 24 | 3}}, true);
    const uint32_t kinds = b.Pairs(6, "kind", 4, {{"FIRST", 7, 0}, {"SECOND", 9, 0}});
    outer_ = b.Struct("task_struct", sizeof(Outer),
                      {{"comm", b.Array(chr, 16), offsetof(Outer, comm) * 8},
                       {"", anonymous, offsetof(Outer, bits) * 8},
                       {"to", b.Pointer(inner), offsetof(Outer, to) * 8},
                       {"in", inner, offsetof(Outer, in) * 8},
                       {"kind", kinds, offsetof(Outer, in) * 8},
                       {"port", u16, offsetof(Outer, port) * 8},
                       {"raw", b.Array(u8, 4), offsetof(Outer, raw) * 8},
                       {"refs", refs, offsetof(Outer, refs) * 8},
                       {"text", b.Pointer(b.Type(10, "", chr)), offsetof(Outer, text) * 8},
                       {"tail", b.Array(u64, 0), offsetof(Outer, tail) * 8}});
    const uint32_t base = b.Pointer(b.Int("void", 1));
    b.Struct("part", 16, {{"base", base, 0}, {"length", u64, 64}});
    b.Type(8, "word_t", u64);
    arguments_ = {{"p", b.Pointer(outer_)},
                  {"n", s32},
                  {"inside", b.Pointer(inner)},
                  {"parts", 0},
                  {"got", b.Int("long", 8, 1)}};
    btf_ = std::make_unique<Btf>(std::move(Btf::Parse(b.Bytes()).value()));
    outer_object_.to = &inner_object_;
  }

  [[nodiscard]] Result<Field> Make(const FieldSpec& spec, bool addresses = true) const {
    const FieldMaker maker{.btf = *btf_,
                           .catalogue = Catalogue::BuiltIn(),
                           .arguments = arguments_,
                           .addresses = addresses};
    return maker.Make(spec);
  }

  static FieldSpec At(std::string_view path) {
    return {.name = "f", .paths = {Path::Parse(path).value()}};
  }

  [[nodiscard]] std::string Bytes(const FieldSpec& spec) const {
    const Result<Field> field = Make(spec);
    if (!field) return "error: " + field.error().message;
    const auto values = FetchReference::Run(
        field->ops, {reinterpret_cast<uint64_t>(&outer_object_), 0xffff'ffff'0000'0005ull,
                     reinterpret_cast<uint64_t>(&outer_object_.in),
                     reinterpret_cast<uint64_t>(parts_), static_cast<uint64_t>(got_)});
    return values.size() == 1 ? values.front() : "no field";
  }

  [[nodiscard]] int64_t Number(const FieldSpec& spec) const {
    const std::string bytes = Bytes(spec);
    int64_t value = 0;
    EXPECT_LE(bytes.size(), sizeof(value)) << bytes;
    std::memcpy(&value, bytes.data(), std::min(bytes.size(), sizeof(value)));
    return bytes.size() == 4 ? static_cast<int32_t>(value) : value;
  }

  uint32_t outer_ = 0;
  std::vector<Argument> arguments_;
  std::unique_ptr<Btf> btf_;
  Inner inner_object_;
  Outer outer_object_;
  struct Part {
    const char* base;
    uint64_t length;
  };
  Part parts_[6] = {{"one", 3}, {"", 0}, {"two, ", 4}, {"three", 5}, {"four", 4}, {"not this", 8}};
  int64_t got_ = 5;
};

TEST_F(FieldTest, FollowsMembersPointersAndElements) {
  EXPECT_EQ(Number(At("n")), 5) << "upper bits of an argument are cut";
  EXPECT_EQ(Number(At("p.in.wide")), 8);
  EXPECT_EQ(Number(At("p.to.wide")), 70000);
  EXPECT_EQ(Number(At("p.to.small")), -5);
  EXPECT_EQ(Number(At("$0.to.small")), -5);
  EXPECT_EQ(Number(At("p.to[0].wide")), 70000);
  EXPECT_EQ(Number(At("p.raw[2]")), 7);
  EXPECT_EQ(Number(At("p.tail[1]")), 12) << "an array at the end of a structure";
  EXPECT_EQ(Number(At("(task_struct:in)inside.port")), 0x3412) << "what the argument is inside of";
  EXPECT_EQ(Number(At("(inner)inside.wide")), 8);
}

TEST_F(FieldTest, TakesBitFieldsBitsAndSums) {
  EXPECT_EQ(Number(At("p.low")), 5);
  EXPECT_EQ(Number(At("p.mid")), 99);
  FieldSpec spec = At("p.to.wide");
  spec.first_bit = 4;
  spec.bits = 8;
  EXPECT_EQ(Number(spec), (70000 >> 4) & 0xff);
  spec = At("p.in.wide");
  spec.add = -100;
  EXPECT_EQ(Number(spec), -92);
  EXPECT_EQ(Number(At("p.refs")), -3) << "a structure around one number";
}

TEST_F(FieldTest, DescribesTextArraysAndEnumerations) {
  EXPECT_EQ(Bytes(At("p.comm")).substr(0, 6), std::string("shell\0", 6));
  const Field comm = Make(At("p.comm")).value();
  EXPECT_TRUE(comm.description.is_text());
  EXPECT_EQ(comm.description.count, 16u);
  EXPECT_EQ(comm.ops.at(1).code, FetchCode::kTask) << "whose name is it?";
  EXPECT_EQ(Bytes(At("p.text")), "a longer text");
  EXPECT_EQ(Make(At("p.text")).value().description.kind, FieldKind::kString);
  EXPECT_EQ(Bytes(At("p.raw")), std::string("\x09\x08\x07\x06"));
  EXPECT_FALSE(Make(At("p.raw")).value().description.is_text());
  FieldSpec bytes = At("p.port");
  bytes.as = FieldSpec::As::kBytes;
  EXPECT_EQ(Bytes(bytes), "\x12\x34");
  const Field kind = Make(At("p.kind")).value();
  EXPECT_EQ(kind.description.kind, FieldKind::kEnum);
  EXPECT_EQ(kind.description.mappings.at(1).label, "SECOND");
  FieldSpec labelled = At("n");
  labelled.labels = "kind";
  EXPECT_EQ(Make(labelled).value().description.mappings.at(0).begin, 7u);
}

TEST_F(FieldTest, TrustsWhatAnArgumentPointsToAndNothingBehindIt) {
  EXPECT_EQ(Make(At("p.port")).value().ops.at(2).flags, kFetchTrusted);
  const Field behind = Make(At("p.to.wide")).value();
  EXPECT_EQ(behind.ops.at(2).flags, kFetchTrusted);
  EXPECT_EQ(behind.ops.at(3).flags, kFetchSigned);
  EXPECT_EQ(Make(At("(inner)inside.wide")).value().ops.at(1).flags, kFetchSigned);
  EXPECT_EQ(Make(At("p.tail[1]")).value().ops.at(2).flags, 0);
}

TEST_F(FieldTest, ShowsAddressesOnlyWhereItMay) {
  EXPECT_EQ(Make(At("p.to"), false).error().code, ErrorCode::kPermission);
  EXPECT_EQ(Number(At("p.to")), reinterpret_cast<int64_t>(&inner_object_));
  EXPECT_TRUE(Make(At("p.text"), false)) << "text is no address";
  FieldSpec site = At("p.tail[0]");
  site.as = FieldSpec::As::kAddress;
  EXPECT_EQ(Make(site, false).error().code, ErrorCode::kPermission) << "called an integer";
}

TEST_F(FieldTest, NamesWhatAKernelLacks) {
  EXPECT_EQ(Make(At("q")).error().message, "this kernel has no argument 'q'");
  EXPECT_EQ(Make(At("$5")).error().code, ErrorCode::kNotFound);
  EXPECT_EQ(Make(At("p.nothing")).error().message,
            "this kernel has no member 'nothing' of struct task_struct");
  EXPECT_EQ(Make(At("p.raw[4]")).error().code, ErrorCode::kNotFound);
  EXPECT_EQ(Make(At("(nothing)p.x")).error().code, ErrorCode::kNotFound);
  EXPECT_EQ(Make(At("n.x")).error().code, ErrorCode::kUnsupported);
  EXPECT_EQ(Make(At("p.in")).error().code, ErrorCode::kUnsupported) << "a whole structure";
  EXPECT_EQ(Make(At("p.low.x")).error().code, ErrorCode::kUnsupported);
  FieldSpec either = At("p.nothing");
  either.paths.push_back(Path::Parse("p.in.small").value());
  EXPECT_EQ(Number(either), 7) << "the first that there is";
}

TEST_F(FieldTest, CountsSequences) {
  FieldSpec spec = At("p.text");
  spec.count = Path::Parse("n").value();
  spec.as = FieldSpec::As::kText;
  spec.limit = 100;
  EXPECT_EQ(Bytes(spec), "a lon");
  spec.limit = 3;
  EXPECT_EQ(Bytes(spec), "a l");
  EXPECT_EQ(Make(spec).value().description.kind, FieldKind::kSequence);
}

TEST_F(FieldTest, TakesAMemberOfEachElement) {
  FieldSpec spec = At("(part)parts[].length");
  EXPECT_EQ(Make(spec).error().code, ErrorCode::kUnsupported) << "of how many?";
  spec.count = Path::Parse("n").value();
  const std::string lengths = Bytes(spec);
  ASSERT_EQ(lengths.size(), 5 * sizeof(uint64_t));
  for (size_t i = 0; i < 5; ++i)
    EXPECT_EQ(static_cast<uint64_t>(lengths[i * 8]), parts_[i].length) << i;
  const FieldDescription description = Make(spec).value().description;
  EXPECT_EQ(description.kind, FieldKind::kSequence);
  EXPECT_EQ(description.elem_size, 8);
  EXPECT_EQ(description.base, 10);
  spec.limit = 19;
  EXPECT_EQ(Bytes(spec).size(), 16u) << "whole elements";
  for (const char* path :
       {"p.tail[]", "(part)parts[].base.x", "parts[]", "(part)parts[].base(part)"}) {
    spec.paths = {Path::Parse(path).value()};
    EXPECT_EQ(Make(spec).error().code, ErrorCode::kUnsupported) << path;
  }
}

TEST_F(FieldTest, TakesAnArgumentForElementsOfATypeThatIsOnlyANameOfAnother) {
  EXPECT_EQ(static_cast<uint64_t>(Number(At("(word_t)parts[1]"))), parts_[0].length);
  FieldSpec spec = At("(word_t)parts[]");
  spec.count = Path::Parse("n").value();
  EXPECT_EQ(Bytes(spec).size(), 5 * sizeof(uint64_t));
}

TEST_F(FieldTest, GathersWhatBuffersHold) {
  FieldSpec spec = At("(part)parts");
  spec.as = FieldSpec::As::kGather;
  EXPECT_EQ(Make(spec).error().code, ErrorCode::kUnsupported) << "of how many?";
  spec.count = Path::Parse("n").value();
  EXPECT_EQ(Make(spec).error().code, ErrorCode::kUnsupported) << "the kernel's own memory";
  spec.user = true;
  EXPECT_EQ(Bytes(spec), "onetwo,threefour");
  spec.limit = 9;
  EXPECT_EQ(Bytes(spec), "onetwo,th");
  spec.total = "got";
  EXPECT_EQ(Bytes(spec), "onetw") << "no more than that";
  got_ = -14;
  EXPECT_EQ(Bytes(spec), "") << "an error";
  spec.total = "nothing";
  EXPECT_EQ(Make(spec).error().code, ErrorCode::kUnsupported);
}

TEST(Path, NamesThePositionOfAMistake) {
  for (const auto& [text, message] : std::initializer_list<std::pair<const char*, const char*>>{
           {"", "path '', character 1: expected a name"},
           {"a..b", "path 'a..b', character 3: expected a name"},
           {"a[x]", "path 'a[x]', character 3: expected a number"},
           {"a[1", "path 'a[1', character 4: expected ']'"},
           {"(t a", "path '(t a', character 3: expected ')'"},
           {"a b", "path 'a b', character 2: expected '.', '[' or '('"},
           {"a.b(c", "path 'a.b(c', character 6: expected ')'"},
           {"a[99999999999]", "path 'a[99999999999]', character 3: expected a number"}}) {
    const auto path = Path::Parse(text);
    ASSERT_FALSE(path) << text;
    EXPECT_EQ(path.error().message, message);
  }
}

}  // namespace
}  // namespace weft::kernel
