// SPDX-License-Identifier: Apache-2.0
// Events about pods that were left alone.
#include "ust-injector/webhook/notices.h"

#include <random>
#include <utility>

#include "lib/kube/json.h"

namespace weft::webhook {

using kube::TextAt;

kube::ObjectReference Regarding(const Json& pod, const std::string& name_space) {
  kube::ObjectReference about{.api_version = "v1", .kind = "Pod", .name_space = name_space};
  const Json* owners = kube::At(pod, {"metadata", "ownerReferences"});
  if (owners != nullptr && owners->is_array() && !owners->empty()) {
    const Json& owner = owners->front();
    about.api_version = TextAt(owner, {"apiVersion"});
    about.kind = TextAt(owner, {"kind"});
    about.name = TextAt(owner, {"name"});
    about.uid = TextAt(owner, {"uid"});
    return about;
  }
  about.name = TextAt(pod, {"metadata", "name"});
  if (!about.name.empty()) return about;
  about.name = TextAt(pod, {"metadata", "generateName"});  // "shop-"
  while (about.name.ends_with('-')) about.name.pop_back();
  return about;
}

Notices::Notices(kube::Client& client, std::string instance,
                 std::function<void(const Error&)> on_error)
    : client_(client),
      instance_(std::move(instance)),
      on_error_(std::move(on_error)),
      thread_([this](const std::stop_token& stop) { Run(stop); }) {}

void Notices::Post(const Json& pod, const std::string& name_space, const LeftAlone& left_alone) {
  kube::EventNote note{.regarding = Regarding(pod, name_space),
                       .warning = true,
                       .reason = left_alone.reason,
                       .action = "Inject",
                       .note = "not traced: " + left_alone.note,
                       .controller = "weft.dev/webhook",
                       .instance = instance_};
  if (note.regarding.name.empty()) return;
  const std::string key =
      name_space + "/" + note.regarding.kind + "/" + note.regarding.name + "/" + note.reason;
  const auto now = std::chrono::steady_clock::now();
  const std::lock_guard<std::mutex> lock(mutex_);
  if (const auto said = said_.find(key); said != said_.end() && now - said->second < kSilence)
    return;
  if (waiting_.size() >= kMaxNotices) return;
  if (said_.size() >= kMaxRemembered) said_.clear();
  said_[key] = now;
  waiting_.push_back(std::move(note));
  changed_.notify_one();
}

void Notices::Run(const std::stop_token& stop) {
  std::mt19937_64 random(std::random_device{}());
  for (;;) {
    kube::EventNote note;
    {
      std::unique_lock<std::mutex> lock(mutex_);
      if (!changed_.wait(lock, stop, [this] { return !waiting_.empty(); })) return;
      note = std::move(waiting_.front());
      waiting_.pop_front();
    }
    const Status posted = PostEvent(client_, note, std::chrono::system_clock::now(), random());
    if (!posted) on_error_(posted.error());
  }
}

}  // namespace weft::webhook
