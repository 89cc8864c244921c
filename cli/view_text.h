// SPDX-License-Identifier: Apache-2.0
// Prints events in the default format of babeltrace2 2.0, colours included. Called by view.cc.
// Thread-safety: one thread per printer.
#ifndef WEFT_CLI_VIEW_TEXT_H_
#define WEFT_CLI_VIEW_TEXT_H_

#include <cstdint>
#include <cstdio>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "lib/ctf/stream_reader.h"

namespace weft::cli {

// Prints local times.
class LocalClock {
 public:
  // "10:33:30.209430347"; ns since the epoch.
  void Append(std::string& out, int64_t ns);
  // What stands before the point. Valid until the next call.
  std::string_view Seconds(int64_t ns);

 private:
  // What `text_` shows: at first nothing, since second -1 is negative. Events of one second follow
  // each other.
  int64_t second_ = -1;
  bool is_negative_ = false;
  std::string text_;
};

// Returns true if `out` is a terminal that shows colours and the user has not set NO_COLOR.
bool IsColorTerminal(std::FILE* out);

class TextPrinter {
 public:
  // `indent`: events of functions begin further to the right, as deep as their calls are.
  explicit TextPrinter(bool color, bool indent = false) : color_(color), indent_(indent) {}

  // Appends the line of the stream's current event.
  void Event(ctf::StreamReader& stream, std::string& out);

  // The line about discarded events or packets, without its newline.
  static std::string Discarded(const ctf::StreamReader& stream);

 private:
  void Time(int64_t ns, std::string& out);
  const std::string& Title(const ctf::StreamReader& stream);
  const std::string& Packet(ctf::StreamReader& stream);

  void Indent(ctf::StreamReader& stream, std::string& out);

  bool color_;
  bool indent_;
  LocalClock clock_;
  // Texts that many events share. Title: "host:program:(vpid) provider:event: ".
  std::unordered_map<const ctf::EventRecordClass*, std::string> titles_;
  struct PacketText {
    uint64_t offset;   // of the packet
    std::string text;  // its context
  };
  std::unordered_map<const ctf::StreamReader*, PacketText> packets_;
  std::vector<int> printed_;  // FieldPrinter's, kept for its memory
  std::optional<int64_t> last_ns_;
};

// A name or a message with names in it, without quotes: what is no UTF-8 and what a terminal would
// obey becomes "\xNN".
void AppendName(std::string& out, std::string_view name);

}  // namespace weft::cli

#endif  // WEFT_CLI_VIEW_TEXT_H_
