// SPDX-License-Identifier: Apache-2.0
// See connection_budget.h.
#include "lib/http/connection_budget.h"

#include <utility>

namespace weft::http {

bool ConnectionBudget::Admit(Guest& guest, const std::string& peer, std::size_t bytes) {
  Evictions evictions;
  const std::lock_guard<std::mutex> lock(mutex_);
  if (!MakeRoom(guest, 1, bytes, evictions)) return false;
  guest.peer_ = peer;
  guest.has_place_ = true;
  guest.at_ = guests_.insert(guests_.end(), &guest);
  shares_[peer].places++;
  Take(guest, bytes);
  return true;
}

bool ConnectionBudget::Reserve(Guest& guest, std::size_t bytes) {
  Evictions evictions;
  const std::lock_guard<std::mutex> lock(mutex_);
  if (!guest.has_place_ || !MakeRoom(guest, 0, bytes, evictions)) return false;
  Take(guest, bytes);
  return true;
}

void ConnectionBudget::Rest(Guest& guest, std::size_t kept) {
  const std::lock_guard<std::mutex> lock(mutex_);
  if (!guest.has_place_) return;
  if (guest.bytes_ > kept) GiveBack(guest, guest.bytes_ - kept);
  guests_.splice(guests_.end(), guests_, guest.at_);
}

bool ConnectionBudget::BeginAnswer(Guest& guest) {
  const std::lock_guard<std::mutex> lock(mutex_);
  guest.is_busy_ = guest.has_place_;
  return guest.has_place_;
}

void ConnectionBudget::EndAnswer(Guest& guest) {
  const std::lock_guard<std::mutex> lock(mutex_);
  guest.is_busy_ = false;
  // Now it is the peer that has to do something: to take the answer.
  if (guest.has_place_) guests_.splice(guests_.end(), guests_, guest.at_);
}

void ConnectionBudget::Leave(Guest& guest) {
  const std::lock_guard<std::mutex> lock(mutex_);
  Remove(guest);
}

std::size_t ConnectionBudget::used_places() const {
  const std::lock_guard<std::mutex> lock(mutex_);
  return guests_.size();
}

std::size_t ConnectionBudget::used_bytes() const {
  const std::lock_guard<std::mutex> lock(mutex_);
  return used_bytes_;
}

// Closes others until `guest` can have so much; none, where it can never have it.
bool ConnectionBudget::MakeRoom(const Guest& guest, std::size_t places, std::size_t bytes,
                                Evictions& evictions) {
  if (guest.bytes_ + bytes > bytes_) return false;
  for (;;) {
    const bool lacks_places = guests_.size() + places > places_;
    if (!lacks_places && used_bytes_ + bytes <= bytes_) return true;
    Guest* victim = nullptr;
    std::size_t most = 0;
    for (Guest* other : guests_) {
      if (other == &guest || other->is_busy_) continue;
      const Share& share = shares_[other->peer_];
      const std::size_t holds = lacks_places ? share.places : share.bytes;
      if (victim != nullptr && holds <= most) continue;
      victim = other;
      most = holds;
    }
    if (victim == nullptr) return false;
    Remove(*victim);
    if (auto evict = victim->Evict()) evictions.list.push_back(std::move(evict));
  }
}

void ConnectionBudget::Take(Guest& guest, std::size_t bytes) {
  guest.bytes_ += bytes;
  used_bytes_ += bytes;
  shares_[guest.peer_].bytes += bytes;
}

void ConnectionBudget::GiveBack(Guest& guest, std::size_t bytes) {
  guest.bytes_ -= bytes;
  used_bytes_ -= bytes;
  shares_[guest.peer_].bytes -= bytes;
}

void ConnectionBudget::Remove(Guest& guest) {
  if (!guest.has_place_) return;
  GiveBack(guest, guest.bytes_);
  guest.has_place_ = false;
  guests_.erase(guest.at_);
  const auto share = shares_.find(guest.peer_);
  if (--share->second.places == 0) shares_.erase(share);
}

}  // namespace weft::http
