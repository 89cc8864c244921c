// SPDX-License-Identifier: Apache-2.0
// The relay's counters, in Prometheus' text format. Thread-safety: any thread.
#ifndef WEFT_RELAY_INGEST_METRICS_H_
#define WEFT_RELAY_INGEST_METRICS_H_

#include <cstdint>
#include <memory>
#include <string>

namespace weft::ingest {

// A Trace, as labels have it.
struct TraceLabels {
  std::string kubernetes_namespace;
  std::string trace;
};

class Metrics {
 public:
  Metrics();
  ~Metrics();
  Metrics(const Metrics&) = delete;
  Metrics& operator=(const Metrics&) = delete;

  void Delivered(const TraceLabels& trace, uint64_t events);
  void Packet(const TraceLabels& trace, uint64_t bytes);
  void Stream(const TraceLabels& trace);
  void Discarded(const TraceLabels& trace, const std::string& reason, uint64_t events);
  void Lost(const TraceLabels& trace, const std::string& stage, const std::string& reason,
            uint64_t events);
  // Packets that will never come; how many events were in them nobody can say.
  void PacketsLost(const TraceLabels& trace, const std::string& stage, const std::string& reason,
                   uint64_t packets);
  void Sessions(int64_t change);
  // A session ended by the relay, which did not accept what came.
  void Refused();

  [[nodiscard]] std::string Text() const;

 private:
  struct Families;
  std::unique_ptr<Families> families_;
};

}  // namespace weft::ingest

#endif  // WEFT_RELAY_INGEST_METRICS_H_
