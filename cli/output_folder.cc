// SPDX-License-Identifier: Apache-2.0
// See output_folder.h.
#include "cli/output_folder.h"

#include <dirent.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <ranges>
#include <string_view>

namespace weft::cli {

Result<OutputFolder> OutputFolder::Make(const std::string& wanted) {
  OutputFolder folder;
  Status made = folder.MakeFolders(wanted);
  if (made) made = folder.Check(wanted);
  if (made) return folder;
  folder.TakeBack();
  return std::unexpected(made.error());
}

// Ignores mkdir's errors for the folders on the way: mkdir of the last folder fails then as well,
// with its own reason.
Status OutputFolder::MakeFolders(const std::string& wanted) {
  for (size_t at = 1; (at = wanted.find('/', at)) != std::string::npos; ++at)
    if (mkdir(wanted.substr(0, at).c_str(), 0755) == 0) made_.push_back(wanted.substr(0, at));
  if (mkdir(wanted.c_str(), 0755) == 0)
    made_.push_back(wanted);
  else if (errno != EEXIST)
    return FailErrno(wanted);
  // The program's folder may be another one when they are taken back.
  for (std::string& path : made_) {
    char* absolute = realpath(path.c_str(), nullptr);
    if (absolute != nullptr) path = absolute;
    std::free(absolute);
  }
  return {};
}

Status OutputFolder::Check(const std::string& wanted) {
  char* absolute = realpath(wanted.c_str(), nullptr);
  if (absolute == nullptr) return FailErrno(wanted);
  path_ = absolute;
  std::free(absolute);
  DIR* dir = opendir(path_.c_str());
  if (dir == nullptr) return FailErrno(wanted);
  bool empty = true;
  while (const dirent* entry = readdir(dir))
    empty &= std::string_view(entry->d_name) == "." || std::string_view(entry->d_name) == "..";
  closedir(dir);
  if (!empty)
    return Fail(ErrorCode::kInvalid,
                wanted + ": is not empty; a recording needs a folder of its own");
  if (access(path_.c_str(), W_OK | X_OK) != 0) return FailErrno(wanted);
  return {};
}

void OutputFolder::TakeBack() const {
  for (const std::string& path : std::views::reverse(made_)) rmdir(path.c_str());
}

}  // namespace weft::cli
