// SPDX-License-Identifier: Apache-2.0
// See list_folder.h.
#include "lib/store/list_folder.h"

#include <dirent.h>
#include <fcntl.h>
#include <sys/stat.h>

#include <memory>

#include "lib/base/freed.h"

namespace weft::store {

Result<std::vector<FolderEntry>> ListFolder(UniqueFd folder, const std::string& name) {
  const std::unique_ptr<DIR, Freed<::closedir>> entries(::fdopendir(folder.get()));
  if (entries == nullptr) return FailErrno(name);
  (void)folder.release();
  std::vector<FolderEntry> found;
  while (const dirent* entry =
             ::readdir(entries.get())) {  // NOLINT(concurrency-mt-unsafe): own DIR
    struct stat st{};
    if (::fstatat(::dirfd(entries.get()), entry->d_name, &st, AT_SYMLINK_NOFOLLOW) != 0) continue;
    const std::string_view text = entry->d_name;
    if ((!S_ISDIR(st.st_mode) && !S_ISREG(st.st_mode)) || text == "." || text == "..") continue;
    const auto written =
        std::chrono::seconds(st.st_mtim.tv_sec) + std::chrono::nanoseconds(st.st_mtim.tv_nsec);
    found.push_back({.name = std::string(text),
                     .is_folder = S_ISDIR(st.st_mode),
                     .bytes = static_cast<uint64_t>(st.st_size),
                     .written = std::chrono::system_clock::time_point(written)});
  }
  return found;
}

}  // namespace weft::store
