// SPDX-License-Identifier: Apache-2.0
// See metrics.h.
#include "relay/ingest/metrics.h"

#include <prometheus/counter.h>
#include <prometheus/gauge.h>
#include <prometheus/registry.h>
#include <prometheus/text_serializer.h>

#include <algorithm>

namespace weft::ingest {
namespace {

using prometheus::Counter;
using prometheus::Family;
using prometheus::Labels;

Labels Of(const TraceLabels& trace) {
  return {{"namespace", trace.kubernetes_namespace}, {"trace", trace.trace}};
}

// A node says what it likes; a label is one of ours.
std::string Word(const std::string& text) {
  const bool fine = !text.empty() && text.size() <= 32 && std::ranges::all_of(text, [](char c) {
    return (c >= 'a' && c <= 'z') || c == '_';
  });
  return fine ? text : "other";
}

Family<Counter>& Make(prometheus::Registry& registry, const char* name, const char* help) {
  return prometheus::BuildCounter().Name(name).Help(help).Register(registry);
}

}  // namespace

struct Metrics::Families {
  prometheus::Registry registry;
  Family<Counter>& delivered =
      Make(registry, "weft_events_delivered_total", "Events in the packets that are stored.");
  Family<Counter>& packets = Make(registry, "weft_relay_packets_total", "Packets stored.");
  Family<Counter>& bytes = Make(registry, "weft_relay_bytes_total", "Bytes of packets stored.");
  Family<Counter>& streams =
      Make(registry, "weft_relay_streams_total", "Streams, each with a file of its own.");
  Family<Counter>& discarded =
      Make(registry, "weft_events_discarded_total", "Events that tracers discarded, by reason.");
  Family<Counter>& lost = Make(registry, "weft_events_lost_total",
                               "Events that were recorded and not delivered, by stage and reason.");
  Family<Counter>& packets_lost = Make(registry, "weft_relay_packets_lost_total",
                                       "Packets announced as lost, by stage and reason.");
  Counter& refused =
      Make(registry, "weft_relay_refused_sessions_total", "Sessions that the relay ended.").Add({});
  prometheus::Gauge& sessions = prometheus::BuildGauge()
                                    .Name("weft_relay_sessions")
                                    .Help("Sessions of nodes now.")
                                    .Register(registry)
                                    .Add({});
};

Metrics::Metrics() : families_(std::make_unique<Families>()) {}
Metrics::~Metrics() = default;

void Metrics::Delivered(const TraceLabels& trace, uint64_t events) {
  families_->delivered.Add(Of(trace)).Increment(static_cast<double>(events));
}

void Metrics::Packet(const TraceLabels& trace, uint64_t bytes) {
  families_->packets.Add(Of(trace)).Increment();
  families_->bytes.Add(Of(trace)).Increment(static_cast<double>(bytes));
}

void Metrics::Stream(const TraceLabels& trace) { families_->streams.Add(Of(trace)).Increment(); }

void Metrics::Discarded(const TraceLabels& trace, const std::string& reason, uint64_t events) {
  Labels labels = Of(trace);
  labels["reason"] = Word(reason);
  families_->discarded.Add(labels).Increment(static_cast<double>(events));
}

void Metrics::Lost(const TraceLabels& trace, const std::string& stage, const std::string& reason,
                   uint64_t events) {
  Labels labels = Of(trace);
  labels["stage"] = Word(stage);
  labels["reason"] = Word(reason);
  families_->lost.Add(labels).Increment(static_cast<double>(events));
}

void Metrics::PacketsLost(const TraceLabels& trace, const std::string& stage,
                          const std::string& reason, uint64_t packets) {
  Labels labels = Of(trace);
  labels["stage"] = Word(stage);
  labels["reason"] = Word(reason);
  families_->packets_lost.Add(labels).Increment(static_cast<double>(packets));
}

void Metrics::Sessions(int64_t change) {
  families_->sessions.Increment(static_cast<double>(change));
}

void Metrics::Refused() { families_->refused.Increment(); }

std::string Metrics::Text() const {
  return prometheus::TextSerializer().Serialize(families_->registry.Collect());
}

}  // namespace weft::ingest
