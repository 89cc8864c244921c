// SPDX-License-Identifier: Apache-2.0
// Events of events.k8s.io/v1, which `kubectl describe` and `kubectl get events` show.
// Thread-safety: pure functions, but for PostEvent, which is as thread-safe as its client.
#ifndef WEFT_LIB_KUBE_EVENT_H_
#define WEFT_LIB_KUBE_EVENT_H_

#include <cstdint>
#include <string>

#include "lib/base/result.h"
#include "lib/kube/json.h"
#include "lib/kube/time.h"

namespace weft::kube {

class Client;

struct ObjectReference {
  std::string api_version;
  std::string kind;
  std::string name_space;  // "": cluster-scoped
  std::string name;
  std::string uid;
};

struct EventNote {
  ObjectReference regarding;
  bool warning = false;
  std::string reason;      // CamelCase, for programs
  std::string action;      // CamelCase: what was done, or not done
  std::string note;        // for people; cut at 1024 bytes, as the API wants
  std::string controller;  // "weft.dev/controller"
  std::string instance;    // name of the pod that says so
};

// The object to create in EventNamespace(); `unique` makes its name different from others'.
Json MakeEvent(const EventNote& note, WallTime now, std::uint64_t unique);
std::string EventNamespace(const EventNote& note);
// Creates it.
Status PostEvent(Client& client, const EventNote& note, WallTime now, std::uint64_t unique);

}  // namespace weft::kube

#endif  // WEFT_LIB_KUBE_EVENT_H_
