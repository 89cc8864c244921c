// SPDX-License-Identifier: Apache-2.0
#include "cli/export/timeline.h"

namespace weft::cli {
namespace {

// Finds the number in one member of a payload.
class NumberFinder final : public ctf::Visitor {
 public:
  explicit NumberFinder(const std::string& field) : field_(field) {}

  void BeginMember(const ctf::Type&, const ctf::Member& member) override {
    is_here_ = member.name == field_;
  }
  void Integer(const ctf::Type& type, uint64_t value) override {
    Take(type.is_signed ? static_cast<double>(static_cast<int64_t>(value))
                        : static_cast<double>(value));
  }
  void Float(const ctf::Type&, double value) override { Take(value); }

  std::optional<double> found;

 private:
  void Take(double value) {
    if (is_here_) found = value;
    is_here_ = false;
  }

  const std::string& field_;
  bool is_here_ = false;
};

// The name of a span on a CPU's track, for Track::open; its length tells whether one is open.
const std::string kRunning = "running";

}  // namespace

Timeline::Class& Timeline::ClassOf(const ctf::EventRecordClass& event) {
  const auto [found, added] = classes_.try_emplace(&event);
  Class& known = found->second;
  if (!added) return known;
  known.span = SpanOf(event.name);
  const auto counter = counters_.find(event.name);
  if (counter != counters_.end()) {
    known.field = counter->second;
    known.counter = event.name + "." + known.field;
  }
  return known;
}

void Timeline::TakeSwitch(const Subject& subject, Moment& moment) {
  moment.cpu = &tracks_.OfCpu(subject);
  moment.cpu_was_busy = !moment.cpu->open.empty();
  moment.cpu->open.clear();
  const int64_t tid = subject.next_tid.value_or(0);
  if (tid == 0) return;
  moment.cpu->open.push_back(&kRunning);
  moment.running = std::string(subject.next_program) + " (" + std::to_string(tid) + ")";
}

Moment Timeline::Take(ctf::StreamReader& stream) {
  const ctf::EventRecordClass& event = *stream.item().event;
  Class& known = ClassOf(event);
  const Subject& subject = subjects_.Read(stream);
  Moment moment;
  moment.track = &tracks_.Of(subject, &stream.trace());
  moment.change = Change(*moment.track, known.span);
  moment.name = &known.span.name;
  if (!known.field.empty()) {
    NumberFinder finder(known.field);
    (void)stream.Visit(ctf::Scope::kPayload, finder);
    if (finder.found) {
      moment.counter = &tracks_.OfCounter(subject, &stream.trace(), known.counter);
      moment.value = *finder.found;
    }
  }
  if (subject.next_tid) TakeSwitch(subject, moment);
  return moment;
}

}  // namespace weft::cli
