// SPDX-License-Identifier: Apache-2.0
// What the controller remembers of the cluster's objects: of each object only the fields that
// decisions need. Thread-safety: plain values.
#ifndef WEFT_CONTROLLER_RECONCILE_FACTS_H_
#define WEFT_CONTROLLER_RECONCILE_FACTS_H_

#include <compare>
#include <map>
#include <set>
#include <string>

#include "lib/kube/json.h"

namespace weft::controller {

using kube::Json;

struct ObjectKey {
  std::string name_space;
  std::string name;
  auto operator<=>(const ObjectKey&) const = default;
};

ObjectKey KeyOf(const Json& object);

struct PodFacts {
  std::string name;
  std::string node;  // "": not scheduled yet
  std::map<std::string, std::string> labels;
  std::map<std::string, bool> containers;  // name -> the library is in it
  std::set<std::string> ephemeral;         // names of the containers that `kubectl debug` added
  std::string restart;       // "deployment/shop": what to restart to have it made anew; "": nothing
  bool has_library = false;  // weft's volume
  bool wants_library = false;    // its own label says enabled
  bool refuses_library = false;  // its own label says disabled
  std::string made;              // RFC 3339
  bool is_ready = false;
  bool is_over = false;    // Succeeded or Failed
  bool is_ending = false;  // it is being deleted
};

PodFacts ReadPod(const Json& pod);

struct NodeFacts {
  std::map<std::string, std::string> labels;
  bool operator==(const NodeFacts&) const = default;
};

NodeFacts ReadNode(const Json& node);

struct NamespaceFacts {
  bool is_known = false;  // false: its informer has not shown it yet, and the rest says nothing
  std::map<std::string, std::string> labels;
  bool wants_library = false;    // label weft.dev/inject: enabled
  bool refuses_library = false;  // the same label: disabled
  bool restarts_missed = false;  // annotation weft.dev/restart-missed: "true"
  bool is_ending = false;
};

NamespaceFacts ReadNamespace(const Json& name_space);

}  // namespace weft::controller

#endif  // WEFT_CONTROLLER_RECONCILE_FACTS_H_
