// SPDX-License-Identifier: Apache-2.0
// See image_preload.h.
#include "node-agent/agent/cluster/image_preload.h"

#include <fcntl.h>
#include <linux/openat2.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <fstream>

#include "lib/kube/base64.h"
#include "lib/kube/library.h"
#include "node-agent/agent/base/limits.h"

namespace weft::agent {
namespace {

using kube::At;
using kube::Json;
using kube::TextAt;

constexpr size_t kDigestDigits = 64;

// Where runtimes keep what they know of running containers: their own default, then k3s and RKE2.
constexpr std::array<std::string_view, 3> kContainerFolders = {
    "run/containerd/io.containerd.runtime.v2.task/k8s.io/",
    "run/k3s/containerd/io.containerd.runtime.v2.task/k8s.io/",
    "run/containers/storage/overlay-containers/"};
constexpr std::array<std::string_view, 3> kBlobFolders = {"var/lib/containerd/",
                                                          "var/lib/rancher/k3s/agent/containerd/",
                                                          "var/lib/rancher/rke2/agent/containerd/"};
constexpr std::string_view kBlobs = "io.containerd.content.v1.content/blobs/sha256/";
constexpr std::string_view kCrioImages = "var/lib/containers/storage/overlay-images/";
constexpr std::string_view kCrioConfig = "userdata/";

bool IsDigest(std::string_view text) {
  return text.size() == kDigestDigits &&
         text.find_first_not_of("0123456789abcdef") == std::string_view::npos;
}

// "sha256:DIGITS" or "NAME@sha256:DIGITS"; "": neither.
std::string DigestIn(std::string_view text) {
  constexpr std::string_view kPrefix = "sha256:";
  const size_t at = text.rfind(kPrefix);
  if (at == std::string_view::npos) return "";
  text.remove_prefix(at + kPrefix.size());
  return IsDigest(text) ? std::string(text) : "";
}

// The last one counts, as for a program.
std::string PreloadIn(const Json* env) {
  std::string value;
  if (env == nullptr || !env->is_array()) return value;
  const std::string prefix = std::string(kube::kPreloadVariable) + "=";
  for (const Json& entry : *env) {
    if (!entry.is_string()) continue;
    const auto& text = entry.get_ref<const std::string&>();
    if (text.starts_with(prefix)) value = text.substr(prefix.size());
  }
  return value;
}

// The manifest of an index for this machine; "": it has none, or does not tell.
std::string ManifestIn(const Json& manifests) {
#if defined(__aarch64__)
  constexpr std::string_view kOwn = "arm64";
#else
  constexpr std::string_view kOwn = "amd64";
#endif
  for (const Json& manifest : manifests) {
    const bool is_own = TextAt(manifest, {"platform", "architecture"}) == kOwn &&
                        TextAt(manifest, {"platform", "os"}) == "linux";
    if (is_own) return DigestIn(TextAt(manifest, {"digest"}));
  }
  return "";
}

// Whether all that it lists, as ld.so reads it, is weft's library: nothing else was kept.
bool IsOnlyWefts(std::string_view list) {
  bool any = false;
  while (!list.empty()) {
    const size_t end = list.find_first_of(": ");
    const std::string_view entry = list.substr(0, end);
    if (!entry.empty() && entry != kube::kLibraryPath) return false;
    any = any || !entry.empty();
    if (end == std::string_view::npos) break;
    list.remove_prefix(end + 1);
  }
  return any;
}

// For a message.
std::string Printable(std::string text) {
  text.resize(std::min(text.size(), kMaxToldPreload));
  std::ranges::replace_if(text, [](char c) { return c < ' ' || c > '~' || c == '"'; }, '?');
  return text;
}

int32_t ParentOf(int32_t pid) {
  std::ifstream status("/proc/" + std::to_string(pid) + "/status");
  std::string word;
  int32_t parent = 0;
  while (status >> word)
    if (word == "PPid:") return status >> parent ? parent : 0;
  return 0;
}

}  // namespace

UniqueFd OpenRootOfNode() {
  struct stat own{};
  if (stat("/proc/self/ns/mnt", &own) != 0) return {};
  const auto open_root = [](const std::string& folder) {
    return UniqueFd(open((folder + "/root").c_str(), O_PATH | O_DIRECTORY | O_CLOEXEC));
  };
  for (int32_t pid = getppid(); pid > 0; pid = ParentOf(pid)) {
    const std::string folder = "/proc/" + std::to_string(pid);
    struct stat its{};
    if (stat((folder + "/ns/mnt").c_str(), &its) != 0) return {};
    if (its.st_ino != own.st_ino) return open_root(folder);
  }
  return open_root("/proc/self");
}

RuntimeText ReadRuntimeText(std::string_view text) {
  RuntimeText out;
  const Json json = Json::parse(text, nullptr, /*allow_exceptions=*/false);
  if (!json.is_object()) return out;
  out.preload = PreloadIn(At(json, {"process", "env"}));
  if (out.preload.empty()) out.preload = PreloadIn(At(json, {"config", "Env"}));
  if (std::string image = TextAt(json, {"annotations", "io.kubernetes.cri-o.ImageRef"});
      IsDigest(image))
    out.image = std::move(image);
  out.next = DigestIn(TextAt(json, {"config", "digest"}));
  const Json* manifests = At(json, {"manifests"});
  if (out.next.empty() && manifests != nullptr && manifests->is_array())
    out.next = ManifestIn(*manifests);
  return out;
}

std::string ImagePreloads::Read(const std::string& path) const {
  open_how how{};
  how.flags = O_RDONLY | O_NONBLOCK | O_CLOEXEC;
  how.resolve = RESOLVE_IN_ROOT | RESOLVE_NO_MAGICLINKS;
  const UniqueFd file(
      static_cast<int>(syscall(SYS_openat2, root_.get(), path.c_str(), &how, sizeof(how))));
  struct stat facts{};
  if (!file || fstat(file.get(), &facts) != 0 || !S_ISREG(facts.st_mode) || facts.st_size <= 0 ||
      static_cast<uint64_t>(facts.st_size) > kMaxRuntimeFile)
    return "";
  std::string text(static_cast<size_t>(facts.st_size), '\0');
  const ssize_t size = pread(file.get(), text.data(), text.size(), 0);
  text.resize(size > 0 ? static_cast<size_t>(size) : 0);
  return text;
}

std::string ImagePreloads::PreloadOfBlob(const std::string& digest) const {
  std::string next = digest;
  // Index, manifest, configuration.
  for (int step = 0; step < 3 && !next.empty(); ++step) {
    RuntimeText text;
    for (const std::string_view folder : kBlobFolders) {
      const std::string blob = Read(std::string(folder) + std::string(kBlobs) + next);
      if (!blob.empty()) text = ReadRuntimeText(blob);
      if (!blob.empty()) break;
    }
    if (!text.preload.empty()) return text.preload;
    next = text.next;
  }
  return "";
}

std::string ImagePreloads::Find(const std::string& container_id, const std::string& image) const {
  RuntimeText container;
  for (const std::string_view folder : kContainerFolders) {
    const bool is_crio = folder == kContainerFolders.back();
    const std::string text = Read(std::string(folder) + container_id + "/" +
                                  (is_crio ? std::string(kCrioConfig) : "") + "config.json");
    if (!text.empty()) container = ReadRuntimeText(text);
    if (!text.empty()) break;
  }
  if (!IsOnlyWefts(container.preload)) return "";
  if (container.image.empty()) return PreloadOfBlob(DigestIn(image));
  const std::string file = "=" + EncodeBase64("sha256:" + container.image);
  return ReadRuntimeText(Read(std::string(kCrioImages) + container.image + "/" + file)).preload;
}

void ImagePreloads::AddTo(PodFacts& pod) {
  if (!root_) return;
  if (found_.size() >= kMaxKnownImages) found_.clear();
  for (const auto& [id, name] : pod.ids) {
    const auto image = pod.images.find(name);
    if (!IsDigest(id) || image == pod.images.end() ||
        std::ranges::find(pod.containers, name) == pod.containers.end())
      continue;
    auto found = found_.find(id);
    if (found == found_.end()) found = found_.emplace(id, Printable(Find(id, image->second))).first;
    if (!found->second.empty()) pod.replaced_preloads[name] = found->second;
  }
}

}  // namespace weft::agent
