// SPDX-License-Identifier: Apache-2.0
// See consumer.h.
#include "node-agent/consumer/consumer.h"

#include <algorithm>

#include "node-agent/consumer/limits.h"

namespace weft::consumer {

Consumer::Consumer(const Settings& settings, Journal journal, SinkMaker& sinks, Notice notice)
    : settings_(settings),
      clocks_(settings.clock, settings.realtime_offset_ns),
      mono_(WEFT_CLOCK_MONOTONIC),
      journal_(std::move(journal)),
      sinks_(&sinks),
      notice_(std::move(notice)) {}

Result<std::unique_ptr<Consumer>> Consumer::Make(const Settings& settings, UniqueFd journal_fd,
                                                 SinkMaker& sinks, Notice notice) {
  WEFT_ASSIGN(Journal journal, Journal::Open(std::move(journal_fd)));
  std::unique_ptr<Consumer> consumer(
      new Consumer(settings, std::move(journal), sinks, std::move(notice)));
  WEFT_TRY(consumer->ReadJournal());
  return consumer;
}

Status Consumer::ReadJournal() {
  WEFT_ASSIGN(restored_, DecodeOutputs(journal_.record()));
  return journal_.ReadEvents([this](Bytes entry) -> Status {
    ByteReader reader(entry);
    const auto channel = reader.Read<uint64_t>();
    const auto id = reader.Read<uint32_t>();
    const Bytes description = reader.ReadBytes(reader.remaining());
    auto& list = classes_[channel];
    if (!reader.ok() || id > list.size()) return Fail(ErrorCode::kCorrupt, "journal: event log");
    // A class that a killed consumer announced but did not commit is announced again, later.
    list.resize(id);
    list.emplace_back(description.begin(), description.end());
    return {};
  });
}

Status Consumer::WriteJournal() {
  std::vector<uint8_t> record;
  for (const OutputRecord& output : restored_) Encode(output, record);
  for (const auto& output : outputs_) {
    record.insert(record.end(), output->committed().begin(), output->committed().end());
  }
  return journal_.Commit(record);
}

Output* Consumer::FindOutput(const std::string& name) {
  for (const auto& output : outputs_) {
    if (output->name() == name) return output.get();
  }
  return nullptr;
}

Status Consumer::AddChannel(const ipc::ChannelDefinition& definition) {
  if (Find(definition.id) != nullptr) return {};
  if (Channels().size() >= kMaxChannels) return Fail(ErrorCode::kLimit, "too many channels");
  const std::string name = OutputName(definition);
  Output* output = FindOutput(name);
  if (output == nullptr) {
    const auto record = std::find_if(restored_.begin(), restored_.end(),
                                     [&](const auto& r) { return r.name == name; });
    const bool restore = record != restored_.end();
    const ctf::Clock clock{.description = "nanoseconds since the epoch",
                           .uuid = settings_.clock_uuid};
    WEFT_ASSIGN(
        std::unique_ptr<Output> made,
        Output::Open(
            definition, clock, restore ? &*record : nullptr, *sinks_, clocks_, settings_.limits,
            {.write_journal = [this] { return WriteJournal(); },
             .append_event = [this](Bytes event) { return journal_.AppendEvent(event); },
             .notice = notice_,
             .complete_move = [this](int fd) { return RingMover(journal_).Complete(fd); }}));
    if (restore) restored_.erase(record);
    outputs_.push_back(std::move(made));
    output = outputs_.back().get();
  }
  return output->AddChannel(definition, classes_);
}

Channel* Consumer::Find(uint64_t channel) {
  for (const auto& output : outputs_) {
    if (Channel* found = output->Find(channel); found != nullptr) return found;
  }
  return nullptr;
}

std::vector<Channel*> Consumer::Channels() {
  std::vector<Channel*> all;
  for (const auto& output : outputs_) {
    for (const auto& channel : output->channels()) all.push_back(channel.get());
  }
  return all;
}

Status Consumer::AddRing(uint64_t channel, UniqueFd fd, uint64_t instance, uint64_t process) {
  Channel* found = Find(channel);
  if (found == nullptr) return Fail(ErrorCode::kNotFound, "no such channel");
  busy_ns_ = mono_.Ticks();
  return found->AddRing(std::move(fd), instance, process);
}

void Consumer::ProcessGone(uint64_t process) {
  for (Channel* channel : Channels()) channel->ProcessGone(process);
}

void Consumer::ForgetRing(uint64_t channel, uint64_t instance) {
  if (Channel* found = Find(channel); found != nullptr) found->ForgetRing(instance);
}

bool Consumer::MoveRing(uint64_t channel, uint64_t instance, bool may_lose) {
  Channel* found = Find(channel);
  if (found == nullptr) return false;
  uint64_t used = 0;
  for (const Channel* each : Channels()) used += each->moved_bytes();
  RingMover mover(journal_);
  return found->MoveRing(instance, mover, kMaxMovedBytes - std::min(used, kMaxMovedBytes),
                         may_lose);
}

void Consumer::StopChannels(const std::vector<uint64_t>& channels) {
  bool any = false;
  for (const uint64_t id : channels) {
    Channel* channel = Find(id);
    if (channel == nullptr || channel->closed()) continue;
    channel->Close();
    any = true;
  }
  if (any) (void)ring::CloseBarrier();
  busy_ns_ = mono_.Ticks();
}

void Consumer::ForgetChannel(uint64_t channel) {
  for (const auto& output : outputs_) {
    output->RemoveChannel(channel);
    (void)output->Commit();
  }
  std::erase_if(outputs_, [](const auto& output) {
    return output->channels().empty() && !output->restorable();
  });
  (void)WriteJournal();
}

void Consumer::Calibrate(uint64_t now_ns) {
  if (now_ns - calibrated_ns_ < kCalibrationInterval) return;
  clocks_.Calibrate();
  calibrated_ns_ = now_ns;
}

uint64_t Consumer::Round() {
  const uint64_t now_ns = mono_.Ticks();
  Calibrate(now_ns);
  bool merged = false;
  bool starved = false;
  const uint64_t progress_before = progress_;
  for (size_t i = 0; i < outputs_.size(); i++) {
    uint64_t budget = kBytesPerRound;
    Output& output = *outputs_[(next_output_ + i) % outputs_.size()];
    merged = output.Round(now_ns, budget) || merged;
    starved = starved || budget == 0;
  }
  next_output_ += 1;
  progress_ = 0;
  for (Channel* channel : Channels()) progress_ += channel->progress();
  // Records that were copied and are too young to be merged count as work.
  const uint64_t delay = Delay(merged || progress_ != progress_before, now_ns);
  return starved ? 0 : delay;
}

uint64_t Consumer::Delay(bool busy, uint64_t now_ns) {
  if (busy) busy_ns_ = now_ns;
  const uint64_t after = mono_.Ticks();
  const uint64_t idle = now_ns - std::min(now_ns, busy_ns_);
  uint64_t delay = idle < kIdleAfter ? kPollBusy : idle < kAsleepAfter ? kPollIdle : kPollAsleep;
  for (Channel* channel : Channels()) {
    if (channel->closed() && !channel->drained()) delay = std::min(delay, kPollBusy);
    if (channel->hurried()) delay = std::min(delay, kPollHurried);
    if (channel->under_pressure()) delay = kPollPressed;
  }
  for (const auto& output : outputs_) {
    if (output->writing()) delay = std::min(delay, kPollPressed);
  }
  // Looking at very many rings costs time. It must not cost more than a tenth of a CPU when idle.
  if (idle >= kIdleAfter) delay = std::max(delay, (after - now_ns) * 10);
  return delay;
}

Status Consumer::FlushAll() {
  Status first;
  for (const auto& output : outputs_) {
    Status status = output->Commit();
    if (first && !status) first = std::move(status);
    status = output->Sync();
    if (first && !status) first = std::move(status);
  }
  return first;
}

Result<bool> Consumer::Ready(uint64_t channel) {
  for (const auto& output : outputs_) {
    if (output->Find(channel) != nullptr) return output->Ready();
  }
  return Fail(ErrorCode::kNotFound, "no such channel");
}

bool Consumer::waits_for_relay() const {
  return std::ranges::any_of(outputs_, [](const auto& output) { return output->waiting(); });
}

void Consumer::Report() {
  for (const auto& output : outputs_) output->Report();
}

uint64_t Consumer::PendingChannels() const {
  uint64_t pending = 0;
  for (const auto& output : outputs_) {
    if (output->waiting()) continue;
    for (const auto& channel : output->channels()) pending += channel->pending() ? 1 : 0;
  }
  return pending;
}

Status Consumer::SyncFiles(uint64_t channel) {
  for (const auto& output : outputs_) {
    if (output->Find(channel) != nullptr) return output->Sync();
  }
  return {};
}

}  // namespace weft::consumer
