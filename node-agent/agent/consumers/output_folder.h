// SPDX-License-Identifier: Apache-2.0
// Opens files for a consumer, which cannot open any. Opens only files beneath the output folder,
// whatever name the consumer gives and whatever links the folder contains.
#ifndef WEFT_NODE_AGENT_AGENT_CONSUMERS_OUTPUT_FOLDER_H_
#define WEFT_NODE_AGENT_AGENT_CONSUMERS_OUTPUT_FOLDER_H_

#include <string>
#include <string_view>

#include "lib/base/result.h"
#include "lib/base/unique_fd.h"

namespace weft::agent {

class OutputFolder {
 public:
  static Result<OutputFolder> Open(const std::string& path);

  // For reading and writing, never truncated; folders on the way are made. kInvalid: not a name
  // that stays beneath the folder; kIo otherwise.
  Result<UniqueFd> OpenFile(std::string_view name) const;

 private:
  explicit OutputFolder(UniqueFd fd) : fd_(std::move(fd)) {}
  UniqueFd fd_;
};

}  // namespace weft::agent

#endif  // WEFT_NODE_AGENT_AGENT_CONSUMERS_OUTPUT_FOLDER_H_
