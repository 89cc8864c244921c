// SPDX-License-Identifier: Apache-2.0
// Events as the API has them.
#include "lib/kube/event.h"

#include <array>
#include <cstdio>

#include "lib/kube/client.h"

namespace weft::kube {
namespace {

constexpr std::size_t kNoteBytes = 1024;
constexpr std::size_t kNameBytes = 200;  // of 253, with room for what makes it unique

std::string Cut(const std::string& text, std::size_t most) {
  if (text.size() <= most) return text;
  std::size_t end = most;
  while (end > 0 && (static_cast<unsigned char>(text[end]) & 0xc0) == 0x80) --end;  // UTF-8
  return text.substr(0, end);
}

}  // namespace

std::string EventNamespace(const EventNote& note) {
  return note.regarding.name_space.empty() ? "default" : note.regarding.name_space;
}

Json MakeEvent(const EventNote& note, WallTime now, std::uint64_t unique) {
  std::array<char, 24> suffix = {};
  std::snprintf(suffix.data(), suffix.size(), ".%016llx", static_cast<unsigned long long>(unique));
  const std::string name_space = EventNamespace(note);
  const ObjectReference& about = note.regarding;
  Json regarding = {{"apiVersion", about.api_version}, {"kind", about.kind}, {"name", about.name}};
  if (!about.name_space.empty()) regarding["namespace"] = about.name_space;
  if (!about.uid.empty()) regarding["uid"] = about.uid;
  return {{"apiVersion", "events.k8s.io/v1"},
          {"kind", "Event"},
          {"metadata",
           {{"name", Cut(about.name, kNameBytes) + suffix.data()}, {"namespace", name_space}}},
          {"eventTime", FormatTime(now, /*micro=*/true)},
          {"type", note.warning ? "Warning" : "Normal"},
          {"reason", note.reason},
          {"action", note.action},
          {"note", Cut(note.note, kNoteBytes)},
          {"regarding", std::move(regarding)},
          {"reportingController", note.controller},
          {"reportingInstance", note.instance}};
}

Status PostEvent(Client& client, const EventNote& note, WallTime now, std::uint64_t unique) {
  const auto posted = client.Create({.resource = kEvents, .name_space = EventNamespace(note)},
                                    MakeEvent(note, now, unique));
  return posted ? Status() : std::unexpected(posted.error());
}

}  // namespace weft::kube
