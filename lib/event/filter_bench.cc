// SPDX-License-Identifier: Apache-2.0
// How long one evaluation of a filter takes, by kind of filter. For work on the interpreter;
// figures against LTTng are bench/'s.
#include <benchmark/benchmark.h>

#include <string>

#include "lib/event/filter_compiler.h"
#include "lib/event/filter_test_event.h"

namespace {

void BM_Filter(benchmark::State& state, const std::string& expression, bool expected) {
  weft::testing::TestEvent event;
  event.Number<int32_t>("a", 5)
      .Number<uint64_t>("b", 7)
      .Number<double>("d", 0.5)
      .Text("s", "the quick brown fox")
      .Sequence<int32_t>("q", {1, 2, 3});
  event.Build();
  weft::testing::TestContexts contexts;
  contexts.entries = {{"vpid", WEFT_FILTER_SYMBOL_CONTEXT, WEFT_FILTER_INT, int64_t{42}}};
  const auto program = weft::CompileFilter(expression);
  const weft::testing::LinkedFilter filter(*program, event.encoded(), &contexts);
  if (filter.error != 0 || filter.Run(event, &contexts) != expected) {
    state.SkipWithError("another result than expected");
    return;
  }
  const uint8_t* fixed = event.fixed();
  const weft_segment* segments = event.segments().data();
  for (auto _ : state) {
    benchmark::DoNotOptimize(fixed);
    benchmark::DoNotOptimize(weft_filter_run(filter.get(), fixed, segments, &contexts));
  }
}

BENCHMARK_CAPTURE(BM_Filter, reject_int, "a > 100", false);
BENCHMARK_CAPTURE(BM_Filter, accept_int, "a == 5", true);
BENCHMARK_CAPTURE(BM_Filter, reject_and_of_two, "b == 7 && a != 5", false);
BENCHMARK_CAPTURE(BM_Filter, reject_or_of_four, "a == 1 || a == 2 || a == 3 || b == 4", false);
BENCHMARK_CAPTURE(BM_Filter, reject_float, "d > 1.5", false);
BENCHMARK_CAPTURE(BM_Filter, reject_string, "s == \"another\"", false);
BENCHMARK_CAPTURE(BM_Filter, accept_string, "s == \"the quick brown fox\"", true);
BENCHMARK_CAPTURE(BM_Filter, reject_prefix, "s == \"that*\"", false);
BENCHMARK_CAPTURE(BM_Filter, reject_pattern, "s == \"*cat*\"", false);
BENCHMARK_CAPTURE(BM_Filter, reject_mask, "(a & 8) == 8", false);
BENCHMARK_CAPTURE(BM_Filter, reject_element, "q[1] == 3", false);
BENCHMARK_CAPTURE(BM_Filter, reject_fields, "a == b", false);
BENCHMARK_CAPTURE(BM_Filter, reject_context, "$ctx.vpid == 1", false);

}  // namespace

BENCHMARK_MAIN();
