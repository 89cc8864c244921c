// SPDX-License-Identifier: Apache-2.0
// The output folder of a recording. Make() creates it before the session starts. If the session is
// refused, it is removed again, with the parent folders that were created for it. Files and folders
// that existed before stay.
// Used by the command's one thread.
#ifndef WEFT_CLI_OUTPUT_FOLDER_H_
#define WEFT_CLI_OUTPUT_FOLDER_H_

#include <string>
#include <vector>

#include "lib/base/result.h"

namespace weft::cli {

class OutputFolder {
 public:
  // None: what is recorded goes elsewhere.
  OutputFolder() = default;

  // Makes the folder, or takes an empty one that is there. kInvalid: it holds something: two
  // recordings in one folder are one trace that no reader understands. An error leaves nothing.
  static Result<OutputFolder> Make(const std::string& wanted);

  // Absolute; "": none.
  [[nodiscard]] const std::string& path() const { return path_; }

  // Removes what Make made, as far as it is empty.
  void TakeBack() const;

 private:
  Status MakeFolders(const std::string& wanted);
  Status Check(const std::string& wanted);

  std::string path_;
  std::vector<std::string> made_;  // the outermost first
};

}  // namespace weft::cli

#endif  // WEFT_CLI_OUTPUT_FOLDER_H_
