// SPDX-License-Identifier: Apache-2.0
#include "node-agent/kernel/probes.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include "lib/event/description.h"
#include "node-agent/kernel/btf_builder.h"

namespace weft::kernel {
namespace {

constexpr std::string_view kSymbols =
    "ffffffff81000000 T first\n"
    "ffffffff81000010 t second\n"
    "ffffffff81000010 T second_too\n"
    "ffffffff81000040 D a_variable\n"
    "ffffffff81000050 t twice\n"
    "ffffffff81000060 t twice\n"
    "ffffffffa0000000 t last\t[module]\n";

TEST(KernelSymbols, KnowFunctionsAndTheirEnds) {
  const auto symbols = KernelSymbols::Parse(kSymbols);
  ASSERT_TRUE(symbols) << symbols.error().message;
  EXPECT_TRUE(symbols->CheckFunction("first", 15));
  EXPECT_EQ(symbols->CheckFunction("first", 16).error().message,
            "function 'first' has only 16 bytes");
  EXPECT_TRUE(symbols->CheckFunction("second", 0x3f)) << "a variable is no end";
  EXPECT_EQ(symbols->CheckFunction("second_too", 0x40).error().code, ErrorCode::kInvalid);
  EXPECT_TRUE(symbols->CheckFunction("last", 1 << 20)) << "the last one's end is not known";
  EXPECT_EQ(symbols->CheckFunction("a_variable", 0).error().code, ErrorCode::kNotFound);
  EXPECT_EQ(symbols->CheckFunction("twice", 0).error().code, ErrorCode::kConflict);
  EXPECT_EQ(symbols->CheckFunction("", 0).error().code, ErrorCode::kNotFound);
}

TEST(KernelSymbols, CheckNamesOnlyWhereAddressesAreHidden) {
  const auto symbols = KernelSymbols::Parse("0000000000000000 T a\n0000000000000000 T b\n");
  EXPECT_TRUE(symbols->CheckFunction("a", 1000));
  EXPECT_FALSE(symbols->CheckFunction("c", 0));
}

TEST(KernelSymbols, NameTheMalformedLine) {
  EXPECT_EQ(KernelSymbols::Parse("ff T a\nxyz T b\n").error().message,
            "symbols of the kernel: line 2 is none");
  EXPECT_FALSE(KernelSymbols::Parse("ff T\n"));
  EXPECT_FALSE(KernelSymbols::Parse("ff TT a\n"));
  EXPECT_TRUE(KernelSymbols::Parse(""));
}

TEST(KernelSymbols, ReadTheRunningKernels) {
  const auto symbols = KernelSymbols::Load();
  ASSERT_TRUE(symbols) << symbols.error().message;
  EXPECT_TRUE(symbols->CheckFunction("vfs_read", 0));
  EXPECT_FALSE(symbols->CheckFunction("no_such_function", 0));
}

class ProbesTest : public ::testing::Test {
 protected:
  explicit ProbesTest(const char* word_name = "long unsigned int")
      : symbols_(KernelSymbols::Parse(kSymbols).value()) {
    testing::BtfBuilder b;
    const uint32_t s32 = b.Int("int", 4, 1);
    const uint32_t word = b.Int(word_name, 8);
    const uint32_t pair = b.Struct("pair", 16, {{"a", s32, 0}});
    const uint32_t size = b.Type(8, "size_t", word);
    const uint32_t pointer = b.Pointer(pair);
    const uint32_t call = b.Pairs(
        13, "", s32, {{"p", pointer, 0}, {"count", s32, 0}, {"where", word, 0}, {"size", size, 0}});
    b.Type(12, "first", call);
    b.Type(12, "last", b.Pairs(13, "", 0, {{"whole", pair, 0}}));
    btf_ = std::make_unique<Btf>(std::move(Btf::Parse(b.Bytes()).value()));
  }

