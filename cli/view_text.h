// SPDX-License-Identifier: Apache-2.0
// Events as babeltrace2 2.0 prints them by default, colours included. Called by view.cc.
// Thread-safety: one thread per printer.
#ifndef WEFT_CLI_VIEW_TEXT_H_
#define WEFT_CLI_VIEW_TEXT_H_

#include <cstdint>
#include <optional>
#include <string>

#include "lib/ctf/stream_reader.h"

namespace weft::cli {

class TextPrinter {
 public:
  explicit TextPrinter(bool color) : color_(color) {}

  // Appends the line of the stream's current event.
  void Event(ctf::StreamReader& stream, std::string& out);

  // The line about discarded events or packets, without its newline.
  static std::string Discarded(const ctf::StreamReader& stream);

 private:
  bool color_;
  std::optional<int64_t> last_ns_;
};

// "10:33:30.209430347", local time.
void AppendTime(std::string& out, int64_t ns);

}  // namespace weft::cli

#endif  // WEFT_CLI_VIEW_TEXT_H_
