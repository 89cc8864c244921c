// SPDX-License-Identifier: Apache-2.0
// Flags of a command line become a Trace, or messages that name the flag.
#include "lib/api/builder.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "lib/api/write.h"

namespace weft::api {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

std::vector<std::string> Errors(const ShortForm& form) {
  const auto trace = BuildTrace(form);
  std::vector<std::string> out;
  if (!trace) {
    for (const Diagnostic& diagnostic : trace.error()) out.push_back(diagnostic.ToString());
  }
  return out;
}

TEST(Builder, OneEvent) {
  const auto trace = BuildTrace({.events = {"p:*"}, .filter = "a > 1"});
  ASSERT_TRUE(trace.has_value()) << ToString(trace.error());
  EXPECT_EQ(
      ToYaml(*trace),
      "apiVersion: weft.dev/v1alpha1\nkind: Trace\nmetadata:\n  name: record\nspec:\n  user:\n"
      "    events:\n      - name: \"p:*\"\n  filter: \"a > 1\"\n");
}

TEST(Builder, ListsWithCommas) {
  const auto trace = BuildTrace({.events = {"p:*,q:*", "r:a"},
                                 .exclude = {"p:a,*:b"},
                                 .kernel = {"sched_switch,irq_*"},
                                 .syscalls = {"openat,close", "read"},
                                 .context = {"vpid,vtid", "procname"}});
  ASSERT_TRUE(trace) << Errors({.events = {"p:*,q:*"}}).size();
  const auto& user = trace->spec.user.events;
  ASSERT_EQ(user.size(), 3u);
  EXPECT_EQ(user[0].name, "p:*");
  EXPECT_EQ(user[1].name, "q:*");
  EXPECT_EQ(user[2].name, "r:a");
  for (const auto& event : user) EXPECT_THAT(event.exclude, ElementsAre("p:a", "*:b"));
  ASSERT_EQ(trace->spec.kernel.tracepoints.size(), 2u);
  EXPECT_EQ(trace->spec.kernel.tracepoints[1].name, "irq_*");
  ASSERT_EQ(trace->spec.kernel.syscalls.size(), 3u);
  EXPECT_EQ(trace->spec.kernel.syscalls[1].name, "close");
  EXPECT_EQ(trace->spec.context.size(), 3u);
  EXPECT_THAT(Errors({.events = {"p:*,"}}),
              ElementsAre(HasSubstr("--event: \"\" must not be empty")));
}

TEST(Builder, CommasPartFunctionsButNotTheirArguments) {
  const auto trace =
      BuildTrace({.functions = {"f(int, long),x:g", "h<a,b>", "operator>>(A&, int),operator<(a, b)",
                                "A::operator()(int, int),A::operator,(A, A),my_operator,i"}});
  ASSERT_TRUE(trace.has_value()) << ToString(trace.error());
  std::vector<std::string> names;
  for (const FunctionRule& rule : trace->spec.user.functions) names.push_back(rule.name);
  EXPECT_THAT(names,
              ElementsAre("f(int, long)", "g", "h<a,b>", "operator>>(A&, int)", "operator<(a, b)",
                          "A::operator()(int, int)", "A::operator,(A, A)", "my_operator", "i"));
}

TEST(Builder, FunctionOfAPathBehindACommaIsSeenByTheKernel) {
  const auto trace = BuildTrace({.functions = {"f,/usr/bin/x:g"}, .filter = "n > 3"});
  ASSERT_TRUE(trace.has_value()) << ToString(trace.error());
  ASSERT_EQ(trace->spec.user.functions.size(), 1u);
  ASSERT_EQ(trace->spec.kernel.user_probes.size(), 1u);
  EXPECT_EQ(trace->spec.kernel.user_probes[0].object, "/usr/bin/x");
  EXPECT_EQ(trace->spec.filter, "n > 3");
}

TEST(Builder, FilterIsThatOfFunctionsIfThereIsNothingElse) {
  const auto functions = BuildTrace({.functions = {"f"}, .filter = "n > 3"});
  ASSERT_TRUE(functions.has_value()) << ToString(functions.error());
  EXPECT_EQ(functions->spec.user.functions[0].filter, "n > 3");
  EXPECT_EQ(functions->spec.filter, "");
  const auto both = BuildTrace({.events = {"p:*"}, .functions = {"f"}, .filter = "n > 3"});
  ASSERT_TRUE(both.has_value()) << ToString(both.error());
  EXPECT_EQ(both->spec.user.functions[0].filter, "");
  EXPECT_EQ(both->spec.filter, "n > 3");
}

TEST(Builder, FunctionsHaveProcessAndThreadUnlessContextsAreGiven) {
  const auto contexts = [](const ShortForm& form) {
    const auto trace = BuildTrace(form);
    return trace.value().spec.context;
  };
  EXPECT_THAT(contexts({.functions = {"f"}}), ElementsAre("vpid", "vtid"));
  EXPECT_THAT(contexts({.events = {"p:*"}, .function_sets = {"malloc"}}),
              ElementsAre("vpid", "vtid"));
  EXPECT_THAT(contexts({.functions = {"f"}, .context = {"procname"}}), ElementsAre("procname"));
  EXPECT_THAT(contexts({.functions = {"/bin/x:f"}}), ElementsAre());
  EXPECT_THAT(contexts({.events = {"p:*"}}), ElementsAre());
}

TEST(Builder, EveryFlag) {
  const auto trace = BuildTrace({.name = "x",
                                 .events = {"p:*", "q:*"},
                                 .exclude = {"p:a", "*:b"},
                                 .log_level = "TRACE_INFO",
                                 .functions = {"f", "lib*.so:g", "a::b", "x:a::b"},
                                 .kernel = {"sched_*"},
                                 .syscalls = {"openat", "close"},
                                 .syscall_buffer = "64",
                                 .context = {"vpid", "prio"},
                                 .buffer_size = "1Mi",
                                 .buffer_count = "8",
                                 .snapshot = true,
                                 .duration = "10s"});
  ASSERT_TRUE(trace.has_value()) << ToString(trace.error());
  const TraceSpec& spec = trace->spec;
  EXPECT_EQ(trace->metadata.name, "x");
  ASSERT_EQ(spec.user.events.size(), 2u);
  EXPECT_THAT(spec.user.events[1].exclude, ElementsAre("p:a", "*:b"));
  EXPECT_EQ(spec.user.events[1].log_level.at_least, LogLevel::kInfo);
  ASSERT_EQ(spec.user.functions.size(), 4u);
  EXPECT_EQ(spec.user.functions[0].object, "");
  EXPECT_EQ(spec.user.functions[1].object, "lib*.so");
  EXPECT_EQ(spec.user.functions[1].name, "g");
  EXPECT_EQ(spec.user.functions[2].name, "a::b");
  EXPECT_EQ(spec.user.functions[3].object, "x");
  EXPECT_EQ(spec.user.functions[3].name, "a::b");
  EXPECT_EQ(spec.kernel.syscalls.size(), 2u);
  EXPECT_EQ(spec.kernel.syscall_buffer, 64u);
  EXPECT_EQ(spec.buffer, (BufferSpec{1 << 20, 8, BufferMode::kOverwrite}));
  EXPECT_EQ(spec.output.mode, OutputMode::kSnapshot);
  EXPECT_EQ(spec.duration, std::chrono::seconds(10));
}

TEST(Builder, ProbesOfProgramsByPath) {
  const auto trace = BuildTrace({.functions = {"/bin/my prog:main.(*T).f", "/lib/x.so:9"},
                                 .usdt = {"/lib/x.so:shop:order-1", "/a:b:shop:order"}});
  ASSERT_FALSE(trace.has_value());
  EXPECT_THAT(trace.error(), testing::SizeIs(1)) << ToString(trace.error());
  EXPECT_EQ(trace.error()[0].path, "--usdt");
  const auto good = BuildTrace(
      {.functions = {"/bin/my prog:main.(*T).f", "/lib/x.so:9"}, .usdt = {"/a:b:shop:order"}});
  ASSERT_TRUE(good.has_value()) << ToString(good.error());
  EXPECT_TRUE(good->spec.user.functions.empty());
  EXPECT_THAT(
      good->spec.kernel.user_probes,
      ElementsAre(
          UserProbeRule{.name = "main___T__f",
                        .object = "/bin/my prog",
                        .function = "main.(*T).f",
                        .at = ProbePoint::kBoth},
          UserProbeRule{
              .name = "_9", .object = "/lib/x.so", .function = "9", .at = ProbePoint::kBoth},
          UserProbeRule{.name = "shop_order", .object = "/a:b", .usdt = "shop:order"}));
  for (const char* text : {"/a", "/a:"})
    EXPECT_EQ(BuildTrace({.functions = {text}}).error()[0].path, "--function") << text;
  for (const char* text : {"/a", "/a:b", "/a::b"})
    EXPECT_EQ(BuildTrace({.usdt = {text}}).error()[0].path, "--usdt") << text;
  EXPECT_EQ(BuildTrace({.usdt = {"a:b:c"}}).error()[0].path, "--function or --usdt");
}

TEST(Builder, LogLevels) {
  const auto rule = [](const std::string& text) {
    return BuildTrace({.events = {"*"}, .log_level = text})->spec.user.events[0].log_level;
  };
  EXPECT_EQ(rule("err"), (LogLevelRule{.at_least = LogLevel::kErr}));
  EXPECT_EQ(rule("=DEBUG-LINE"), (LogLevelRule{.exactly = LogLevel::kDebugLine}));
  EXPECT_EQ(rule("INFO..debug"),
            (LogLevelRule{.range = LogLevelRange{LogLevel::kInfo, LogLevel::kDebug}}));
}

TEST(Builder, MistakesNameTheFlag) {
  EXPECT_THAT(Errors({}), ElementsAre(HasSubstr("nothing to record: give --event")));
  EXPECT_THAT(Errors({.events = {"shop"}}),
              ElementsAre("--event: \"shop\" matches no event: they are named provider:event, did "
                          "you mean \"shop:*\"?"));
  EXPECT_THAT(Errors({.events = {"a:*", "b:*", "c:*"}, .exclude = {"?"}, .log_level = "inof"}),
              ElementsAre(HasSubstr("--exclude: \"?\" only * is special"),
                          HasSubstr("--log-level: \"inof\" is not valid, did you mean \"info\"?")));
  EXPECT_THAT(Errors({.events = {"*"}, .context = {"vpdi"}}),
              ElementsAre("--context: \"vpdi\" unknown context, did you mean \"vpid\"?"));
  EXPECT_THAT(Errors({.events = {"*"}, .buffer_size = "1", .buffer_count = "x", .duration = "5"}),
              ElementsAre(HasSubstr("--subbuf-size or --buffer-size: "),
                          HasSubstr("--subbufs or --buffer-count: \"x\" must be"),
                          HasSubstr("--duration: \"5\"")));
  EXPECT_THAT(Errors({.events = {"*"}, .buffer_size = "64Mi", .buffer_count = "64"}),
              ElementsAre("--subbuf-size or --buffer-size: size times count must be at most 1Gi"));
  EXPECT_THAT(Errors({.name = "A", .events = {"*"}}), ElementsAre(HasSubstr("--name: \"A\" must")));
  EXPECT_THAT(Errors({.syscalls = {"read"}, .syscall_buffer = "1x"}),
              ElementsAre(HasSubstr("--syscall-buffer: ")));
  EXPECT_THAT(Errors({.kernel = {"a b"}, .syscalls = {""}}),
              ElementsAre(HasSubstr("--kernel: "), HasSubstr("--syscall: \"\" must not be empty")));
}

TEST(Builder, FiltersAreCheckedByTheCaller) {
  ParseOptions options;
  options.check_filter = [](std::string_view) {
    return FilterProblem{4, "bad", "column 5", "here\n"};
  };
  const auto trace = BuildTrace({.events = {"*"}, .filter = "a > !"}, options);
  ASSERT_FALSE(trace.has_value());
  EXPECT_EQ(ToString(trace.error()), "--filter: column 5: bad\n");
  EXPECT_EQ(trace.error()[0].excerpt, "here\n");
}

}  // namespace
}  // namespace weft::api
