// SPDX-License-Identifier: Apache-2.0
// See follower.h.
#include "cli/kubectl/follower.h"

#include <sys/mman.h>

#include <algorithm>
#include <limits>
#include <tuple>

#include "cli/kubectl/relay_path.h"

namespace weft::kubectl {
namespace {

std::string NameOf(const std::string& folder, const std::string& stream) {
  return folder.empty() ? stream : folder + "/" + stream;
}

}  // namespace

void Follower::SetMetadata(const std::string& folder, std::string_view text) {
  auto parsed = ctf::ParseMetadata(text);
  const std::string where = folder + "/metadata: ";
  if (!parsed) {
    problems_.push_back(where + parsed.error().message);
    return;
  }
  for (const std::string& problem : parsed->problems) problems_.push_back(where + problem);
  classes_.push_back(std::make_unique<const ctf::TraceClass>(std::move(*parsed)));
  traces_[folder] = classes_.back().get();
}

Follower::Stream& Follower::Get(const std::string& folder, const std::string& stream) {
  const auto [at, is_new] = streams_.try_emplace(NameOf(folder, stream));
  if (is_new) at->second.number = streams_.size();
  if (is_new) until_.reset();
  return at->second;
}

void Follower::SetSafe(const std::string& folder, const std::string& stream,
                       std::uint64_t time_ns) {
  Stream& of = Get(folder, stream);
  until_.reset();
  of.has_ended = false;
  constexpr auto kMost = static_cast<std::uint64_t>(std::numeric_limits<std::int64_t>::max());
  if (time_ns != 0)
    of.safe_ns = std::max(of.safe_ns, static_cast<std::int64_t>(std::min(time_ns, kMost)));
}

void Follower::SetEnded(const std::string& folder, const std::string& stream) {
  Get(folder, stream).has_ended = true;
  until_.reset();
}

std::int64_t Follower::Until() {
  if (until_) return *until_;
  until_ = std::numeric_limits<std::int64_t>::max();
  for (const auto& [name, stream] : streams_)
    if (stream.is_idle && !stream.has_ended) until_ = std::min(*until_, stream.safe_ns);
  return *until_;
}

bool Follower::IsIdle(const std::string& folder, const std::string& stream) const {
  const auto found = streams_.find(NameOf(folder, stream));
  return found == streams_.end() || found->second.is_idle;
}

Status Follower::Add(const std::string& folder, const std::string& stream,
                     std::string_view packets) {
  const std::string name = NameOf(folder, stream);
  const auto trace = traces_.find(folder);
  if (trace == traces_.end()) {
    problems_.push_back(name + ": its trace has no readable metadata; its events are not shown");
    return {};
  }
  // A file without a name: its memory is free when the packets have been read.
  UniqueFd fd(memfd_create("weft-live", MFD_CLOEXEC));
  if (!fd) return FailErrno("memfd_create");
  WEFT_TRY(WriteAt(fd.get(), packets, 0));
  Stream& to = Get(folder, stream);
  to.waiting.push_back({std::move(fd), trace->second, to.bytes, packets.size()});
  to.bytes += packets.size();
  waiting_bytes_ += packets.size();
  if (to.reader == nullptr)
    to.reader = std::make_unique<ctf::StreamReader>(*trace->second, name, UniqueFd());
  if (to.is_idle) Advance(to);
  until_.reset();
  return {};
}

// Goes to the stream's next item, and puts the stream into the heap if there is one.
void Follower::Advance(Stream& stream) {
  for (;;) {
    if (!stream.is_idle && stream.reader->Next(problems_)) {
      heap_.push_back(&stream);
      std::ranges::push_heap(heap_, [](auto* a, auto* b) { return Before(*b, *a); });
      return;
    }
    if (!stream.is_idle) waiting_bytes_ -= stream.current.bytes;
    stream.is_idle = stream.waiting.empty();
    if (stream.is_idle) {
      until_.reset();
      // Frees the memory of the packets.
      stream.reader->Continue(*stream.current.trace, UniqueFd(), stream.bytes);
      return;
    }
    Chunk next = std::move(stream.waiting.front());
    stream.waiting.pop_front();
    stream.reader->Continue(*next.trace, std::move(next.fd), next.offset);
    stream.current = std::move(next);
  }
}

bool Follower::Before(const Stream& a, const Stream& b) {
  return std::make_tuple(a.reader->item().time_ns, a.number) <
         std::make_tuple(b.reader->item().time_ns, b.number);
}

ctf::StreamReader* Follower::Next(bool all) {
  if (taken_ != nullptr) Advance(*std::exchange(taken_, nullptr));
  if (heap_.empty()) return nullptr;
  if (!all && heap_.front()->reader->item().time_ns > Until()) return nullptr;
  std::ranges::pop_heap(heap_, [](auto* a, auto* b) { return Before(*b, *a); });
  taken_ = heap_.back();
  heap_.pop_back();
  const std::int64_t time = taken_->reader->item().time_ns;
  if (taken_->reader->item().kind == ctf::ItemKind::kEvent) {
    if (last_time_ && time < *last_time_) ++late_;
    last_time_ = std::max(last_time_.value_or(time), time);
  }
  return taken_->reader.get();
}

}  // namespace weft::kubectl
