// SPDX-License-Identifier: Apache-2.0
// A pod's patch, container by container.
#include "ust-injector/webhook/mutation.h"

#include <array>
#include <utility>

#include "lib/kube/json.h"
#include "ust-injector/webhook/preload.h"

namespace weft::webhook {
namespace {

using kube::At;
using kube::TextAt;

const Json& ListAt(const Json& object, std::initializer_list<std::string_view> path) {
  static const Json& none = *new Json(Json::array());
  const Json* list = At(object, path);
  return list != nullptr && list->is_array() ? *list : none;
}

// Names with commas and blanks between.
std::set<std::string> SplitNames(std::string_view text) {
  std::set<std::string> names;
  while (!text.empty()) {
    const std::size_t end = text.find_first_of(", \t");
    if (end != 0) names.emplace(text.substr(0, end));
    if (end == std::string_view::npos) break;
    text.remove_prefix(end + 1);
  }
  return names;
}

// Returns the architecture that the pod will run on; "": nothing tells.
std::string Architecture(const Json& pod, const ClusterFacts& cluster) {
  std::string selected = TextAt(pod, {"spec", "nodeSelector", "kubernetes.io/arch"});
  if (!selected.empty()) return selected;
  if (cluster.node_architectures.size() == 1) return *cluster.node_architectures.begin();
  return "";
}

bool IsForWindows(const Json& pod) {
  return TextAt(pod, {"spec", "os", "name"}) == "windows" ||
         TextAt(pod, {"spec", "nodeSelector", "kubernetes.io/os"}) == "windows";
}

LeftAlone LibraryMissing(const ClusterFacts& cluster) {
  if (!cluster.untrusted.empty())
    return {"LibraryNotTrusted",
            "the content of the ConfigMap " + cluster.untrusted +
                " is not that of weft's library; the controller replaces it, and a pod made later, "
                "or restarted, will have the library"};
  return {"LibraryMissing",
          "the library's ConfigMap is not in this namespace yet; a pod made later, or restarted, "
          "will have it"};
}

std::optional<LeftAlone> WhyNot(const Json& pod, const ClusterFacts& cluster) {
  if (TextAt(pod, {"metadata", "labels", kInjectLabel}) == "disabled")
    return LeftAlone{"Disabled", "the pod's label says so", /*quiet=*/true};
  if (IsForWindows(pod)) return LeftAlone{"Windows", "the pod is for Windows", /*quiet=*/true};
  if (!cluster.library) return LibraryMissing(cluster);
  const std::string architecture = Architecture(pod, cluster);
  if (architecture.empty())
    return LeftAlone{"ArchitectureUnknown",
                     "nodes have several architectures; select one with "
                     "nodeSelector kubernetes.io/arch"};
  if (!cluster.library->architectures.contains(architecture))
    return LeftAlone{"ArchitectureUnsupported", "weft has no library for " + architecture};
  return std::nullopt;
}

Json MakeVolume(const Library& library, const std::string& architecture) {
  const Json item = {{"key", std::string(kube::kLibraryKeyPrefix) + architecture},
                     {"path", kube::kLibraryFile}};
  return {{"name", kVolume},
          {"configMap",
           {{"name", library.config_map}, {"optional", true}, {"items", Json::array({item})}}}};
}

// Returns the pod's volume with weft's name; nullptr: none.
const Json* FindVolume(const Json& pod) {
  for (const Json& volume : ListAt(pod, {"spec", "volumes"})) {
    if (TextAt(volume, {"name"}) == kVolume) return &volume;
  }
  return nullptr;
}

// Did weft make the volume, for this or another version of the library?
bool IsOurs(const Json& volume) {
  return TextAt(volume, {"configMap", "name"}).starts_with(kube::kLibraryPrefix);
}

bool IsBelowFolder(std::string_view path) {
  while (path.size() > 1 && path.ends_with('/')) path.remove_suffix(1);
  return path == kFolder || path.starts_with(std::string(kFolder) + "/");
}

// Returns the operations that add the mount; none if it is there.
std::expected<Json, LeftAlone> PatchMounts(const Json& container, const std::string& path) {
  const Json* given = At(container, {"volumeMounts"});
  for (const Json& mount : ListAt(container, {"volumeMounts"})) {
    if (!IsBelowFolder(TextAt(mount, {"mountPath"}))) continue;
    if (TextAt(mount, {"name"}) == kVolume) return Json::array();
    return std::unexpected(
        LeftAlone{"FolderInUse", "something else is mounted at " + std::string(kFolder)});
  }
  const Json mount = {{"name", kVolume}, {"mountPath", kFolder}, {"readOnly", true}};
  if (given == nullptr || !given->is_array())
    return Json::array(
        {{{"op", "add"}, {"path", path + "/volumeMounts"}, {"value", Json::array({mount})}}});
  return Json::array({{{"op", "add"}, {"path", path + "/volumeMounts/-"}, {"value", mount}}});
}

std::expected<Json, LeftAlone> PatchContainer(const Json& container, const std::string& path,
                                              const PreloadOptions& options) {
  auto mounts = PatchMounts(container, path);
  if (!mounts) return mounts;
  auto env = PatchEnvironment(container, path, options);
  if (!env) return env;
  Json out = std::move(*mounts);
  for (Json& operation : *env) out.push_back(std::move(operation));
  return out;
}

// Does the library go into this container? If the pod names containers, only into those; else into
// all that run while the pod does. An init container must be named or be a sidecar, since the
// others run before the pod starts.
bool IsMeant(const Json& container, bool init, const std::set<std::string>& named) {
  if (!named.empty()) return named.contains(TextAt(container, {"name"}));
  return !init || TextAt(container, {"restartPolicy"}) == "Always";
}

PreloadOptions ReadOptions(const Json& pod, const Library& library) {
  return {.from_env = TextAt(pod, {"metadata", "annotations", kPreloadFromEnvAnnotation}) == "true",
          .of_image = TextAt(pod, {"metadata", "annotations", kPreloadAnnotation}),
          .default_source = library.sets_preload ? library.config_map : ""};
}

void PatchContainers(const Json& pod, const char* field, const PreloadOptions& options,
                     Mutation& out) {
  const std::set<std::string> named =
      SplitNames(TextAt(pod, {"metadata", "annotations", kContainersAnnotation}));
  const bool init = std::string_view(field) == "initContainers";
  const Json& containers = ListAt(pod, {"spec", field});
  for (std::size_t i = 0; i < containers.size(); ++i) {
    const Json& container = containers[i];
    const std::string name = TextAt(container, {"name"});
    if (name.empty() || !IsMeant(container, init, named)) continue;
    const std::string path = std::string("/spec/") + field + "/" + std::to_string(i);
    auto patch = PatchContainer(container, path, options);
    if (!patch) {
      patch.error().note = "container " + name + ": " + patch.error().note;
      out.left_alone.push_back(std::move(patch.error()));
      continue;
    }
    if (!patch->empty()) ++out.containers;
    for (Json& operation : *patch) out.patch.push_back(std::move(operation));
  }
}

Json VolumeOperation(const Json& pod, const Json& volume) {
  const Json* given = At(pod, {"spec", "volumes"});
  if (given != nullptr && given->is_array())
    return {{"op", "add"}, {"path", "/spec/volumes/-"}, {"value", volume}};
  return {{"op", "add"}, {"path", "/spec/volumes"}, {"value", Json::array({volume})}};
}

}  // namespace

Mutation MutatePod(const Json& pod, const ClusterFacts& cluster) {
  Mutation out;
  std::optional<LeftAlone> why = WhyNot(pod, cluster);
  if (why || !cluster.library) {
    out.left_alone.push_back(std::move(why).value_or(LibraryMissing(cluster)));
    return out;
  }
  const Json* volume = FindVolume(pod);
  if (volume != nullptr && !IsOurs(*volume)) {
    out.left_alone.push_back({"VolumeInUse", "the pod has a volume of its own named weft"});
    return out;
  }
  const PreloadOptions options = ReadOptions(pod, *cluster.library);
  PatchContainers(pod, "initContainers", options, out);
  PatchContainers(pod, "containers", options, out);
  if (out.patch.empty() || volume != nullptr) return out;
  const Json made = MakeVolume(*cluster.library, Architecture(pod, cluster));
  out.patch.insert(out.patch.begin(), VolumeOperation(pod, made));
  return out;
}

}  // namespace weft::webhook
