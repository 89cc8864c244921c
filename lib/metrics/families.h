// SPDX-License-Identifier: Apache-2.0
// The table of all metric families that weft's processes export on /metrics. Names, help texts and
// label names stand here only: the processes' pages (registry.h, the agent's Metrics) and
// docs/metrics.md are made from it.
//
// Invariants, which metrics_test.cc checks:
//   * Only one part exports a family, so that a sum over all scraped pages counts nothing twice. A
//     relay exports what agents reported to it as a family of its own, weft_relay_reported_*.
//   * A counter's name ends in "_total", a gauge's does not.
// Thread-safety: it has constants only.
#ifndef WEFT_LIB_METRICS_FAMILIES_H_
#define WEFT_LIB_METRICS_FAMILIES_H_

#include <array>
#include <cstddef>
#include <cstdint>
#include <string_view>

namespace weft::metrics {

// The program that exports a family.
enum class Part : uint8_t { kAgent, kRelay, kController, kWebhook };

enum class Kind : uint8_t { kCounter, kGauge };

// Ids in the order of kFamilies.
enum class Id : uint8_t {
  kEventsRecorded,
  kEventsDiscarded,
  kEventsOverwritten,
  kEventsLost,
  kEventsLate,
  kStreamsTailUnknown,
  kKernelHitsMissed,
  kKernelTracingReady,
  kConsumersOutOfMemory,
  kEventsDelivered,
  kRelayPackets,
  kRelayBytes,
  kRelayStreams,
  kRelayStoredBytes,
  kRelayRemovedEvents,
  kRelayRemovedBytes,
  kRelayPacketsLost,
  kRelayReportedDiscarded,
  kRelayReportedLost,
  kRelayRefusedSessions,
  kRelaySessions,
  kRelayApiRequests,
  kRelayApiRefused,
  kRelayApiBytes,
  kControllerWork,
  kControllerTraces,
  kWebhookPods,
  kEnd,
};

inline constexpr std::size_t kMaxLabels = 4;

struct Family {
  Id id;
  Part part;
  Kind kind;
  std::string_view name;
  std::array<std::string_view, kMaxLabels> labels;  // "": none
  std::string_view help;
  // For the agent's families per Trace: the member of ipc::ChannelCounts that is exported. A member
  // with reasons gives a sample for each, its key "stage/reason" split over the last labels.
  std::string_view count = "";
};

inline constexpr std::array kFamilies = std::to_array<Family>({
    {Id::kEventsRecorded,
     Part::kAgent,
     Kind::kCounter,
     "weft_events_recorded_total",
     {"namespace", "trace"},
     "Events that tracers committed to a buffer.",
     "recorded"},
    {Id::kEventsDiscarded,
     Part::kAgent,
     Kind::kCounter,
     "weft_events_discarded_total",
     {"namespace", "trace", "reason"},
     "Events that tracers discarded, by reason.",
     "discarded"},
    {Id::kEventsOverwritten,
     Part::kAgent,
     Kind::kCounter,
     "weft_events_overwritten_total",
     {"namespace", "trace"},
     "Events that gave way to newer ones, in overwrite mode.",
     "overwritten"},
    {Id::kEventsLost,
     Part::kAgent,
     Kind::kCounter,
     "weft_events_lost_total",
     {"namespace", "trace", "stage", "reason"},
     "Events that were recorded and not delivered, by stage and reason.",
     "lost"},
    {Id::kEventsLate,
     Part::kAgent,
     Kind::kCounter,
     "weft_events_late_total",
     {"namespace", "trace"},
     "Delivered events whose time was raised, since viewers had been promised a later one.",
     "late"},
    {Id::kStreamsTailUnknown,
     Part::kAgent,
     Kind::kCounter,
     "weft_streams_tail_unknown_total",
     {"namespace", "trace"},
     "Rings that went away before weft read them to their end. No other count contains the events "
     "that were left in them.",
     "tail_unknown"},
    {Id::kKernelHitsMissed,
     Part::kAgent,
     Kind::kCounter,
     "weft_kernel_hits_missed_total",
     {"namespace", "trace"},
     "Hits of a Trace's probes of kernel functions, by any process of the node, that the kernel "
     "did not deliver. No other count contains them.",
     "missed_anywhere"},
    {Id::kKernelTracingReady,
     Part::kAgent,
     Kind::kGauge,
     "weft_kernel_tracing_ready",
     {"reason"},
     "1 if this node can record its kernel, else 0, with the reason."},
    {Id::kConsumersOutOfMemory,
     Part::kAgent,
     Kind::kCounter,
     "weft_consumers_out_of_memory_total",
     {"namespace"},
     "Consumers that the kernel killed because they exceeded their memory limit "
     "(agent.consumer.memory in the chart's values)."},
    {Id::kEventsDelivered,
     Part::kRelay,
     Kind::kCounter,
     "weft_events_delivered_total",
     {"namespace", "trace"},
     "Events in the packets that the relay stored."},
    {Id::kRelayPackets,
     Part::kRelay,
     Kind::kCounter,
     "weft_relay_packets_total",
     {"namespace", "trace"},
     "Packets that the relay stored."},
    {Id::kRelayBytes,
     Part::kRelay,
     Kind::kCounter,
     "weft_relay_bytes_total",
     {"namespace", "trace"},
     "Bytes of the packets that the relay stored."},
    {Id::kRelayStreams,
     Part::kRelay,
     Kind::kCounter,
     "weft_relay_streams_total",
     {"namespace", "trace"},
     "Streams that the relay stores. Each has files of its own."},
    {Id::kRelayStoredBytes,
     Part::kRelay,
     Kind::kGauge,
     "weft_relay_stored_bytes",
     {"namespace", "trace"},
     "Bytes of all files that the relay has of a Trace."},
    {Id::kRelayRemovedEvents,
     Part::kRelay,
     Kind::kCounter,
     "weft_relay_removed_events_total",
     {"namespace", "trace", "reason"},
     "Stored events that the relay removed, by reason: age, trace_size, namespace_size, "
     "free_space. They were delivered before."},
    {Id::kRelayRemovedBytes,
     Part::kRelay,
     Kind::kCounter,
     "weft_relay_removed_bytes_total",
     {"namespace", "trace", "reason"},
     "Bytes of the packets that the relay removed, by reason."},
    {Id::kRelayPacketsLost,
     Part::kRelay,
     Kind::kCounter,
     "weft_relay_packets_lost_total",
     {"namespace", "trace", "stage", "reason"},
     "Packets that nodes announced as lost, by stage and reason."},
    {Id::kRelayReportedDiscarded,
     Part::kRelay,
     Kind::kCounter,
     "weft_relay_reported_discarded_total",
     {"namespace", "trace", "reason"},
     "Discarded events as nodes reported them to this relay. An agent exports the same events as "
     "weft_events_discarded_total: do not add the two."},
    {Id::kRelayReportedLost,
     Part::kRelay,
     Kind::kCounter,
     "weft_relay_reported_lost_total",
     {"namespace", "trace", "stage", "reason"},
     "Lost events as nodes reported them to this relay. An agent exports the same events as "
     "weft_events_lost_total: do not add the two."},
    {Id::kRelayRefusedSessions,
     Part::kRelay,
     Kind::kCounter,
     "weft_relay_refused_sessions_total",
     {"reason"},
     "Sessions and connections of nodes that the relay ended: no_ticket, wrong_ticket, "
     "expired_ticket, no_session (there is no TraceSession), unknown_sessions (the API server has "
     "not told of any yet), no_certificate, tls, protocol, timeout, slow, limit, storage, "
     "replaced (another session has the stream)."},
    {Id::kRelaySessions,
     Part::kRelay,
     Kind::kGauge,
     "weft_relay_sessions",
     {},
     "Sessions of nodes that are connected now."},
    {Id::kRelayApiRequests,
     Part::kRelay,
     Kind::kCounter,
     "weft_relay_api_requests_total",
     {"result"},
     "Requests to the relay's HTTPS API: ok, no_token, unknown_token, forbidden, not_found, "
     "bad_request, limited, unavailable."},
    {Id::kRelayApiRefused,
     Part::kRelay,
     Kind::kCounter,
     "weft_relay_api_refused_connections_total",
     {"reason"},
     "Connections to the relay's HTTPS API that it ended, and requests that it did not read: tls, "
     "protocol, timeout (no whole request in time), slow (an answer was not taken in time), limit, "
     "no_certificate."},
    {Id::kRelayApiBytes,
     Part::kRelay,
     Kind::kCounter,
     "weft_relay_api_bytes_total",
     {},
     "Bytes of files that the relay's HTTPS API read for its clients."},
    {Id::kControllerWork,
     Part::kController,
     Kind::kCounter,
     "weft_controller_work_total",
     {"kind", "result"},
     "Work items that the controller handled, by kind and result."},
    {Id::kControllerTraces,
     Part::kController,
     Kind::kGauge,
     "weft_controller_traces",
     {"phase"},
     "Traces by phase."},
    {Id::kWebhookPods,
     Part::kWebhook,
     Kind::kCounter,
     "weft_webhook_pods_total",
     {"result", "reason"},
     "Pods that the API server asked the webhook about. A container that the webhook left alone "
     "counts beside its pod."},
});

// A family without a row, or with a row in another place than its id, does not compile.
consteval bool RowsStandInTheOrderOfIds() {
  if (kFamilies.size() != static_cast<std::size_t>(Id::kEnd)) return false;
  for (std::size_t i = 0; i < kFamilies.size(); ++i)
    if (kFamilies[i].id != static_cast<Id>(i)) return false;
  return true;
}
static_assert(RowsStandInTheOrderOfIds());

constexpr const Family& FamilyOf(Id id) { return kFamilies[static_cast<std::size_t>(id)]; }

constexpr std::size_t CountLabels(const Family& family) {
  std::size_t count = 0;
  while (count < kMaxLabels && !family.labels[count].empty()) ++count;
  return count;
}

}  // namespace weft::metrics

#endif  // WEFT_LIB_METRICS_FAMILIES_H_
