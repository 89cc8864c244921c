// SPDX-License-Identifier: Apache-2.0
// See class_table.h.
#include "node-agent/consumer/class_table.h"

#include "lib/event/description.h"
#include "node-agent/consumer/limits.h"

namespace weft::consumer {
namespace {

std::string_view AsText(Bytes bytes) {
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

}  // namespace

Result<std::unique_ptr<ctf::EventClass>> ClassTable::Make(Bytes description) const {
  WEFT_ASSIGN(const EventDescription parsed, EventDescription::Parse(description));
  WEFT_ASSIGN(ctf::EventClass event, ctf::MakeEventClass(size(), *channel_, parsed));
  return std::make_unique<ctf::EventClass>(std::move(event));
}

Classified ClassTable::Find(Bytes description, const Announce& announce) {
  const auto found = by_description_.find(AsText(description));
  if (found != by_description_.end()) return found->second;
  Classified result{.known = true};
  if (by_description_.size() >= kMaxClassesPerChannel ||
      bytes_ + description.size() > kMaxClassBytesPerChannel) {
    result.lost = kLostLimit;
    return result;
  }
  auto made = Make(description);
  if (made) {
    if (announce(**made, description)) {
      result.event = made->get();
      classes_.push_back(std::move(*made));
    } else {
      // A full disk may have room later: tried again with the next ring that has this event.
      result.lost = kLostStore;
      return result;
    }
  }
  bytes_ += description.size();
  by_description_.emplace(AsText(description), result);
  return result;
}

Status ClassTable::Restore(Bytes description) {
  WEFT_ASSIGN(std::unique_ptr<ctf::EventClass> made, Make(description));
  by_description_[std::string(AsText(description))] = {.event = made.get(), .known = true};
  bytes_ += description.size();
  classes_.push_back(std::move(made));
  return {};
}

}  // namespace weft::consumer
