// SPDX-License-Identifier: Apache-2.0
#include "node-agent/hooks/functions.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <fstream>
#include <iterator>
#include <memory>

#include "lib/base/unique_fd.h"
#include "lib/event/description.h"
#include "lib/event/match.h"
#include "node-agent/hooks/cache_share.h"
#include "node-agent/hooks/cpp_names.h"
#include "node-agent/hooks/event_layout.h"
#include "node-agent/hooks/limits.h"
#include "node-agent/hooks/process_memory.h"

extern "C" __attribute__((noinline, used)) int hooks_test_c_function(int a) { return a + 1; }

// One function with three symbols. The third one has no size.
extern "C" __attribute__((noinline, used)) int hooks_test_aliased(int a) { return a + 4; }
asm(".globl hooks_test_alias, hooks_test_sizeless\n"
    ".set hooks_test_alias, hooks_test_aliased\n"
    ".type hooks_test_alias, @function\n"
    ".size hooks_test_alias, 4\n"
    ".set hooks_test_sizeless, hooks_test_aliased\n"
    ".type hooks_test_sizeless, @function\n"
    ".size hooks_test_sizeless, 0\n");

namespace hooks_test {
__attribute__((noinline, used)) int Overloaded(int a) { return a + 2; }
__attribute__((noinline, used)) int Overloaded(double a) { return static_cast<int>(a) + 3; }
}  // namespace hooks_test

namespace hooks_words {
struct Key {
  int number;
};
__attribute__((noinline, used)) bool operator==(Key a, Key b) { return a.number == b.number; }
template <typename T>
__attribute__((noinline, used)) T Id(T a) {
  return a;
}
template <typename T>
__attribute__((noinline, used)) void Tell(const T& /*of*/) {}
template unsigned long Id(unsigned long);
template void Tell(const std::allocator<char>&);
}  // namespace hooks_words

