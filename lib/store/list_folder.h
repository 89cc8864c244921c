// SPDX-License-Identifier: Apache-2.0
// Lists a folder of stored traces. Thread-safety: any thread.
#ifndef WEFT_LIB_STORE_LIST_FOLDER_H_
#define WEFT_LIB_STORE_LIST_FOLDER_H_

#include <chrono>
#include <cstdint>
#include <string>
#include <vector>

#include "lib/base/result.h"
#include "lib/base/unique_fd.h"

namespace weft::store {

struct FolderEntry {
  std::string name;
  bool is_folder = false;
  uint64_t bytes = 0;
  std::chrono::system_clock::time_point written;
};

// Returns the files and folders in a folder, in no order, without "." and "..". Symbolic links and
// what was removed meanwhile are left out. `folder` is open for reading; `name` is for errors.
Result<std::vector<FolderEntry>> ListFolder(UniqueFd folder, const std::string& name);

}  // namespace weft::store

#endif  // WEFT_LIB_STORE_LIST_FOLDER_H_
