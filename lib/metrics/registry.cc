// SPDX-License-Identifier: Apache-2.0
// See registry.h.
#include "lib/metrics/registry.h"

#include <prometheus/counter.h>
#include <prometheus/gauge.h>
#include <prometheus/registry.h>
#include <prometheus/text_serializer.h>

#include <cassert>
#include <map>
#include <variant>

namespace weft::metrics {
namespace {

using prometheus::Counter;
using prometheus::Gauge;
using AnyFamily = std::variant<prometheus::Family<Counter>*, prometheus::Family<Gauge>*>;

AnyFamily Register(const Family& family, prometheus::Registry& registry) {
  const std::string name(family.name);
  const std::string help(family.help);
  switch (family.kind) {
    case Kind::kCounter:
      return &prometheus::BuildCounter().Name(name).Help(help).Register(registry);
    case Kind::kGauge:
      return &prometheus::BuildGauge().Name(name).Help(help).Register(registry);
  }
  __builtin_unreachable();
}

prometheus::MetricType TypeOf(Kind kind) {
  switch (kind) {
    case Kind::kCounter:
      return prometheus::MetricType::Counter;
    case Kind::kGauge:
      return prometheus::MetricType::Gauge;
  }
  __builtin_unreachable();
}

prometheus::Labels LabelsOf(Id id, const LabelValues& values) {
  const Family& family = FamilyOf(id);
  assert(values.size() == CountLabels(family));
  prometheus::Labels labels;
  for (std::size_t i = 0; i < values.size(); ++i)
    labels.emplace(std::string(family.labels[i]), values[i]);
  return labels;
}

}  // namespace

struct Registry::Families {
  prometheus::Registry registry;
  std::map<Id, AnyFamily> by_id;
};

Registry::Registry(Part part) : families_(std::make_unique<Families>()) {
  for (const Family& family : kFamilies) {
    if (family.part != part) continue;
    const AnyFamily made = Register(family, families_->registry);
    families_->by_id.emplace(family.id, made);
    if (CountLabels(family) == 0) std::visit([](auto* of) { of->Add({}); }, made);
  }
}

Registry::~Registry() = default;

void Registry::Add(Id id, const LabelValues& labels, double value) {
  std::visit([&](auto* of) { of->Add(LabelsOf(id, labels)).Increment(value); },
             families_->by_id.at(id));
}

void Registry::Set(Id id, const LabelValues& labels, double value) {
  std::get<prometheus::Family<Gauge>*>(families_->by_id.at(id))
      ->Add(LabelsOf(id, labels))
      .Set(value);
}

std::vector<prometheus::MetricFamily> Registry::Collect() const {
  return families_->registry.Collect();
}

std::string Registry::Text() const { return prometheus::TextSerializer().Serialize(Collect()); }

prometheus::MetricFamily MakeFamily(Id id) {
  const Family& family = FamilyOf(id);
  prometheus::MetricFamily made;
  made.name = family.name;
  made.help = family.help;
  made.type = TypeOf(family.kind);
  return made;
}

prometheus::ClientMetric MakeSample(Id id, const LabelValues& labels, double value) {
  const Family& family = FamilyOf(id);
  assert(labels.size() == CountLabels(family));
  prometheus::ClientMetric sample;
  for (std::size_t i = 0; i < labels.size(); ++i)
    sample.label.push_back({std::string(family.labels[i]), labels[i]});
  switch (family.kind) {
    case Kind::kCounter:
      sample.counter.value = value;
      break;
    case Kind::kGauge:
      sample.gauge.value = value;
      break;
  }
  return sample;
}

}  // namespace weft::metrics
