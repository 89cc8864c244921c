// SPDX-License-Identifier: Apache-2.0
// The event classes of one channel. Each different description in any of its rings gets a class,
// in the order in which the consumer sees them. It gets another class for each set of its texts
// that is empty in a record. Packets carry the ids of classes. Descriptions are a tenant's bytes:
// an invalid one gets no class, and its records are counted as lost. Owned by the channel.
// Invariant: a class never moves or changes; ids go up from 0 without a gap.
#ifndef WEFT_NODE_AGENT_CONSUMER_CLASS_TABLE_H_
#define WEFT_NODE_AGENT_CONSUMER_CLASS_TABLE_H_

#include <functional>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "lib/base/bytes.h"
#include "lib/ctf/event_class.h"
#include "node-agent/consumer/state.h"

namespace weft::consumer {

// The result for a description: a class for its records, or the reason why they are lost.
struct Classified {
  const ctf::EventClass* event = nullptr;
  LostReason lost = kLostMalformed;
  bool known = false;  // false: no description was seen
};

class ClassTable {
 public:
  // Announces a new class (metadata, journal) before any record of it is written. When it fails the
  // class is not made and its records are lost.
  using Announce = std::function<Status(const ctf::EventClass&, Bytes description)>;

  // Tells people of an event, once.
  using Notice = std::function<void(const std::string&)>;

  ClassTable(const ctf::Channel& channel, Notice notice)
      : channel_(&channel), notice_(std::move(notice)) {}

  Classified Find(Bytes description, const Announce& announce);
  // Returns the class, like `event` that Find returned, for records of which these texts are empty:
  // `event` itself where there is no room for one more, or it cannot be announced. Gives notice of
  // an event whose records it cannot all tell apart.
  const ctf::EventClass& WithEmptyTexts(const ctf::EventClass& event, ctf::EmptyTexts texts,
                                        const Announce& announce);
  // Restores a class that was announced before a restart, from LogEntry's bytes; in the order of
  // ids.
  Status Restore(Bytes entry);
  // Returns a class's entry in the log of classes: its description and its empty texts, if any.
  static std::vector<uint8_t> LogEntry(const ctf::EventClass& event, Bytes description);

  [[nodiscard]] uint32_t size() const { return static_cast<uint32_t>(classes_.size()); }

 private:
  // The classes of one event besides its first one.
  struct Variants {
    std::string_view description;  // a key of by_description_
    std::map<ctf::EmptyTexts, const ctf::EventClass*> classes;
    bool noticed = false;
  };

  Result<std::unique_ptr<ctf::EventClass>> Make(Bytes description, ctf::EmptyTexts texts) const;
  void NoticeOnce(const ctf::EventClass& event, Variants& variants);
  const ctf::EventClass* Keep(std::unique_ptr<ctf::EventClass> made, Bytes description);

  const ctf::Channel* channel_;
  Notice notice_;
  uint32_t notices_ = 0;
  std::vector<std::unique_ptr<ctf::EventClass>> classes_;
  std::map<std::string, Classified, std::less<>> by_description_;
  std::map<uint32_t, Variants> variants_;  // by the first one's id
  size_t bytes_ = 0;
};

}  // namespace weft::consumer

#endif  // WEFT_NODE_AGENT_CONSUMER_CLASS_TABLE_H_