  [[nodiscard]] std::string Fields(const Result<Resolved>& resolved) const {
    if (!resolved) return resolved.error().message;
    std::string names;
    const EventDescription event = EventDescription::Parse(resolved->description).value();
    for (const FieldDescription& field : event.fields)
      names += (names.empty() ? "" : " ") + field.name + (field.is_signed() ? "-" : "");
    return names;
  }
  [[nodiscard]] std::string Kprobe(const std::string& name, uint64_t offset, bool wide) const {
    return Fields(ResolveKprobe(*btf_, Catalogue::BuiltIn(), symbols_, {"event", name, offset},
                                {.cluster_wide = wide}));
  }
  [[nodiscard]] std::string Kretprobe(const std::string& name, uint64_t offset, bool wide) const {
    return Fields(ResolveKretprobe(*btf_, Catalogue::BuiltIn(), symbols_, {"event", name, offset},
                                   {.cluster_wide = wide}));
  }

  KernelSymbols symbols_;
  std::unique_ptr<Btf> btf_;
};

TEST_F(ProbesTest, RecordParametersAtTheStartAndRegistersBehindIt) {
  EXPECT_EQ(Kprobe("first", 0, true), "ip p count- where size");
  EXPECT_EQ(Kprobe("first", 4, true), "ip arg0 arg1 arg2 arg3 arg4 arg5");
  EXPECT_EQ(Kprobe("second", 0, true), "ip arg0 arg1 arg2 arg3 arg4 arg5") << "no prototype";
  EXPECT_EQ(Kprobe("last", 0, true), "ip arg0 arg1 arg2 arg3 arg4 arg5") << "by value";
}

TEST_F(ProbesTest, RecordWhatAFunctionReturnsAndHowLongItTook) {
  EXPECT_EQ(Kretprobe("first", 0, true), "ip ret- duration");
  EXPECT_EQ(Kretprobe("second", 0, true), "ip ret duration") << "no prototype";
  EXPECT_EQ(Kretprobe("first", 4, true), "a probe at a return has no offset");
}

TEST_F(ProbesTest, ShowATenantNoAddresses) {
  EXPECT_EQ(Kprobe("first", 0, false), "count- size") << "counts have types of their own";
  EXPECT_EQ(Kprobe("second", 0, false), "");
  EXPECT_EQ(Kretprobe("second", 0, false), "duration");
}

// A kernel whose compiler gives integer types other names.
class ProbesOfAClangKernelTest : public ProbesTest {
 protected:
  ProbesOfAClangKernelTest() : ProbesTest("unsigned long") {}
};

TEST_F(ProbesOfAClangKernelTest, ShowATenantNoAddressesEither) {
  EXPECT_EQ(Kprobe("first", 0, false), "count- size");
  EXPECT_EQ(Kretprobe("second", 0, false), "duration");
}

TEST_F(ProbesTest, ShowATenantAddressesOfItsOwnMemory) {
  testing::BtfBuilder b;
  const uint32_t text = b.Int("char", 1);
  const uint32_t pair = b.Struct("pair", 4, {{"a", text, 0}});
  const uint32_t tagged = b.Type(18, "user", pair);
  const uint32_t call = b.Pairs(13, "", 0,
                                {{"file", b.Pointer(pair), 0},
                                 {"buf", b.Pointer(text), 0},
                                 {"any", b.Pointer(0), 0},
                                 {"vec", b.Pointer(tagged), 0}});
  b.Type(12, "first", call);
  const Btf btf = Btf::Parse(b.Bytes()).value();
  const auto kprobe = [&](bool has_user_addresses) {
    return ResolveKprobe(btf, Catalogue::BuiltIn(), symbols_, {"event", "first", 0},
                         {.has_user_addresses = has_user_addresses});
  };
  EXPECT_EQ(Fields(kprobe(false)), "");
  const auto shown = kprobe(true);
  EXPECT_EQ(Fields(shown), "buf any vec");
  for (const FetchStep& op : shown->fetch) {
    if (op.code == FetchCode::kStore) {
      EXPECT_EQ(op.flags, kFetchUser) << "as far as their values are such";
    }
  }
  EXPECT_EQ(Fields(ResolveKprobe(btf, Catalogue::BuiltIn(), symbols_, {"event", "first", 0},
                                 {.addresses = true})),
            "ip file buf any vec");
}

TEST_F(ProbesTest, RefuseFunctionsThatAreNotThere) {
  EXPECT_EQ(Kprobe("nothing", 0, true), "this kernel has no function 'nothing'");
  EXPECT_EQ(Kretprobe("twice", 0, true), "this kernel has 2 functions of the name 'twice'");
}

}  // namespace
}  // namespace weft::kernel
