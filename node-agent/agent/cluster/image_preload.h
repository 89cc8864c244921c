// SPDX-License-Identifier: Apache-2.0
// Finds containers whose image sets LD_PRELOAD, which weft's LD_PRELOAD replaces. A container
// runtime lets a pod's variables win over the image's, so no process has the image's value any
// more; the files of the runtime on this node have both:
//   containerd  the container's config.json in its state folder; the image's configuration among
//               its blobs, which the pod's status names: itself, or its manifest or index
//   CRI-O       the container's config.json, whose annotation names the image; its configuration
//               below overlay-images (https://github.com/containers/storage)
// Where there are no such files, nothing is found (docs/adr/0047).
//
// Images and containers are foreign: files are opened inside of the node's root, must be regular
// and at most kMaxRuntimeFile long. Thread-safety: none; the feed's thread owns it.
#ifndef WEFT_NODE_AGENT_AGENT_CLUSTER_IMAGE_PRELOAD_H_
#define WEFT_NODE_AGENT_AGENT_CLUSTER_IMAGE_PRELOAD_H_

#include <map>
#include <string>
#include <string_view>
#include <utility>

#include "lib/base/unique_fd.h"
#include "node-agent/agent/cluster/pod.h"

namespace weft::agent {

// The root of the node that this process's container runs on: that of the nearest ancestor in
// another mount namespace, which is the runtime's. Outside of a container it is this process's.
// Not valid: an ancestor's namespaces may not be looked at.
UniqueFd OpenRootOfNode();

class ImagePreloads {
 public:
  explicit ImagePreloads(UniqueFd root) : root_(std::move(root)) {}

  // Fills in `replaced_preloads` for the containers that have the library and an id.
  void AddTo(PodFacts& pod);

 private:
  // The value that the image sets and that is replaced; "": none is known.
  [[nodiscard]] std::string Find(const std::string& container_id, const std::string& image) const;
  [[nodiscard]] std::string Read(const std::string& path) const;
  // `digest`: of the configuration, the manifest or the index of an image.
  [[nodiscard]] std::string PreloadOfBlob(const std::string& digest) const;

  UniqueFd root_;
  std::map<std::string, std::string> found_;  // by container's id
};

// What a JSON text of a container runtime says; a part that is not there is empty.
struct RuntimeText {
  std::string preload;  // the value of LD_PRELOAD
  std::string image;    // CRI-O's annotation: 64 hexadecimal digits
  std::string next;     // the digest of the file to read instead: 64 hexadecimal digits
};

// `text`: a container's config.json, or an image's configuration, manifest or index.
RuntimeText ReadRuntimeText(std::string_view text);

}  // namespace weft::agent

#endif  // WEFT_NODE_AGENT_AGENT_CLUSTER_IMAGE_PRELOAD_H_