namespace weft::hooks {
namespace {

std::vector<Function> FunctionsOf(const std::string& pattern,
                                  const std::vector<std::string>& exclude = {}) {
  const UniqueFd self(open("/proc/self/exe", O_RDONLY | O_CLOEXEC));
  const std::vector<HookRule> rules{{"t", {.name = pattern, .exclude = exclude}}};
  const auto file = ReadFunctions(self.get(), rules, {0});
  EXPECT_TRUE(file) << file.error().message;
  return file ? file->functions : std::vector<Function>();
}

std::vector<std::string> NamesOf(const std::string& pattern,
                                 const std::vector<std::string>& exclude = {}) {
  std::vector<std::string> names;
  for (const Function& function : FunctionsOf(pattern, exclude)) names.push_back(function.name);
  std::ranges::sort(names);
  return names;
}

using Names = std::vector<std::string>;

TEST(Functions, AreFoundBySymbolAndByCppName) {
  EXPECT_EQ(NamesOf("hooks_test_c_function"), Names{"hooks_test_c_function"});
  EXPECT_EQ(NamesOf("hooks_test::Overloaded"),
            (Names{"hooks_test::Overloaded", "hooks_test::Overloaded"}));
  EXPECT_EQ(NamesOf("hooks_test::Overloaded(int)"), Names{"hooks_test::Overloaded(int)"});
  EXPECT_EQ(NamesOf("_ZN10hooks_test10OverloadedEd"), Names{"_ZN10hooks_test10OverloadedEd"});
  EXPECT_EQ(NamesOf("hooks_test::*", {"hooks_test::Overloaded(double)"}),
            Names{"hooks_test::Overloaded(int)"});
  EXPECT_EQ(NamesOf("no_such_function"), Names{});
}

TEST(Functions, AreFoundByWordsThatMangledNamesDoNotHave) {
  EXPECT_EQ(NamesOf("*::operator==(*::Key, *"),
            Names{"hooks_words::operator==(hooks_words::Key, hooks_words::Key)"});
  EXPECT_EQ(NamesOf("unsigned long *::Id<unsigned*"),
            Names{"unsigned long hooks_words::Id<unsigned long>(unsigned long)"});
  EXPECT_EQ(NamesOf("*::Tell<std::allocator<*"),
            Names{"hooks_words::Tell<std::allocator<char> >(std::allocator<char> const&)"});
}

// The symbol of a function that a template made has the return type before the name.
TEST(Functions, OfTemplatesAreFoundWithoutTheirReturnType) {
  EXPECT_EQ(NamesOf("hooks_words::Id<unsigned long>"), Names{"hooks_words::Id<unsigned long>"});
  EXPECT_EQ(NamesOf("hooks_words::I*"), Names{"hooks_words::Id<unsigned long>(unsigned long)"});
  EXPECT_EQ(NamesOf("hooks_words::*", {"hooks_words::Id*", "*==*"}),
            Names{"hooks_words::Tell<std::allocator<char> >(std::allocator<char> const&)"});
}

TEST(Functions, RuleCoversOneOfItsTraceThatAsksForNoMore) {
  using enum api::FunctionMoment;
  const HookRule both{"t", {.name = "f*"}}, entry{"t", {.name = "f", .record = {kEntry}}},
      call{"t", {.name = "f", .record = {kCall}}}, other{"u", {.name = "f", .record = {kEntry}}};
  EXPECT_TRUE(Covers(both, entry));
  EXPECT_FALSE(Covers(entry, both)) << "the exit is missing";
  EXPECT_FALSE(Covers(both, call));
  EXPECT_FALSE(Covers(both, other)) << "another Trace does not get its events";
}

TEST(Functions, AliasesAreOneFunction) {
  const UniqueFd self(open("/proc/self/exe", O_RDONLY | O_CLOEXEC));
  // The two last rules mean what others record: by another symbol, and by the same one.
  const std::vector<HookRule> rules{{"t", {.name = "hooks_test_sizeless"}},
                                    {"t", {.name = "hooks_test_alias"}},
                                    {"t", {.name = "hooks_test_size*"}}};
  const auto file = ReadFunctions(self.get(), rules, {0, 1, 2});
  ASSERT_TRUE(file) << file.error().message;
  ASSERT_EQ(file->functions.size(), 1u);
  EXPECT_EQ(file->functions[0].name, "hooks_test_sizeless");
  EXPECT_EQ(file->functions[0].why_not, "");
  EXPECT_EQ(file->recorded_as, (std::map<size_t, RecordedAs>{{1, {"hooks_test_sizeless", 0}},
                                                             {2, {"hooks_test_sizeless", 0}}}));
  EXPECT_TRUE(file->near.empty());
}

// The event's name is matched by the pattern as the agent spells it.
TEST(Functions, AreFoundInEachSpellingOfTheirTypes) {
  const std::string name = "hooks_words::Tell<std::allocator<char>>(std::allocator<char> const&)";
  for (const char* pattern :
       {"hooks_words::Tell<std::allocator<char>>(const std::allocator<char>&)",
        "hooks_words::Tell<std::allocator<char>>( std::allocator<char>const & )",
        "hooks_words::Tell< std::allocator<char> > (const std::allocator<char>*"}) {
    EXPECT_EQ(NamesOf(pattern), Names{name}) << pattern;
    EXPECT_TRUE(weft_glob_match_str(SpellPattern(pattern).c_str(), name.c_str())) << pattern;
  }
  EXPECT_EQ(SpellPattern("f(const  char *const*,const a::B<const int> &)"),
            "f(char const*const*, a::B<int const> const&)");
  EXPECT_EQ(SpellPattern("f(const*, int)"), "f(const*, int)");
  EXPECT_EQ(SpellPattern("f(const a::*, const B<*"), "f(const a::*, const B<*");
  EXPECT_EQ(SpellPattern("main.(*T).f"), "main.(*T).f");
}

TEST(CppNames, OfASymbolThatCouldBecomeHugeAreNone) {
  // f(p<int, int>, p<p<int, int>, p<int, int>>, ...): each argument doubles the last one.
  std::string symbol = "_Z1f1pIiiE";
  for (const char part : std::string("0123456789ABCDEF"))
    symbol.append("S_IS").append(1, part).append("_S").append(1, part).append("_E");
  EXPECT_TRUE(CppNames(symbol).empty());
  EXPECT_FALSE(CppNames(symbol.substr(0, symbol.find("S_IS4"))).empty());
}

TEST(Functions, NamesNearestToOneThatIsNotThereAreFound) {
  const UniqueFd self(open("/proc/self/exe", O_RDONLY | O_CLOEXEC));
  const std::vector<HookRule> rules{{"t", {.name = "hooks_test_c_functoin"}},
                                    {"t", {.name = "hooks_test::Overlaoded"}},
                                    {"t", {.name = "hooks_test_c_function"}},
                                    {"t", {.name = "hooks_test_c_functoin*"}},
                                    {"t", {.name = "of_nothing_that_is_there_at_all"}}};
  const auto file = ReadFunctions(self.get(), rules, {0, 1, 2, 3, 4});
  ASSERT_TRUE(file) << file.error().message;
  ASSERT_EQ(file->near.size(), 2u);
  EXPECT_EQ(file->near.at(0).front().name, "hooks_test_c_function");
  EXPECT_EQ(file->near.at(0).front().distance, 1u);
  EXPECT_EQ(file->near.at(1).front().name, "hooks_test::Overloaded");
}

// A program of Go without symbols: main.(*service).handle, main.F[...] and runtime.text.
TEST(Functions, OfGoAreThoseOfItsTable) {
  const UniqueFd program(open(WEFT_GO_PROGRAM, O_RDONLY | O_CLOEXEC));
  const std::vector<HookRule> rules{{"t", {.name = "main.(*service).handel"}},
                                    {"t", {.name = "main.(*service).handle"}},
                                    {"t", {.name = "*.(*servce).handle"}},
                                    {"t", {.name = "*"}}};
  const auto file = ReadFunctions(program.get(), rules, {0, 1, 2, 3});
  ASSERT_TRUE(file) << file.error().message;
  EXPECT_TRUE(file->is_go);
  EXPECT_EQ(file->why_no_symbols, "");
  ASSERT_EQ(file->functions.size(), 3u);
  EXPECT_EQ(file->functions[0].name, "runtime.text");
  EXPECT_NE(file->functions[0].why_not, "");
  EXPECT_EQ(file->functions[1].name, "main.(*service).handle");
  EXPECT_EQ(file->functions[1].rule, 1u);
  EXPECT_EQ(file->functions[1].size, 64u);
  EXPECT_EQ(file->functions[1].why_not, "");
  ASSERT_EQ(file->near.size(), 1u);
  EXPECT_EQ(file->near.at(0).front().name, "main.(*service).handle");
}

TEST(NearNames, AreFewAndTheNearest) {
  NearNames near("libmylb.so*");
  for (const char* name : {"libother.so", "libmylib.so", "libmylab.so", "libmy.so", "libmylbx.so"})
    near.Offer(name, "");
  near.Offer("libmylib.so", "");
  ASSERT_EQ(near.best().size(), kNearNames);
  EXPECT_EQ(near.best()[0].name, "libmylab.so");
  EXPECT_EQ(DidYouMean({near.best()[1], {1, "f", "libx.so"}}),
            ", did you mean \"libmylbx.so\" or \"f\" (libx.so)?");
  EXPECT_EQ(DidYouMean({}), "");
  NearNames none("*");
  none.Offer("a", "");
  EXPECT_TRUE(none.best().empty());
}

TEST(CacheShare, ACacheLeavesAsMuchAsItHas) {
  constexpr size_t kHalf = kMaxAllCachedBytes / 2;
  CacheShare one;
  EXPECT_TRUE(one.Resize(kHalf));
  EXPECT_FALSE(one.Resize(kHalf + 1));
  {
    CacheShare two;
    EXPECT_TRUE(two.Resize(kHalf / 2));
    EXPECT_FALSE(two.Resize(kHalf / 2 + 1));
    EXPECT_TRUE(one.Resize(kHalf - 1)) << "a cache may always shrink";
    EXPECT_FALSE(one.Resize(kHalf));
    EXPECT_TRUE(CacheShare().Resize(kHalf / 4));
  }
  EXPECT_TRUE(one.Resize(kHalf));
}

TEST(Functions, StartIsRefused) {
  const auto found = FunctionsOf("_start");
  ASSERT_EQ(found.size(), 1u);
  EXPECT_NE(found[0].why_not, "");
}

// Returns the bytes of this program with one name in place of another one of equal length.
UniqueFd SelfWith(const std::string& name, const std::string& other) {
  std::ifstream self("/proc/self/exe", std::ios::binary);
  std::string bytes((std::istreambuf_iterator<char>(self)), {});
  for (size_t at = 0; (at = bytes.find(name, at)) != std::string::npos; at += other.size())
    bytes.replace(at, name.size(), other);
  UniqueFd file(memfd_create("self", MFD_CLOEXEC));
  EXPECT_EQ(write(file.get(), bytes.data(), bytes.size()), static_cast<ssize_t>(bytes.size()));
  return file;
}

TEST(Functions, WithNamesThatCannotBePrintedAreNotFound) {
  const UniqueFd file = SelfWith("hooks_test_alias", "hooks_test_\x1b[31m");
  const auto found = ReadFunctions(file.get(), {{"t", {.name = "hooks_test_*"}}}, {0});
  ASSERT_TRUE(found) << found.error().message;
  EXPECT_FALSE(found->functions.empty());
  for (const Function& function : found->functions)
    EXPECT_EQ(function.name.find('\x1b'), std::string::npos);
}

TEST(Objects, MayBeNamedWithoutTheirLastVersions) {
  EXPECT_TRUE(MeansObject("", "any"));
  for (const char* pattern : {"libx.so.1.2", "libx.so.1", "libx.so", "lib*.so", "libx.so*"})
    EXPECT_TRUE(MeansObject(pattern, "libx.so.1.2")) << pattern;
  for (const char* pattern : {"libx", "libx.so.1.2.3", "libx.so.2", "liby.so", "x.so"})
    EXPECT_FALSE(MeansObject(pattern, "libx.so.1.2")) << pattern;
  EXPECT_FALSE(MeansObject("libx.so.1", "libx.so.12"));
  EXPECT_FALSE(MeansObject("python3", "python3.11"));
}

TEST(Objects, OfTheRuntimeAreRefused) {
  for (const char* name : {"libweft.so", "memfd:libweft.so", "ld-linux-x86-64.so.2", "libc.so.6",
                           "libc-2.31.so", "libpthread-2.31.so", "ld-musl-x86_64.so.1",
                           "libgcc_s.so.1", "libasan.so.8", "libclang_rt.asan-x86_64.so"})
    EXPECT_NE(WhyNotObject(name), "") << name;
  for (const char* name : {"libmylib.so", "libcrypto.so.3", "redis-server"})
    EXPECT_EQ(WhyNotObject(name), "") << name;
}

TEST(Layout, ArgumentsAreWhereTheAbiPutsThem) {
  using api::ValueType;
  api::FunctionRule rule;
  for (int i = 0; i < 7; ++i) rule.args.push_back({"i" + std::to_string(i), ValueType::kInt32});
  rule.args.push_back({"d", ValueType::kDouble});
  rule.args.push_back({"last", ValueType::kPointer});
  rule.returns = ValueType::kFloat;
  const auto layout = LayOut(rule);
  ASSERT_TRUE(layout);
  EXPECT_EQ(layout->values[5].source, WEFT_HOOK_GENERAL);
  EXPECT_EQ(layout->values[5].index, 5);
  EXPECT_EQ(layout->values[6].source, WEFT_HOOK_STACK);
  EXPECT_EQ(layout->values[6].index, 0);
  EXPECT_EQ(layout->values[7].source, WEFT_HOOK_FLOATING);
  EXPECT_EQ(layout->values[7].index, 0);
  EXPECT_EQ(layout->values[8].source, WEFT_HOOK_STACK);
  EXPECT_EQ(layout->values[8].index, 1);
  EXPECT_EQ(layout->result.source, WEFT_HOOK_FLOATING);
  EXPECT_EQ(layout->result.size, 4);
  weft_event event{};
  const auto described = Describe(rule, "f", Moment::kEntry, event);
  ASSERT_TRUE(described);
  EXPECT_EQ(event.fixed_size, 7u * 4 + 8 + 8 + 2);
  EXPECT_EQ(EventName("f", Moment::kExit), "function:f_exit");
}

std::vector<std::string> FieldNames(const api::FunctionRule& rule, Moment moment) {
  std::vector<std::string> names;
  for (const api::FunctionField& field : FieldsOf(rule, moment)) names.push_back(field.name);
  return names;
}

TEST(Layout, EventsHaveTheFieldsOfTheirMoment) {
  using api::ValueType;
  api::FunctionRule rule;
  rule.args = {{"id", ValueType::kInt32}, {"depth", ValueType::kUint64}};
  rule.returns = ValueType::kInt64;
  using Names = std::vector<std::string>;
  EXPECT_EQ(FieldNames(rule, Moment::kEntry), (Names{"id", "depth_", "depth"}));
  EXPECT_EQ(FieldNames(rule, Moment::kExit), (Names{"ret", "depth", "unwound"}));
  EXPECT_EQ(FieldNames(rule, Moment::kCall),
            (Names{"id", "depth_", "ret", "duration", "depth", "unwound"}));
  weft_event event{};
  ASSERT_TRUE(Describe(rule, "f", Moment::kCall, event));
  EXPECT_EQ(event.fixed_size, 4u + 8 + 8 + 8 + 3);
  EXPECT_EQ(event.nowrite_size, 0u);
  // A filter reads the arguments at the exit, too, where they are not recorded.
  rule.filter = "id != 3";
  EXPECT_EQ(FieldNames(rule, Moment::kExit), (Names{"ret", "depth", "unwound", "id", "depth_"}));
  ASSERT_TRUE(Describe(rule, "f", Moment::kExit, event));
  EXPECT_EQ(event.fixed_size, 8u + 3);
  EXPECT_EQ(event.nowrite_size, 4u + 8);
}

TEST(Layout, TextsAreReadOfArgumentsAndResults) {
  const api::FunctionRule rule{.args = {{"a", api::ValueType::kString}}};
  const auto layout = LayOut(rule);
  ASSERT_TRUE(layout);
  EXPECT_EQ(layout->values[0].kind, WEFT_HOOK_TEXT);
  weft_event event{};
  ASSERT_TRUE(Describe(rule, "f", Moment::kCall, event));
  EXPECT_EQ(event.fixed_size, 4u + 8 + 3);
  EXPECT_EQ(event.segment_count, 1u);
  EXPECT_EQ(layout->flags, WEFT_HOOK_READS_MEMORY);
  EXPECT_TRUE(layout->details.empty());
  const auto result = LayOut({.returns = api::ValueType::kString});
  ASSERT_TRUE(result);
  EXPECT_EQ(result->result.kind, WEFT_HOOK_TEXT);
  EXPECT_EQ(result->result.size, 4u);
  EXPECT_EQ(result->flags, WEFT_HOOK_READS_MEMORY);
}

TEST(Layout, BytesHaveTheirLengthFromAnArgument) {
  const api::FunctionRule rule{
      .args = {{.name = "x", .type = api::ValueType::kDouble},
               {.name = "data", .type = api::ValueType::kBytes, .length = "size"},
               {.name = "size", .type = api::ValueType::kInt32}}};
  const auto layout = LayOut(rule);
  ASSERT_TRUE(layout) << layout.error().message;
  ASSERT_EQ(layout->details.size(), 3u);
  EXPECT_EQ(layout->values[1].kind, WEFT_HOOK_BYTES);
  const weft_hook_value of = layout->details[1].length_of;
  EXPECT_EQ(of.source, WEFT_HOOK_GENERAL);
  EXPECT_EQ(of.index, 1);
  EXPECT_EQ(of.size, 4);
  EXPECT_EQ(of.kind, WEFT_HOOK_SIGNED);
  EXPECT_EQ(layout->flags, WEFT_HOOK_READS_MEMORY | WEFT_HOOK_HAS_FAULTS);
  EXPECT_EQ(FieldNames(rule, Moment::kEntry),
            (std::vector<std::string>{"x", "data", "size", "faults", "depth"}));
}

TEST(Layout, BytesOfTheEndAreNoFieldsOfTheEntry) {
  const api::FunctionRule rule{
      .args = {{.name = "data", .type = api::ValueType::kBytes, .length = "return"},
               {.name = "size", .type = api::ValueType::kUint64}},
      .returns = api::ValueType::kInt64};
  const auto layout = LayOut(rule);
  ASSERT_TRUE(layout) << layout.error().message;
  EXPECT_EQ(layout->details[0].at_exit, 1);
  EXPECT_EQ(layout->details[0].length_of.source, WEFT_HOOK_RESULT);
  EXPECT_EQ(FieldNames(rule, Moment::kEntry),
            (std::vector<std::string>{"size", "faults", "depth"}));
  EXPECT_EQ(FieldNames(rule, Moment::kExit),
            (std::vector<std::string>{"ret", "data", "faults", "depth", "unwound"}));
  EXPECT_EQ(
      FieldNames(rule, Moment::kCall),
      (std::vector<std::string>{"size", "ret", "data", "faults", "duration", "depth", "unwound"}));
}

TEST(Layout, PathsTakeNoRegister) {
  const api::FunctionRule rule{
      .args = {{.name = "m", .type = api::ValueType::kInt16, .path = "p->8.4->0x10"},
               {.name = "p", .type = api::ValueType::kPointer},
               {.name = "t", .type = api::ValueType::kString, .path = "&q->3"},
               {.name = "q", .type = api::ValueType::kPointer}}};
  const auto layout = LayOut(rule);
  ASSERT_TRUE(layout) << layout.error().message;
  EXPECT_EQ(layout->values[0].index, 0);
  EXPECT_EQ(layout->values[0].size, 2);
  EXPECT_EQ(layout->details[0].steps, 2);
  EXPECT_EQ(layout->details[0].offsets[0], 12);
  EXPECT_EQ(layout->details[0].offsets[1], 16);
  EXPECT_EQ(layout->values[2].index, 1);
  EXPECT_EQ(layout->details[2].steps, 0);
  EXPECT_EQ(layout->details[2].tail, 3);
  EXPECT_FALSE(LayOut({.args = {{.name = "m", .type = api::ValueType::kInt8, .path = "p->0"}}}));
  EXPECT_FALSE(LayOut({.args = {{.name = "m", .type = api::ValueType::kInt8, .path = "p->name"},
                                {.name = "p", .type = api::ValueType::kPointer}}}));
}

TEST(Ranges, LinesOfMapsAreParsed) {
  const auto range = ParseRange(
      "7f0000001000-7f0000003000 r-xp 00002000 fe:01 1234                       /lib/a b.so "
      "(deleted)");
  ASSERT_TRUE(range);
  EXPECT_EQ(range->begin, 0x7f0000001000u);
  EXPECT_EQ(range->end, 0x7f0000003000u);
  EXPECT_EQ(range->offset, 0x2000u);
  EXPECT_TRUE(range->executable);
  EXPECT_EQ(range->inode, 1234u);
  EXPECT_EQ(range->path, "/lib/a b.so (deleted)");
  EXPECT_TRUE(ParseRange("1000-2000 rw-p 00000000 00:00 0"));
  for (const char* line :
       {"", "1000", "2000-1000 rw-p 0 00:00 0", "1000-2000 rw 0 00:00 0", "x-y z"})
    EXPECT_FALSE(ParseRange(line)) << line;
}

TEST(Objects, ArePutTogetherFromTheirMappings) {
  std::vector<MappedRange> ranges;
  for (const char* line :
       {"1000-2000 r--p 00000000 fe:01 5 /lib/a.so", "2000-3000 r-xp 00000000 fe:01 5 /lib/a.so",
        "3000-4000 rw-p 00001000 fe:01 5 /lib/a.so", "9000-a000 r--p 00000000 fe:01 6 /lib/data"})
    ranges.push_back(*ParseRange(line));
  const auto objects = ObjectsOf(ranges);
  ASSERT_EQ(objects.size(), 1u);
  EXPECT_EQ(objects[0].name, "a.so");
  EXPECT_EQ(objects[0].begin, 0x1000u);
  EXPECT_EQ(objects[0].code.size(), 1u);
}

}  // namespace
}  // namespace weft::hooks
