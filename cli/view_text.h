// SPDX-License-Identifier: Apache-2.0
// Prints events in the default format of babeltrace2 2.0, colours included. Called by view.cc.
// Thread-safety: one thread per printer.
#ifndef WEFT_CLI_VIEW_TEXT_H_
#define WEFT_CLI_VIEW_TEXT_H_

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

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
  void Time(int64_t ns, std::string& out);

  bool color_;
  std::optional<int64_t> last_ns_;
};

// A name or a message with names in it, without quotes: what is no UTF-8 and what a terminal would
// obey becomes "\xNN".
void AppendName(std::string& out, std::string_view name);

// "10:33:30.209430347", local time.
void AppendTime(std::string& out, int64_t ns);

}  // namespace weft::cli

#endif  // WEFT_CLI_VIEW_TEXT_H_
