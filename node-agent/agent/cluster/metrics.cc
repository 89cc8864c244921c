// SPDX-License-Identifier: Apache-2.0
// See metrics.h.
#include "node-agent/agent/cluster/metrics.h"

namespace weft::agent {
namespace {

using prometheus::ClientMetric;
using prometheus::MetricFamily;

class Family {
 public:
  Family(const char* name, const char* help) {
    family_.name = name;
    family_.help = help;
    family_.type = prometheus::MetricType::Counter;
  }
  void Add(const Metrics::TraceKey& trace, uint64_t count,
           std::vector<ClientMetric::Label> more = {}) {
    ClientMetric metric;
    metric.label = {{"namespace", trace.first}, {"trace", trace.second}};
    metric.label.insert(metric.label.end(), more.begin(), more.end());
    metric.counter.value = static_cast<double>(count);
    family_.metric.push_back(std::move(metric));
  }
  MetricFamily Take() { return std::move(family_); }

 private:
  MetricFamily family_;
};

MetricFamily OfKernel(bool is_ready, const std::string& reason) {
  MetricFamily family;
  family.name = "weft_kernel_tracing_ready";
  family.help = "Whether this node can record its kernel, with the reason.";
  family.type = prometheus::MetricType::Gauge;
  ClientMetric metric;
  metric.label = {{"reason", reason}};
  metric.gauge.value = is_ready ? 1 : 0;
  family.metric.push_back(std::move(metric));
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

std::vector<MetricFamily> Metrics::Collect() const {
  Family recorded("weft_events_recorded_total", "Events that tracers committed to a buffer.");
  Family discarded("weft_events_discarded_total", "Events that tracers discarded, by reason.");
  Family overwritten("weft_events_overwritten_total",
                     "Events that gave way to newer ones, in overwrite mode.");
  Family lost("weft_events_lost_total",
              "Events that were recorded and not delivered, by stage and reason.");
  Family ends("weft_streams_tail_unknown_total",
              "Rings that went away before their end was read: what was left in them is in no "
              "other count.");
  Family missed("weft_kernel_hits_missed_total",
                "Hits, of anybody on the node, of a Trace's probes of kernel functions that the "
                "kernel did not deliver: in no other count.");
  const std::lock_guard lock(mutex_);
  for (const auto& [trace, counts] : sums_) {
    recorded.Add(trace, counts.recorded);
    ends.Add(trace, counts.tail_unknown);
    missed.Add(trace, counts.missed_anywhere);
    overwritten.Add(trace, counts.overwritten);
    for (const auto& [reason, count] : counts.discarded)
      discarded.Add(trace, count, {{"reason", reason}});
    for (const auto& [where, count] : counts.lost) {
      const size_t slash = where.find('/');
      const std::string reason = slash == std::string::npos ? "" : where.substr(slash + 1);
      lost.Add(trace, count, {{"stage", where.substr(0, slash)}, {"reason", reason}});
    }
  }
  return {recorded.Take(),
          discarded.Take(),
          overwritten.Take(),
          lost.Take(),
          ends.Take(),
          missed.Take(),
          OfKernel(kernel_is_ready_, kernel_reason_)};
}

}  // namespace weft::agent
