// SPDX-License-Identifier: Apache-2.0
// See metrics.h.
#include "node-agent/agent/cluster/metrics.h"

#include "lib/fields/fields.h"
#include "lib/metrics/registry.h"

namespace weft::agent {
namespace {

using metrics::Id;
using prometheus::MetricFamily;

// A family that names no member of ChannelCounts, or a member of another shape, does not compile.
consteval bool FamiliesNameMembersOfCounts() {
  for (const metrics::Family& family : metrics::kFamilies) {
    bool fits = family.count.empty();
    const auto check = [&](const auto& field) {
      using Member = std::remove_cvref_t<decltype(ipc::ChannelCounts{}.*field.member)>;
      const bool by_reason = !std::is_arithmetic_v<Member>;
      fits |= field.name == family.count && by_reason == (metrics::CountLabels(family) > 2);
    };
    std::apply([&](const auto&... field) { (check(field), ...); },
               FieldList<ipc::ChannelCounts>::kFields);
    if (!fits) return false;
  }
  return true;
}
static_assert(FamiliesNameMembersOfCounts());

// The reasons of a key as labels: all of it, or "stage/reason" in two.
void AppendReasons(const std::string& key, size_t labels, metrics::LabelValues& values) {
  const size_t slash = labels == 2 ? key.find('/') : std::string::npos;
  values.push_back(key.substr(0, slash));
  if (labels < 2) return;
  values.push_back(slash == std::string::npos ? "" : key.substr(slash + 1));
}

void AddSamples(Id id, const Metrics::TraceKey& trace, uint64_t count, MetricFamily& family) {
  family.metric.push_back(
      metrics::MakeSample(id, {trace.first, trace.second}, static_cast<double>(count)));
}

void AddSamples(Id id, const Metrics::TraceKey& trace,
                const std::map<std::string, uint64_t>& by_reason, MetricFamily& family) {
  const size_t labels = metrics::CountLabels(metrics::FamilyOf(id)) - 2;
  for (const auto& [key, count] : by_reason) {
    metrics::LabelValues values = {trace.first, trace.second};
    AppendReasons(key, labels, values);
    family.metric.push_back(metrics::MakeSample(id, values, static_cast<double>(count)));
  }
}

MetricFamily PerTrace(Id id, const Metrics::Sums& sums) {
  MetricFamily family = metrics::MakeFamily(id);
  for (const auto& [trace, counts] : sums) {
    ForEachField(counts, [&](const auto& field, const auto& count) {
      if (field.name == metrics::FamilyOf(id).count) AddSamples(id, trace, count, family);
    });
  }
  return family;
}

}  // namespace

void Metrics::Set(Sums sums) {
  const std::lock_guard lock(mutex_);
  sums_ = std::move(sums);
}

void Metrics::SetKernel(bool is_ready, std::string reason) {
  const std::lock_guard lock(mutex_);
  kernel_is_ready_ = is_ready;
  kernel_reason_ = std::move(reason);
}

void Metrics::CountOutOfMemory(const std::string& name_space) {
  const std::lock_guard lock(mutex_);
  ++out_of_memory_[name_space];
}

std::vector<MetricFamily> Metrics::Collect() const {
  const std::lock_guard lock(mutex_);
  std::vector<MetricFamily> families;
  for (const metrics::Family& family : metrics::kFamilies)
    if (!family.count.empty()) families.push_back(PerTrace(family.id, sums_));
  families.push_back(metrics::MakeFamily(Id::kKernelTracingReady));
  families.back().metric.push_back(
      metrics::MakeSample(Id::kKernelTracingReady, {kernel_reason_}, kernel_is_ready_ ? 1 : 0));
  families.push_back(metrics::MakeFamily(Id::kConsumersOutOfMemory));
  for (const auto& [name_space, count] : out_of_memory_)
    families.back().metric.push_back(
        metrics::MakeSample(Id::kConsumersOutOfMemory, {name_space}, static_cast<double>(count)));
  return families;
}

}  // namespace weft::agent
