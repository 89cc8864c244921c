// SPDX-License-Identifier: Apache-2.0
// See class_table.h.
#include "node-agent/consumer/class_table.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "lib/event/description.h"
#include "node-agent/consumer/limits.h"

namespace weft::consumer {
namespace {

constexpr uint32_t kTextBits = 8 * sizeof(ctf::EmptyTexts);

std::string_view AsText(Bytes bytes) {
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

}  // namespace

Result<std::unique_ptr<ctf::EventClass>> ClassTable::Make(Bytes description,
                                                          ctf::EmptyTexts texts) const {
  WEFT_ASSIGN(const EventDescription parsed, EventDescription::Parse(description));
  WEFT_ASSIGN(ctf::EventClass event, ctf::MakeEventClass(size(), *channel_, parsed));
  event.empty_texts = texts;
  return std::make_unique<ctf::EventClass>(std::move(event));
}

const ctf::EventClass* ClassTable::Keep(std::unique_ptr<ctf::EventClass> made, Bytes description) {
  bytes_ += description.size();
  return classes_.emplace_back(std::move(made)).get();
}

Classified ClassTable::Find(Bytes description, const Announce& announce) {
  const auto found = by_description_.find(AsText(description));
  if (found != by_description_.end()) return found->second;
  Classified result{.known = true};
  if (std::max(by_description_.size(), classes_.size()) >= kMaxClassesPerChannel ||
      bytes_ + description.size() > kMaxClassBytesPerChannel) {
    result.lost = kLostLimit;
    return result;
  }
  auto made = Make(description, 0);
  if (made) {
    if (announce(**made, description)) {
      result.event = Keep(std::move(*made), description);
    } else {
      // A full disk may have room later: tried again with the next ring that has this event.
      result.lost = kLostStore;
      return result;
    }
  } else {
    bytes_ += description.size();
  }
  const auto kept = by_description_.emplace(AsText(description), result).first;
  if (result.event != nullptr) variants_[result.event->id].description = kept->first;
  return result;
}

void ClassTable::NoticeOnce(const ctf::EventClass& event, Variants& variants) {
  if (std::exchange(variants.noticed, true) || notices_++ >= kMaxTextNoticesPerChannel) return;
  notice_("event " + event.name +
          ": too many of its texts are empty in turn; where one is empty, babeltrace2 before 2.0.5 "
          "may show an earlier event's text: read the trace with weft view or a later babeltrace2, "
          "or record in CTF 2");
}

const ctf::EventClass& ClassTable::WithEmptyTexts(const ctf::EventClass& event,
                                                  ctf::EmptyTexts texts, const Announce& announce) {
  Variants& variants = variants_.at(event.id);
  // Texts from the last bit on share that bit (lib/ctf/plan.h).
  const bool shared = channel_->context_plan.texts + event.plan.texts > kTextBits;
  if (shared && (texts & ctf::EmptyTextBit(kTextBits - 1)) != 0) NoticeOnce(event, variants);
  const auto found = variants.classes.find(texts);
  if (found != variants.classes.end()) return *found->second;
  const std::string_view text = variants.description;
  const Bytes description{reinterpret_cast<const uint8_t*>(text.data()), text.size()};
  if (variants.classes.size() >= kMaxTextClassesPerEvent || size() >= kMaxClassesPerChannel ||
      bytes_ + description.size() > kMaxClassBytesPerChannel) {
    NoticeOnce(event, variants);
    return event;
  }
  auto made = Make(description, texts);
  // A class that cannot be announced now is not tried again for each record.
  const bool announced = made && announce(**made, description);
  const ctf::EventClass* kept = announced ? Keep(std::move(*made), description) : &event;
  variants.classes.emplace(texts, kept);
  return *kept;
}

std::vector<uint8_t> ClassTable::LogEntry(const ctf::EventClass& event, Bytes description) {
  std::vector<uint8_t> entry(description.begin(), description.end());
  if (event.empty_texts == 0) return entry;
  entry.resize(entry.size() + sizeof(event.empty_texts));
  std::memcpy(entry.data() + description.size(), &event.empty_texts, sizeof(event.empty_texts));
  return entry;
}

Status ClassTable::Restore(Bytes entry) {
  ctf::EmptyTexts texts = 0;
  uint32_t size = 0;  // a description begins with it
  if (entry.size() < sizeof(size)) return Fail(ErrorCode::kCorrupt, "journal: event log");
  std::memcpy(&size, entry.data(), sizeof(size));
  if (entry.size() == size_t{size} + sizeof(texts)) {
    std::memcpy(&texts, entry.data() + size, sizeof(texts));
    entry = entry.first(size);
  }
  WEFT_ASSIGN(std::unique_ptr<ctf::EventClass> made, Make(entry, texts));
  const auto first = by_description_.find(AsText(entry));
  if (texts != 0) {
    if (first == by_description_.end()) return Fail(ErrorCode::kCorrupt, "journal: event log");
    variants_[first->second.event->id].classes[texts] = Keep(std::move(made), entry);
    return {};
  }
  const ctf::EventClass* event = Keep(std::move(made), entry);
  const auto kept = by_description_.insert_or_assign(std::string(AsText(entry)),
                                                     Classified{.event = event, .known = true});
  variants_[event->id].description = kept.first->first;
  return {};
}

}  // namespace weft::consumer
