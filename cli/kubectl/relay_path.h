// SPDX-License-Identifier: Apache-2.0
// Names of files that a relay sends. They are foreign: only what RelayPathProblem accepts becomes a
// file, beneath a folder of the user's. Thread-safety: one thread per OutputFolder.
#ifndef WEFT_CLI_KUBECTL_RELAY_PATH_H_
#define WEFT_CLI_KUBECTL_RELAY_PATH_H_

#include <string>
#include <string_view>

#include "lib/base/result.h"
#include "lib/base/unique_fd.h"

namespace weft::kubectl {

// The form of docs/openapi/relay.yaml: names of letters, digits, "_", "-" and ".", which do not
// begin with ".", with "/" between them.
bool IsRelayPath(std::string_view path);

// A folder in which files are made by such paths. It follows no symbolic link beneath it.
class OutputFolder {
 public:
  // Makes the folder if it is not there.
  static Result<OutputFolder> Open(const std::string& path);

  // Opens a file for reading and writing; makes it and its folders where they are not there.
  // kInvalid: no IsRelayPath, or something else than a file or folder is in the way.
  Result<UniqueFd> OpenFile(std::string_view path) const;

  [[nodiscard]] const std::string& path() const { return path_; }
  [[nodiscard]] int descriptor() const { return folder_.get(); }

 private:
  OutputFolder(std::string path, UniqueFd folder)
      : path_(std::move(path)), folder_(std::move(folder)) {}

  std::string path_;
  UniqueFd folder_;
};

// The whole of `bytes` at an offset.
Status WriteAt(int fd, std::string_view bytes, std::uint64_t offset);
// Up to `size` bytes.
Result<std::string> ReadAt(int fd, std::size_t size, std::uint64_t offset);
Result<std::uint64_t> SizeOf(int fd);

}  // namespace weft::kubectl

#endif  // WEFT_CLI_KUBECTL_RELAY_PATH_H_
