// SPDX-License-Identifier: Apache-2.0
// See output.h.
#include "node-agent/consumer/output.h"

#include <algorithm>
#include <cstring>

#include "lib/base/kill_point.h"
#include "lib/base/uuid.h"
#include "lib/ctf/vpid_range.h"
#include "node-agent/consumer/limits.h"

namespace weft::consumer {
namespace {

ctf::TraceInfo MakeInfo(const ipc::ChannelDefinition& d, const ctf::Clock& clock) {
  ctf::TraceInfo info{.uuid = d.trace_uuid,
                      .version = d.ctf_version == "2" ? ctf::Version::k2 : ctf::Version::k1_8,
                      .clock = clock,
                      .vpids = ctf::VpidRange{}};
  info.env = ctf::MakeEnv({.hostname = d.hostname,
                           .domain = d.domain,
                           .trace_name = d.trace,
                           .created = d.created,
                           .procnames = d.programs,
                           .node = d.node,
                           .kubernetes_namespace = d.kubernetes_namespace,
                           .pod = d.pod,
                           .pod_uid = d.pod_uid,
                           .container = d.container});
  return info;
}

}  // namespace

std::string OutputName(const ipc::ChannelDefinition& definition) {
  return FormatUuid(definition.trace_uuid) + "/" + definition.trace_path;
}

Result<std::unique_ptr<Output>> Output::Open(const ipc::ChannelDefinition& definition,
                                             const ctf::Clock& ctf_clock,
                                             const OutputRecord* record, SinkMaker& sinks,
                                             RingClocks& clocks, const Limits& limits,
                                             Hooks hooks) {
  const std::string name = OutputName(definition);
  // Cuts off what a killed consumer wrote beyond its journal.
  const uint64_t known = record == nullptr ? 0 : record->metadata_bytes;
  WEFT_ASSIGN(std::unique_ptr<TraceSink> sink, sinks.Open(definition, known));
  std::unique_ptr<Output> output(
      new Output(name, std::move(sink), clocks, limits, std::move(hooks)));
  output->info_ = MakeInfo(definition, ctf_clock);
  if (record == nullptr) {
    output->record_.name = name;
    Encode(output->record_, output->committed_);
    const std::string metadata = ctf::TraceMetadata(output->info_);
    output->vpids_offset_ = ctf::FindVpidRange(output->info_.version, metadata);
    WEFT_TRY(output->sink_->metadata().Append(metadata));
    return output;
  }
  output->RestoreVpids(*record);
  output->record_ = *record;
  Encode(*record, output->committed_);
  return output;
}

uint32_t Output::FreeStreamClass() const {
  uint32_t next = 0;
  for (const auto& channel : channels_) next = std::max(next, channel->schema().id + 1);
  for (const auto& record : record_.channels) next = std::max(next, record.stream_class + 1);
  return next;
}

Status Output::AddChannel(const ipc::ChannelDefinition& definition, const ClassLog& classes) {
  const auto known = std::find_if(record_.channels.begin(), record_.channels.end(),
                                  [&](const auto& r) { return r.id == definition.id; });
  const bool restore = known != record_.channels.end();
  ctf::ChannelSchema schema{.id = restore ? known->stream_class : FreeStreamClass(),
                            .name = definition.channel};
  for (const ipc::ContextRef& context : definition.contexts) {
    schema.contexts.push_back({context.id, context.name});
  }
  WEFT_ASSIGN(ctf::Channel ctf_channel, ctf::MakeChannel(schema));
  // A relay's sink takes metadata at any time.
  if (Status finished = FinishCommit(); !finished && finished.error().code != ErrorCode::kTimeout) {
    return finished;
  }
  if (!restore) WEFT_TRY(sink_->metadata().Append(ctf::ChannelMetadata(info_, ctf_channel)));
  const uint64_t id = definition.id;
  Channel::Hooks hooks{
      .announce = [this, id](const ctf::EventClass& event,
                             Bytes description) { return Announce(id, event, description); },
      // The writer has the store meanwhile.
      .prepare = [this] { return FinishCommit(); },
      .commit = [this] { (void)StartCommit(); },
      // Readers of CTF 2 do not have that fault of babeltrace2 2.0.
      .classes_by_empty_texts = info_.version == ctf::Version::k1_8,
      .notice = hooks_.notice,
      .notice_vpid = [this](uint32_t vpid) { AddVpid(vpid); },
      .complete_move = hooks_.complete_move};
  if (definition.domain == ipc::kKernelDomain) {
    hooks.open_ring = ring::RingSet::OpenKernel;
    hooks.notice_vpid = [](uint32_t) {};
    hooks.clock_of = [this](const ring::Geometry& ring) { return &clocks_->Of(ring.clock); };
  }
  Limits limits = limits_;
  if (sink_->commits().remote()) limits.promise_lag = 0;
  auto channel = std::make_unique<Channel>(id, std::move(ctf_channel), info_.uuid, sink_->packets(),
                                           clocks_->node(), limits, std::move(hooks));
  if (restore) {
    const auto log = classes.find(id);
    WEFT_TRY(channel->Restore(
        *known, log == classes.end() ? std::vector<std::vector<uint8_t>>{} : log->second));
    record_.channels.erase(known);
  }
  channels_.push_back(std::move(channel));
  // With a relay the commit waits until the relay has the metadata, because the journal may only
  // state facts.
  commit_due_ = sink_->commits().remote();
  return commit_due_ ? Status() : Commit();
}

void Output::RemoveChannel(uint64_t id) {
  (void)FinishCommit();
  std::erase_if(channels_, [id](const auto& channel) { return channel->id() == id; });
  std::erase_if(record_.channels, [id](const auto& record) { return record.id == id; });
}

Channel* Output::Find(uint64_t id) {
  for (const auto& channel : channels_) {
    if (channel->id() == id) return channel.get();
  }
  return nullptr;
}

void Output::RestoreVpids(const OutputRecord& record) {
  vpids_ = record.vpids;
  vpids_offset_ = ctf::FindVpidRange(info_.version, ctf::TraceMetadata(info_));
  const size_t size = ctf::VpidRangeText(info_.version, vpids_).size();
  const auto text = sink_->metadata().Read(vpids_offset_, size);
  if (!text) return;
  vpids_ = ctf::ParseVpidRange(info_.version, *text).value_or(vpids_);
}

// Is not a part of a commit, since a ring is added again after a restart.
void Output::AddVpid(uint32_t vpid) {
  if (!vpids_.Add(vpid)) return;
  const Status written =
      sink_->metadata().Overwrite(vpids_offset_, ctf::VpidRangeText(info_.version, vpids_));
  if (!written) NoticeStoreError(written.error());
}

Status Output::Announce(uint64_t channel, const ctf::EventClass& event, Bytes description) {
  const std::vector<uint8_t> said = ClassTable::LogEntry(event, description);
  std::vector<uint8_t> entry(sizeof(channel) + sizeof(event.id) + said.size());
  std::memcpy(entry.data(), &channel, sizeof(channel));
  std::memcpy(entry.data() + sizeof(channel), &event.id, sizeof(event.id));
  std::memcpy(entry.data() + sizeof(channel) + sizeof(event.id), said.data(), said.size());
  // First the journal: if either fails, the next class gets this number, and in the journal the
  // last one of a number counts. Metadata with two classes of one number would be invalid.
  Status status = hooks_.append_event(entry);
  if (status) status = sink_->metadata().Append(ctf::EventMetadata(info_, event));
  KillPoint("metadata");
  if (!status) NoticeStoreError(status.error());
  return status;
}

void Output::NoticeStoreError(const Error& error) {
  if (!store_failed_) hooks_.notice(error.message);
  store_failed_ = true;
}

bool Output::Round(uint64_t now_ns, uint64_t& budget) {
  bool merged = false;
  bool pending = false;
  bool pressure = false;
  bool closed = false;
  bool ended = false;
  for (const auto& channel : channels_) {
    const bool short_lag = channel->under_pressure() || channel->hurried() || channel->crowded();
    const uint64_t lag = short_lag ? kShortLag : kHorizonLag;
    merged = channel->Round(lag, budget) || merged;
    pending = pending || channel->pending();
    pressure = pressure || channel->under_pressure();
    closed = closed || channel->closed();
    ended = ended || channel->holds_ended_rings();
  }
  if (committing_ && sink_->commits().Done()) (void)FinishCommit();
  if (commit_due_ && !committing_ && sink_->commits().Done()) (void)Commit();
  if (journal_due_ && !committing_ && now_ns - journal_tried_ns_ >= kJournalRetry) {
    journal_tried_ns_ = now_ns;
    (void)WriteJournal();
  }
  if (!pending) {
    pending_since_ns_ = 0;
    // With everything in the journal, the promises of the channels hold behind what is stored.
    if (!committing_ && !journal_due_) sink_->Promise(PromiseNs());
    return merged;
  }
  if (pending_since_ns_ == 0) pending_since_ns_ = now_ns;
  const uint64_t most = sink_->commits().remote() ? kMaxRelayPacketAge : kMaxPacketAge;
  if (pressure || (ended && !committing_)) {
    (void)StartCommit();
  } else if (closed || now_ns - pending_since_ns_ >= most) {
    (void)Commit();
  }
  return merged;
}

uint64_t Output::PromiseNs() const {
  uint64_t promise = channels_.empty() ? 0 : UINT64_MAX;
  for (const auto& channel : channels_) promise = std::min(promise, channel->PromiseNs());
  return promise;
}

void Output::Report() {
  ipc::ChannelCounts sum;
  for (const auto& channel : channels_) {
    const ipc::ChannelCounts counts = channel->Counts();
    for (const auto& [reason, count] : counts.discarded) sum.discarded[reason] += count;
    for (const auto& [reason, count] : counts.lost) sum.lost[reason] += count;
  }
  sink_->Report(sum);
}

Status Output::StartCommit() {
  const auto short_of_room = [](const auto& channel) { return channel->short_of_room(); };
  const bool behind =
      writing() && !sink_->commits().Done() && std::ranges::any_of(channels_, short_of_room);
  Status finished = FinishCommit();
  if (committing_) return finished;
  if (behind) sink_->commits().FallBehind();
  KillPoint("before_packets");
  next_ = {.name = name_,
           .metadata_bytes = sink_->metadata().size(),
           .vpids = vpids_,
           .channels = record_.channels};
  // Everything older is in the packets of this commit, or in earlier ones.
  sealed_promise_ns_ = PromiseNs();
  for (const auto& channel : channels_) channel->Seal();
  sink_->commits().Start([this] {
    for (const auto& channel : channels_) {
      channel->Write();
      KillPoint("packets");
    }
  });
  committing_ = true;
  commit_due_ = false;
  pending_since_ns_ = 0;
  return finished;
}

Status Output::FinishCommit() {
  if (!committing_) return {};
  if (!sink_->commits().Wait()) return Fail(ErrorCode::kTimeout, name_ + ": not acknowledged yet");
  committing_ = false;
  for (const auto& channel : channels_) {
    const Status written = channel->Settle(next_.channels.emplace_back());
    if (!written) NoticeStoreError(written.error());
  }
  committed_.clear();
  Encode(next_, committed_);
  KillPoint("before_journal");
  return WriteJournal();
}

Status Output::WriteJournal() {
  Status written = hooks_.write_journal();
  if (!written) {
    if (!journal_due_)
      hooks_.notice(
          written.error().message +
          ": events wait in their rings until the file system of weft's journals has room");
    journal_due_ = true;
    for (const auto& channel : channels_) channel->EndCommit();
    return written;
  }
  journal_due_ = false;
  KillPoint("journal");
  for (const auto& channel : channels_) channel->Acknowledge();
  KillPoint("tails");
  sink_->Promise(sealed_promise_ns_);
  return {};
}

Status Output::Commit() {
  const Status started = StartCommit();
  WEFT_TRY(FinishCommit());
  return started;
}

Status Output::Sync() {
  WEFT_TRY(FinishCommit());
  return sink_->Sync();
}

}  // namespace weft::consumer
