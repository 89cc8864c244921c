// SPDX-License-Identifier: Apache-2.0
// See simulation.h.
#include "lib/stream/testing/simulation.h"

#include <algorithm>
#include <cstring>

namespace weft::stream::testing {
namespace {

// Returns a fragment of metadata at `offset`; equal for every call.
std::string FragmentAt(uint64_t offset) { return "at " + std::to_string(offset) + "\n\n"; }

Bytes AsBytes(std::string_view text) {
  return {reinterpret_cast<const uint8_t*>(text.data()), text.size()};
}

}  // namespace

Simulation::Simulation(uint64_t seed, const Network& network) : random_(seed), network_(network) {
  StartNode();
}

void Simulation::StartNode() {
  sender_ = std::make_unique<Sender>(Hello{
      .node = "n", .kubernetes_namespace = "ns", .trace = "t", .trace_uid = "u", .ticket = ""});
  trace_ =
      sender_->AddTrace({.pod = "p", .pod_uid = "", .container = "c", .uuid = "id", .path = "ust"},
                        journal_.metadata);
  for (uint32_t i = 0; i < kStreams; i++) {
    streams_[i] = sender_->AddStream(trace_, "user", i, journal_.next[i], journal_.events[i]);
  }
  packets_.clear();
  committing_ = false;
  connected_ = false;
}

void Simulation::Connect() {
  session_ = Session();
  session_.receiver = std::make_unique<Receiver>(
      archive_, ++sessions_,
      network_.datagrams ? Receiver::Data::kDatagrams : Receiver::Data::kInOrder);
  sender_->Connected();
  connected_ = true;
  connections++;
}

void Simulation::Disconnect(bool old_lives_on) {
  if (!connected_) return;
  sender_->Disconnected();
  connected_ = false;
  if (old_lives_on) old_.push_back(std::move(session_));
  session_ = Session();
}

void Simulation::TryCommit() {
  if (committing_) {
    if (!sender_->all_stored(trace_)) return;
    journal_ = next_;
    packets_.clear();
    committing_ = false;
    sender_->Promise(trace_, journal_.events[0] + 1);
  }
  if (!Chance(0.3)) return;
  next_ = journal_;
  if (Chance(0.2)) {
    const std::string fragment = FragmentAt(next_.metadata);
    sender_->WriteMetadata(trace_, next_.metadata, fragment);
    next_.metadata += fragment.size();
  }
  for (int i = 0; i < kStreams; i++) {
    const auto count = static_cast<uint32_t>(Some(emitted_[i] - next_.events[i]));
    if (count == 0) continue;
    std::vector<uint8_t>& packet = packets_.emplace_back(count * sizeof(uint64_t));
    for (uint32_t k = 0; k < count; k++) {
      const uint64_t number = next_.events[i] + k;
      std::memcpy(packet.data() + k * sizeof(number), &number, sizeof(number));
    }
    sender_->Put(streams_[i], count, packet);
    next_.events[i] += count;
    next_.next[i]++;
  }
  committing_ = true;
}

void Simulation::NodeWork() {
  if (faults_) {
    for (uint64_t& emitted : emitted_) emitted += random_() % 20;
  }
  TryCommit();
  if (!connected_) {
    if (Chance(0.2)) Connect();
    return;
  }
  std::string& in = session_.to_node.bytes;
  const size_t n = Some(in.size());
  const Status received = sender_->ReceiveControl(AsBytes(in).first(n));
  in.erase(0, n);
  if (!received) return Disconnect(Chance(0.5));
  if (sender_->wants_data() && Chance(0.5)) {
    sender_->DataConnected();
    session_.has_data = true;
  }
  SendData();
  if (Chance(0.1)) sender_->SendSent();
  if (Chance(0.1)) sender_->SendBeacons();
  std::string& out = sender_->control_out();
  const size_t sent = Some(out.size());
  session_.to_relay.bytes.append(out, 0, sent);
  out.erase(0, sent);
}

void Simulation::SendData() {
  const Sender::Out out = sender_->NextData();
  if (out.front.empty() && out.packet.empty()) return;
  std::string bytes(out.front.begin(), out.front.end());
  bytes.append(out.packet.begin(), out.packet.end());
  if (!network_.datagrams) bytes.resize(Some(bytes.size()));
  sender_->DataSent(bytes.size());
  if (!network_.datagrams) {
    session_.data.bytes += bytes;
    return;
  }
  if (bytes.size() <= sizeof(weft_stream_hello)) return;
  HeaderBytes front;
  std::memcpy(front.data(), bytes.data(), front.size());
  const auto header = DecodeHeader(front);
  assert(header);
  const Datagram datagram{*header,
                          {bytes.begin() + static_cast<ptrdiff_t>(front.size()), bytes.end()}};
  if (faults_ && Chance(network_.loss)) return;
  session_.datagrams.push_back(datagram);
  if (Chance(network_.again)) session_.datagrams.push_back(datagram);
}

void Simulation::RelayDatagram(Session& session) {
  if (session.datagrams.empty()) return;
  const size_t which = random_() % session.datagrams.size();
  std::swap(session.datagrams[which], session.datagrams.front());
  const Datagram datagram = std::move(session.datagrams.front());
  session.datagrams.pop_front();
  session.broken = !session.receiver->ReceivePacket(datagram.header, datagram.packet);
}

void Simulation::RelayData(Session& session) {
  std::string& in = session.data.bytes;
  if (session.reader == nullptr) {
    HelloBytes hello;
    if (in.size() < hello.size()) return;
    std::memcpy(hello.data(), in.data(), hello.size());
    in.erase(0, hello.size());
    session.reader = std::make_unique<PacketReader>(DecodeHello(hello)->header_size);
  }
  for (size_t left = Some(in.size()); left > 0 && !session.broken;) {
    const std::span<uint8_t> room = session.reader->Room();
    const size_t n = std::min(left, room.size());
    std::memcpy(room.data(), in.data(), n);
    in.erase(0, n);
    left -= n;
    const auto complete = session.reader->Received(n);
    assert(complete);
    if (!*complete) continue;
    session.broken =
        !session.receiver->ReceivePacket(session.reader->header(), session.reader->packet());
  }
}

void Simulation::RelayWork(Session& session) {
  if (session.receiver == nullptr || session.broken) return;
  // Either first: they are two connections.
  const bool data_first = Chance(0.5);
  const auto data = [&] { network_.datagrams ? RelayDatagram(session) : RelayData(session); };
  if (data_first) data();
  if (session.broken) return;
  std::string& in = session.to_relay.bytes;
  const size_t n = Some(in.size());
  session.broken = !session.receiver->ReceiveControl(AsBytes(in).first(n));
  in.erase(0, n);
  if (!data_first && !session.broken) data();
  session.receiver->Flush();
  std::string& out = session.receiver->control_out();
  const size_t sent = Some(out.size());
  session.to_node.bytes.append(out, 0, sent);
  out.erase(0, sent);
}

void Simulation::Faults() {
  if (Chance(network_.disconnect)) Disconnect(Chance(0.5));
  if (Chance(network_.relay_death)) {
    Disconnect(false);
    old_.clear();
    relay_deaths++;
  }
  if (Chance(network_.node_death)) {
    Disconnect(Chance(0.5));
    StartNode();
    node_deaths++;
  }
  if (!old_.empty() && Chance(0.02)) old_.erase(old_.begin());
}

bool Simulation::Run(int steps) {
  const auto step = [this] {
    if (faults_) Faults();
    NodeWork();
    RelayWork(session_);
    for (Session& old : old_) RelayWork(old);
    if (session_.broken) Disconnect(false);
    duplicates = std::max(duplicates, sender_->resent());
  };
  for (int i = 0; i < steps; i++) step();
  faults_ = false;
  for (int i = 0; i < 200'000; i++) {
    step();
    const bool all = std::equal(emitted_, emitted_ + kStreams, journal_.events);
    if (all && !committing_) return true;
  }
  return false;
}

std::string Simulation::Check() const {
  const auto found = archive_.traces.find("id");
  if (found == archive_.traces.end()) return "no trace";
  std::string metadata;
  while (metadata.size() < journal_.metadata) metadata += FragmentAt(metadata.size());
  if (found->second.metadata != metadata) return "metadata";
  for (uint32_t i = 0; i < kStreams; i++) {
    uint64_t number = 0;
    uint64_t seq = 0;
    const auto stream = found->second.streams.find({"user", i});
    if (stream == found->second.streams.end()) return "no stream";
    for (const auto& packet : stream->second) {
      if (packet.seq != seq++) return "packet numbers";
      if (packet.bytes.size() != packet.events * sizeof(uint64_t)) return "count of events";
      for (size_t at = 0; at < packet.bytes.size(); at += sizeof(uint64_t)) {
        uint64_t value = 0;
        std::memcpy(&value, packet.bytes.data() + at, sizeof(value));
        if (value != number++) return "event " + std::to_string(number - 1);
      }
    }
    if (number != emitted_[i]) return "events are missing at the end";
  }
  return archive_.lost == 0 ? "" : "packets were given up";
}

}  // namespace weft::stream::testing
