// SPDX-License-Identifier: Apache-2.0
// The metrics of one process: the families that families.h lists for its part, with their values,
// as prometheus-cpp keeps them. Families without labels are on the page from the start, the others
// as soon as they have a value.
// Thread-safety: any thread.
#ifndef WEFT_LIB_METRICS_REGISTRY_H_
#define WEFT_LIB_METRICS_REGISTRY_H_

#include <prometheus/client_metric.h>
#include <prometheus/collectable.h>
#include <prometheus/metric_family.h>

#include <memory>
#include <string>
#include <vector>

#include "lib/metrics/families.h"

namespace weft::metrics {

// Values of a family's labels, in the order of its row.
using LabelValues = std::vector<std::string>;

class Registry final : public prometheus::Collectable {
 public:
  explicit Registry(Part part);
  ~Registry() override;
  Registry(const Registry&) = delete;
  Registry& operator=(const Registry&) = delete;

  // `id` is a family of this registry's part, `labels` has as many values as its row. A counter
  // takes no negative value.
  void Add(Id id, const LabelValues& labels, double value = 1);
  // Gauges only.
  void Set(Id id, const LabelValues& labels, double value);

  [[nodiscard]] std::vector<prometheus::MetricFamily> Collect() const override;
  // Returns the page, in Prometheus' text format.
  [[nodiscard]] std::string Text() const;

 private:
  struct Families;
  std::unique_ptr<Families> families_;
};

// For a page that is made anew at each scrape: these make a family without samples, and a sample.
prometheus::MetricFamily MakeFamily(Id id);
prometheus::ClientMetric MakeSample(Id id, const LabelValues& labels, double value);

}  // namespace weft::metrics

#endif  // WEFT_LIB_METRICS_REGISTRY_H_
