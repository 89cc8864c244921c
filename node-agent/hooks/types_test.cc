// SPDX-License-Identifier: Apache-2.0
// Types of functions: from debug information to a rule. testing/typed.c and typed_cpp.cc are a
// library with debug information, typed_bare the same without.
#include <elf.h>
#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cstring>
#include <map>
#include <set>

#include "lib/base/unique_fd.h"
#include "node-agent/hooks/cache_share.h"
#include "node-agent/hooks/function_types.h"
#include "node-agent/hooks/functions.h"
#include "node-agent/hooks/limits.h"
#include "node-agent/hooks/type_cache.h"

namespace weft::hooks {
namespace {

using api::FunctionArg;
using api::ValueType;

// What weft-types, the program, reports, by name of the function.
std::map<std::string, FunctionTypes> TypesIn(const char* path,
                                             const std::set<std::string>& paths = {},
                                             const char* pattern = "typed*") {
  const UniqueFd file(open(path, O_RDONLY | O_CLOEXEC));
  const auto functions = ReadFunctions(file.get(), {{"t", {.name = pattern}}}, {0});
  EXPECT_TRUE(functions) << functions.error().message;
  const auto types = RunTypes(WEFT_TYPES_PROGRAM, file.get(), AddressesToType(*functions), paths);
  EXPECT_TRUE(types) << types.error().message;
  std::map<std::string, FunctionTypes> named;
  for (const Function& function : functions->functions)
    if (const auto at = types->find(function.value); at != types->end())
      named[function.name] = at->second;
  return named;
}

// Returns the names of the functions of a file, also of those in files with further symbols, and
// the number of such files.
std::pair<std::set<std::string>, size_t> NamesIn(const std::string& path) {
  const UniqueFd file(open(path.c_str(), O_RDONLY | O_CLOEXEC));
  const auto more = OpenMoreSymbols(WEFT_TYPES_PROGRAM, file.get(), "/", path);
  const auto functions = ReadFunctions(file.get(), {{"t", {.name = "typed*"}}}, {0}, more);
  EXPECT_TRUE(functions) << functions.error().message;
  std::set<std::string> names;
  for (const Function& function : functions->functions) names.insert(function.name);
  return {names, more.size()};
}

TEST(TypeCache, CountsAFileThatCannotBeRead) {
  constexpr size_t kHalf = kMaxAllCachedBytes / 2;
  const DebugFile debug{
      .file = UniqueFd(memfd_create("garbage", MFD_CLOEXEC)), .shared = {}, .shared_status = {}};
  ASSERT_EQ(write(debug.file.get(), "hello", 5), 5);
  TypeCache cache;
  EXPECT_TRUE(CacheShare().Resize(kHalf));
  EXPECT_FALSE(cache.Find(debug, {1}, {}));
  EXPECT_FALSE(CacheShare().Resize(kHalf));
}

TEST(Types, AreThoseOfTheSource) {
  const auto types = TypesIn(WEFT_TYPED_LIBRARY);
  EXPECT_EQ(types.at("typed_scalars"), (FunctionTypes{.args = {{"a", ValueType::kInt8},
                                                               {"b", ValueType::kUint16},
                                                               {"c", ValueType::kInt32},
                                                               {"d", ValueType::kDouble},
                                                               {"e", ValueType::kFloat},
                                                               {"f", ValueType::kPointer},
                                                               {"g", ValueType::kPointer},
                                                               {"h", ValueType::kUint8},
                                                               {"i", ValueType::kUint32}},
                                                      .returns = ValueType::kInt64}));
  EXPECT_EQ(types.at("typed_nothing"), FunctionTypes{});
  EXPECT_EQ(types.at("typed_variable"), (FunctionTypes{.args = {{"format", ValueType::kPointer}},
                                                       .returns = ValueType::kInt32,
                                                       .is_variable = true}));
}

// gcc gives such a function two ranges of addresses, and no single one.
TEST(Types, OfFunctionsThatAreSplitAreKnown) {
#if !defined(__clang__)
  EXPECT_TRUE(NamesIn(WEFT_TYPED_LIBRARY).first.contains("typed_split.cold"));
#endif
  const auto types = TypesIn(WEFT_TYPED_LIBRARY);
  ASSERT_TRUE(types.contains("typed_split"));
  EXPECT_EQ(types.at("typed_split"),
            (FunctionTypes{.args = {{"a", ValueType::kInt32}, {"b", ValueType::kInt64}},
                           .returns = ValueType::kInt32}));
}

// gcc names __in_chrg and __vtt_parm in what all versions share. C1 and D1 are for whole objects;
// C2 and D2 are for a part of one, and their second argument is a table of its virtual bases.
TEST(Types, OfConstructorsAreThoseOfTheirVersion) {
  const auto types = TypesIn(WEFT_TYPED_LIBRARY, {}, "_ZN5typed*");
  const FunctionArg self{"this", ValueType::kPointer};
  const FunctionArg a{"a", ValueType::kInt32}, b{"b", ValueType::kInt64};
  EXPECT_EQ(types.at("_ZN5typed7DerivedC1Eil"), (FunctionTypes{.args = {self, a, b}}));
  EXPECT_EQ(types.at("_ZN5typed7DerivedD1Ev"), (FunctionTypes{.args = {self}}));
  EXPECT_EQ(TypesIn(WEFT_TYPED_LIBRARY).at("typed::Base::~Base()"),
            (FunctionTypes{.args = {self}}));
  // Compilers give the table different names.
  FunctionTypes part = types.at("_ZN5typed7DerivedC2Eil");
  ASSERT_EQ(part.args.size(), 4u);
  part.args[1].name.clear();
  const FunctionArg table{"", ValueType::kPointer};
  EXPECT_EQ(part, (FunctionTypes{.args = {self, table, a, b}}));
  part = types.at("_ZN5typed7DerivedD2Ev");
  ASSERT_EQ(part.args.size(), 2u);
  EXPECT_EQ(part.args[1].type, ValueType::kPointer);
}

// Programs of Go before 1.24 have no build-id of GNU's, and many have no symbols.
TEST(DebugFiles, OfAFileWithoutABuildIdAreNone) {
  const UniqueFd file(memfd_create("bare", MFD_CLOEXEC));
  Elf64_Ehdr header{};
  std::memcpy(header.e_ident, ELFMAG, SELFMAG);
  header.e_ident[EI_CLASS] = ELFCLASS64;
  header.e_ident[EI_DATA] = ELFDATA2LSB;
  header.e_ident[EI_VERSION] = EV_CURRENT;
  header.e_ehsize = sizeof(header);
  ASSERT_EQ(write(file.get(), &header, sizeof(header)), ssize_t{sizeof(header)});
  EXPECT_TRUE(OpenMoreSymbols(WEFT_TYPES_PROGRAM, file.get(), "/", "/bare").empty());
  EXPECT_EQ(OpenDebugFile(file.get(), "/", "/bare").error().code, ErrorCode::kNotFound);
}

TEST(Types, EndBeforeTheFirstThatIsNotInOneRegister) {
  const auto types = TypesIn(WEFT_TYPED_LIBRARY);
  const FunctionTypes before_b{.args = {{"a", ValueType::kInt32}}, .not_recorded = "b"};
  EXPECT_EQ(types.at("typed_pair"), before_b);
  EXPECT_EQ(types.at("typed_long_double"), before_b);
  EXPECT_EQ(types.at("typed_complex"), (FunctionTypes{.args = {{"a", ValueType::kDouble}}}));
}

TEST(Types, ResultInMemoryIsTheFirstArgument) {
  const auto types = TypesIn(WEFT_TYPED_LIBRARY);
  EXPECT_EQ(
      types.at("typed_large"),
      (FunctionTypes{.args = {{kResultAddress, ValueType::kPointer}, {"a", ValueType::kInt32}}}));
}

TEST(Types, OfCppKnowObjectsAndHowClassesAreReturned) {
  const auto types = TypesIn(WEFT_TYPED_LIBRARY);
  EXPECT_EQ(types.at("typed::Kept::Number(int const&) const"),
            (FunctionTypes{.args = {{"this", ValueType::kPointer}, {"more", ValueType::kPointer}},
                           .returns = ValueType::kInt32}));
  EXPECT_EQ(types.at("typed::MakeLong(long)"),
            (FunctionTypes{
                .args = {{kResultAddress, ValueType::kPointer}, {"number", ValueType::kInt64}}}));
  // gcc does not say how this class is returned, so nothing is known; clang does.
  if (const auto kept = types.find("typed::Make(long)"); kept != types.end()) {
    EXPECT_EQ(kept->second, types.at("typed::MakeLong(long)"));
  }
  EXPECT_EQ(types.at("typed::MakePlain(long)"),
            (FunctionTypes{.args = {{"number", ValueType::kInt64}}}));
}

// Both are made from the library by objcopy (CMakeLists.txt).
TEST(MoreSymbols, AreThoseOfTheDebugFileAndThosePacked) {
  const auto [names, none] = NamesIn(WEFT_TYPED_LIBRARY);
  EXPECT_EQ(none, 0u);
  EXPECT_TRUE(names.contains("typed_hidden"));
  for (const char* library : {"packed.so", "stripped.so"})
    EXPECT_EQ(NamesIn(std::string(WEFT_LIBRARIES) + "/" + library), std::pair(names, size_t{1}))
        << library;
}

TEST(Types, TellWherePathsToMembersLead) {
  const FunctionTypes types =
      TypesIn(WEFT_TYPED_LIBRARY,
              {"1->header.size", "request->next->label", "request->ratio", "request->8.kind",
               "request->next->next->id", "request->header.sise", "more->x", "other->id",
               "request->next.id", "request->header->size"})
          .at("typed_member");
  const std::map<std::string, MemberPlace> expected{
      {"1->header.size", {.steps = "12", .type = ValueType::kInt32}},
      {"request->next->label", {.steps = "32->16", .is_array = true}},
      {"request->ratio", {.steps = "24", .type = ValueType::kDouble}},
      {"request->8.kind", {.unknown = "kind"}},
      {"request->next->next->id", {.steps = "32->32->0", .type = ValueType::kUint64}},
      {"request->header.sise", {.steps = "", .unknown = "sise"}},
      {"more->x", {.unknown = "x"}},
      {"request->next.id", {.unknown = "id", .instead = "next->id"}},
      {"request->header->size", {.unknown = "size", .instead = "header.size"}}};
  EXPECT_EQ(types.members, expected);
}

TEST(Paths, AreResolvedToNumbers) {
  const FunctionTypes types{
      .members = {{"0->header.size", {.steps = "12", .type = ValueType::kInt32}},
                  {"q->label", {.steps = "16", .is_array = true}},
                  {"q->bad", {.unknown = "bad"}},
                  {"q->a.b", {.unknown = "b", .instead = "a->b"}},
                  {"q->a->b", {.unknown = "b", .instead = "a.b"}}}};
  const auto resolve = [&](api::FunctionRule rule) {
    std::string why = ResolvePaths(types, rule);
    return why.empty() ? rule.args.back().path : why;
  };
  const FunctionArg p{.name = "p", .type = ValueType::kPointer};
  EXPECT_EQ(
      resolve({.args = {p, {.name = "s", .type = ValueType::kUint32, .path = "p->header.size"}}}),
      "p->12");
  EXPECT_EQ(resolve({.args = {{.name = "s", .type = ValueType::kString, .path = "q->label"}}}),
            "&q->16");
  EXPECT_EQ(resolve({.args = {p, {.name = "s", .type = ValueType::kInt8, .path = "p->4"}}}),
            "p->4");
  EXPECT_EQ(
      resolve({.args = {p, {.name = "s", .type = ValueType::kInt64, .path = "p->header.size"}}}),
      "argument \"s\" (\"p->header.size\") is int64 in the Trace, and int32 in the debug "
      "information: give that type");
  EXPECT_EQ(
      resolve({.args = {{.name = "s", .type = ValueType::kInt8, .path = "q->bad"}}}),
      "argument \"s\" has the path \"q->bad\", and its debug information has no member \"bad\" "
      "there");
  EXPECT_EQ(resolve({.args = {{.name = "s", .type = ValueType::kInt8, .path = "q->a.b"}}}),
            "argument \"s\" has the path \"q->a.b\": write a->b, since \"a\" is a pointer in "
            "its debug information");
  EXPECT_EQ(resolve({.args = {{.name = "s", .type = ValueType::kInt8, .path = "q->a->b"}}}),
            "argument \"s\" has the path \"q->a->b\": write a.b, since \"a\" is no pointer in "
            "its debug information");
  EXPECT_NE(
      resolve({.args = {{.name = "s", .type = ValueType::kInt8, .path = "r->a"}}}).find("begins"),
      std::string::npos);
}

// With -g1 there are functions, but without parameters.
TEST(Types, AreNotInventedWhereThereAreNone) { EXPECT_TRUE(TypesIn(WEFT_BARE_LIBRARY).empty()); }

TEST(Types, InSplitDwarfAreAnErrorWithItsReason) {
  const UniqueFd file(open(WEFT_SPLIT_LIBRARY, O_RDONLY | O_CLOEXEC));
  const auto functions = ReadFunctions(file.get(), {{"t", {.name = "typed*"}}}, {0});
  ASSERT_TRUE(functions);
  const auto types = RunTypes(WEFT_TYPES_PROGRAM, file.get(), AddressesToType(*functions));
  ASSERT_FALSE(types);
  EXPECT_NE(types.error().message.find("split DWARF (.dwo, .dwp)"), std::string::npos)
      << types.error().message;
}

TEST(Types, OfAFileThatIsNoneAreAnErrorWithItsReason) {
  const UniqueFd file(memfd_create("none", MFD_CLOEXEC));
  ASSERT_EQ(write(file.get(), "hello", 5), 5);
  const auto types = RunTypes(WEFT_TYPES_PROGRAM, file.get(), {1});
  ASSERT_FALSE(types);
  EXPECT_EQ(types.error().code, ErrorCode::kInvalid);
  EXPECT_TRUE(types.error().message.starts_with("its debug information cannot be read: "))
      << types.error().message;
  EXPECT_FALSE(RunTypes("/no/such/program", file.get(), {1}));
}

TEST(TypesText, IsReadAsItWasWritten) {
  const TypesByAddress types{
      {0x10, {.args = {{"a", ValueType::kInt8}}, .returns = ValueType::kDouble}},
      {0x20,
       {.is_variable = true,
        .not_recorded = "p",
        .members = {{"0->a", {.steps = "8.4->0", .type = ValueType::kInt8}},
                    {"q->b", {.steps = "1", .is_array = true}},
                    {"r->c", {.unknown = "c"}},
                    {"s->d->e", {.unknown = "e", .instead = "d.e"}}}}}};
  const std::string text = ToText(types);
  EXPECT_EQ(text,
            "10 double a:int8\n20 - ... !p @0->a=8.4->0:int8 @q->b=1:array @r->c?c "
            "@s->d->e?e:d.e\ndone\n");
  const auto again = ParseTypes(text);
  ASSERT_TRUE(again);
  EXPECT_EQ(*again, types);
}

TEST(TypesText, ThatIsDamagedIsRefused) {
  for (const char* text : {"",
                           "10 double",
                           "done",
                           "x int8\ndone\n",
                           "10 none\ndone\n",
                           "10\ndone\n",
                           "10 int8 a\ndone\n",
                           "10 int8 a:string\ndone\n",
                           "10 int8 a b:int8\ndone\n",
                           "10 int8 a:int8 a:int8\ndone\n",
                           "10 int8 1a:int8\ndone\n",
                           "10 - @a\ndone\n",
                           "10 - @a=b:int8\ndone\n",
                           "10 - @a=1:none\ndone\n",
                           "10 - @a?\ndone\n",
                           "10 - @a?b:c\ndone\n",
                           "10 - @a?b:c->d.e\ndone\n",
                           "10 - @a?b:c->1 \ndone\n",
                           "10 - @a=1:- @a=1:-\ndone\n",
                           "10 -\n10 -\ndone\n",
                           "10 int8 !\ndone\n"})
    EXPECT_FALSE(ParseTypes(text)) << text;
  const auto error = ParseTypes("error: no \x1b[0m such\n");
  ASSERT_FALSE(error);
  EXPECT_EQ(error.error().message, "its debug information cannot be read: no ?[0m such?");
}

TEST(FieldName, IsOneWhateverTheSourceHas) {
  const std::vector<FunctionArg> before{{"a", ValueType::kInt8}, {"a2", ValueType::kInt8}};
  EXPECT_EQ(FieldNameLike("b", before), "b");
  EXPECT_EQ(FieldNameLike("a", before), "a3");
  EXPECT_EQ(FieldNameLike("", before), "arg2");
  EXPECT_EQ(FieldNameLike("1 \xff", before), "_1__");
  EXPECT_LE(FieldNameLike(std::string(5000, 'x'), before).size(), kMaxFieldNameBytes);
}

TEST(Fitting, AllowsOtherNamesAndSigns) {
  const FunctionTypes types{.args = {{"a", ValueType::kInt32}, {"p", ValueType::kPointer}},
                            .returns = ValueType::kInt64};
  EXPECT_EQ(WhyNotFitting({.args = {{"x", ValueType::kUint32}, {"y", ValueType::kUint64}}}, types),
            "");
  EXPECT_EQ(WhyNotFitting({.args = {{"x", ValueType::kInt32}}}, types), "");
  EXPECT_EQ(WhyNotFitting({.returns = ValueType::kPointer}, types), "");
}

TEST(Fitting, NamesBothTypes) {
  const FunctionTypes types{.args = {{"a", ValueType::kInt32}}, .returns = ValueType::kFloat};
  EXPECT_EQ(WhyNotFitting({.args = {{"x", ValueType::kInt64}}}, types),
            "argument 1 \"x\" (\"a\") is int64 in the Trace, and int32 in the debug information: "
            "give that type");
  EXPECT_EQ(WhyNotFitting({.returns = ValueType::kInt32}, types),
            "returns is int32 in the Trace, and float in the debug information: give that type");
  EXPECT_NE(WhyNotFitting({.returns = ValueType::kInt32}, {}), "");
  EXPECT_EQ(WhyNotFitting({.args = {{"x", ValueType::kInt32}, {"y", ValueType::kInt32}}}, types),
            "the Trace has 2 arguments, and the debug information 1: give no more");
  FunctionTypes partly = types;
  partly.not_recorded = "s";
  EXPECT_NE(WhyNotFitting({.args = {{"x", ValueType::kInt32}, {"y", ValueType::kInt32}}}, partly)
                .find("\"s\" has a type that is not recorded"),
            std::string::npos);
}

}  // namespace
}  // namespace weft::hooks
