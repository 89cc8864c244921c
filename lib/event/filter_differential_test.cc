// SPDX-License-Identifier: Apache-2.0
// A million random expressions over random events: text, compiler, linker and interpreter against
// an evaluator of its own (filter_evaluator.h). WEFT_FILTER_SEED in the environment replays or
// varies.
#include <gtest/gtest.h>

#include <cstdlib>
#include <map>

#include "lib/event/filter_compiler.h"
#include "lib/event/filter_evaluator.h"
#include "lib/event/filter_generator.h"

namespace weft {
namespace {

using testing::Verdict;

#ifdef WEFT_SANITIZED
constexpr int kModels = 500;
#else
constexpr int kModels = 5000;
#endif
constexpr int kExpressionsPerModel = 200;

Verdict VerdictOfWeft(const std::string& text, testing::Model& model) {
  const auto program = CompileFilter(text);
  if (!program) return Verdict::kRefused;
  const testing::LinkedFilter filter(*program, model.event.encoded(), &model.contexts);
  if (filter.error == -ENOENT || filter.error == -EPROTOTYPE) return Verdict::kNoMatch;
  EXPECT_EQ(filter.error, 0);
  return filter.Run(model.event, &model.contexts) ? Verdict::kTrue : Verdict::kFalse;
}

TEST(FilterDifferential, AgreesWithAnIndependentEvaluator) {
  const char* seed = std::getenv("WEFT_FILTER_SEED");
  testing::Random random(seed != nullptr ? std::strtoull(seed, nullptr, 0) : 20240607);
  std::map<Verdict, int> seen;
  for (int i = 0; i < kModels; ++i) {
    testing::Model model;
    MakeModel(random, model);
    for (int j = 0; j < kExpressionsPerModel; ++j) {
      const auto expr = MakeExpr(random, model);
      const std::string text = Write(random, *expr);
      const Verdict expected = Evaluate(*expr, model);
      const Verdict got = VerdictOfWeft(text, model);
      ASSERT_EQ(static_cast<int>(got), static_cast<int>(expected))
          << text << "\nmodel " << i << ", expression " << j;
      ++seen[expected];
    }
  }
  // A test that always sees the same proves nothing.
  const int all = kModels * kExpressionsPerModel;
  EXPECT_GT(seen[Verdict::kTrue], all / 10);
  EXPECT_GT(seen[Verdict::kFalse], all / 10);
  EXPECT_GT(seen[Verdict::kNoMatch], all / 50);
  EXPECT_GT(seen[Verdict::kRefused], all / 50);
  std::printf("true %d, false %d, no match %d, refused %d\n", seen[Verdict::kTrue],
              seen[Verdict::kFalse], seen[Verdict::kNoMatch], seen[Verdict::kRefused]);
}

}  // namespace
}  // namespace weft
