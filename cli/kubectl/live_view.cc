// SPDX-License-Identifier: Apache-2.0
// See live_view.h.
#include "cli/kubectl/live_view.h"

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <cstring>

#include "cli/view_json.h"
#include "lib/base/open_file_limit.h"
#include "lib/ctf/packet_writer.h"

namespace weft::kubectl {
namespace {

// Fetched of one stream in one round, so that other streams come up, too. Larger than any packet of
// a relay.
constexpr std::uint64_t kMostOfStream = std::uint64_t{4} << 20;
// While more than this waits to be printed, nothing is fetched.
constexpr std::uint64_t kMostWaiting = std::uint64_t{64} << 20;
constexpr std::size_t kFlushBytes = 64 * 1024;
constexpr std::size_t kShownProblems = 20;

// "a/b/user_0" is the stream "user_0" of the CTF trace in "a/b".
std::pair<std::string, std::string> Split(const std::string& path) {
  const std::size_t slash = path.rfind('/');
  if (slash == std::string::npos) return {"", path};
  return {path.substr(0, slash), path.substr(slash + 1)};
}

// How many of the bytes are whole packets. kCorrupt: they do not begin with one.
Result<std::size_t> WholePackets(std::string_view bytes) {
  std::size_t at = 0;
  while (bytes.size() - at >= ctf::kPacketHeaderBytes) {
    const auto* front = reinterpret_cast<const std::uint8_t*>(bytes.data() + at);
    WEFT_ASSIGN(const ctf::PacketInfo packet,
                ctf::ReadPacketInfo({front, ctf::kPacketHeaderBytes}));
    if (packet.packet_bytes > bytes.size() - at) break;
    at += packet.packet_bytes;
  }
  if (at == 0 && !bytes.empty())
    return Fail(ErrorCode::kCorrupt, "a packet is larger than a relay accepts");
  return at;
}

}  // namespace

LiveView::LiveView(const Connection& connection, TraceView& view, const std::string& folder,
                   bool json)
    : relay_(connection, view, folder), json_(json), printer_(cli::IsColorTerminal(stdout)) {
  RaiseOpenFileLimit();  // packets that wait are open files
}

Status LiveView::FetchMetadata(const RelayFile& file) {
  std::uint64_t& known = fetched_[file.path];
  if (known == file.size) return {};
  if (file.size > ctf::kMaxMetadataBytes)
    return Fail(ErrorCode::kLimit, file.path + " is larger than metadata can be");
  WEFT_ASSIGN(const std::string text, relay_.Read(file.path, 0, file.size));
  follower_.SetMetadata(Split(file.path).first, text);
  known = file.size;
  return {};
}

Result<bool> LiveView::FetchStream(const RelayFile& file) {
  std::uint64_t& known = fetched_[file.path];
  if (file.size <= known) return false;
  const std::uint64_t size = std::min(file.size - known, kMostOfStream);
  WEFT_ASSIGN(std::string bytes, relay_.Read(file.path, known, size));
  if (bytes.size() < file.size - known) {
    // The part may end inside of a packet.
    WEFT_ASSIGN(const std::size_t whole, WholePackets(bytes));
    bytes.resize(whole);
  }
  const auto [folder, name] = Split(file.path);
  WEFT_TRY(follower_.Add(folder, name, bytes, Follower::Clock::now()));
  known += bytes.size();
  return known < file.size;
}

Result<bool> LiveView::Fetch() {
  if (follower_.waiting_bytes() > kMostWaiting) return true;
  auto files = relay_.Files();
  if (!files && files.error().code == ErrorCode::kNotFound) return false;
  if (!files) return std::unexpected(std::move(files.error()));
  bool more = false;
  for (const RelayFile& file : *files)
    if (Split(file.path).second == "metadata") WEFT_TRY(FetchMetadata(file));
  for (const RelayFile& file : *files) {
    if (Split(file.path).second == "metadata") continue;
    WEFT_ASSIGN(const bool rest, FetchStream(file));
    more = more || rest;
  }
  return more;
}

Status LiveView::Flush(std::string& text) {
  const bool ok =
      std::fwrite(text.data(), 1, text.size(), stdout) == text.size() && std::fflush(stdout) == 0;
  text.clear();
  if (ok) return {};
  if (errno == EPIPE) return Fail(ErrorCode::kClosed, "the reader of the output is gone");
  return FailErrno("the output cannot be written");
}

Status LiveView::Print(bool all) {
  std::string text;
  while (ctf::StreamReader* stream = follower_.Next(Follower::Clock::now(), all)) {
    const bool is_event = stream->item().kind == ctf::ItemKind::kEvent;
    if (is_event) ++events_;
    if (json_) {
      cli::AppendJson(*stream, text);
    } else if (is_event) {
      printer_.Event(*stream, text);
    } else {
      WEFT_TRY(Flush(text));
      std::fprintf(stderr, "%s\n", cli::TextPrinter::Discarded(*stream).c_str());
    }
    if (text.size() >= kFlushBytes) WEFT_TRY(Flush(text));
  }
  WEFT_TRY(Flush(text));
  ShowProblems();
  return {};
}

void LiveView::ShowProblems() {
  for (const std::string& problem : follower_.TakeProblems()) {
    if (problems_++ >= kShownProblems) continue;
    std::string line;
    cli::AppendName(line, problem);
    std::fprintf(stderr, "kubectl weft: %s\n", line.c_str());
  }
}

Status LiveView::Round() {
  WEFT_ASSIGN(const bool more, Fetch());
  (void)more;  // the next round gets it
  return Print(false);
}

Status LiveView::Finish() {
  for (;;) {
    WEFT_ASSIGN(const bool more, Fetch());
    WEFT_TRY(Print(!more));
    if (!more) return {};
  }
}

}  // namespace weft::kubectl
