// SPDX-License-Identifier: Apache-2.0
// `kubectl weft download`: copies the files of a Trace from the relay into a folder. Files only
// grow, so a later call fetches what is new; metadata is fetched whole, since parts of it may be
// overwritten. What the relay has removed since, its oldest chunks, stays in the folder. The file
// `.weft-download` in the folder names the Trace, and the time if there is one, so that the events
// of two Traces are not mixed. If a time was asked for,
// each file begins with the first packet of that time.
#include <fcntl.h>
#include <sys/stat.h>

#include <algorithm>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <map>
#include <set>

#include "cli/exit_status.h"
#include "cli/kubectl/commands.h"
#include "cli/kubectl/explain.h"
#include "cli/kubectl/progress.h"
#include "cli/kubectl/relay_client.h"
#include "cli/kubectl/relay_path.h"
#include "cli/kubectl/time_text.h"
#include "cli/kubectl/trace_objects.h"
#include "lib/store/store.h"

namespace weft::kubectl {
namespace {

constexpr const char* kMarker = ".weft-download";
// In one request: a progress bar moves, and a lost connection costs little.
constexpr std::uint64_t kPart = std::uint64_t{4} << 20;
// The end of a file that is here already is fetched again and compared: a relay may have cut
// packets off and got others in their place.
constexpr std::uint64_t kCompared = 4096;

Result<std::string> ReadMarker(int folder) {
  const UniqueFd fd(openat(folder, kMarker, O_RDONLY | O_NOFOLLOW | O_CLOEXEC));
  if (!fd) return errno == ENOENT ? Result<std::string>("") : FailErrno(kMarker);
  return ReadAt(fd.get(), 1024, 0);
}

// Refuses a folder that belongs to something else.
Status Claim(const OutputFolder& folder, const std::string& trace) {
  WEFT_ASSIGN(const std::string marker, ReadMarker(folder.descriptor()));
  if (marker == trace + "\n") return {};
  std::error_code error;
  if (!marker.empty() || !std::filesystem::is_empty(folder.path(), error))
    return Fail(ErrorCode::kInvalid, "the folder " + folder.path() +
                                         " contains something else than this Trace; name "
                                         "another one with -o, or remove it");
  const UniqueFd fd(
      openat(folder.descriptor(), kMarker, O_WRONLY | O_CREAT | O_NOFOLLOW | O_CLOEXEC, 0666));
  if (!fd) return FailErrno(kMarker);
  return WriteAt(fd.get(), trace + "\n", 0);
}

bool IsMetadata(std::string_view path) { return path == "metadata" || path.ends_with("/metadata"); }

class Downloader {
 public:
  Downloader(RelayClient& relay, const OutputFolder& folder, Progress& progress,
             Interrupts& interrupts)
      : relay_(relay), folder_(folder), progress_(progress), interrupts_(interrupts) {}

  Status Fetch(const RelayFile& file) {
    WEFT_ASSIGN(const UniqueFd fd, folder_.OpenFile(file.path));
    auto start = Start(fd.get(), file);
    if (!start && start.error().code == ErrorCode::kNotFound) return {};
    if (!start) return std::unexpected(std::move(start.error()));
    std::uint64_t at = *start;
    progress_.Add(at);
    const std::uint64_t size = file.size - file.offset;
    while (at < size) {
      if (interrupts_.came()) return Fail(ErrorCode::kClosed, "interrupted");
      auto read = relay_.Read(file.path, file.offset + at, std::min(kPart, size - at));
      if (!read && read.error().code == ErrorCode::kNotFound) {
        return WasRemoved(fd.get(), file, *start);
      }
      if (!read) return std::unexpected(std::move(read.error()));
      const std::string part = std::move(*read);
      if (part.empty())
        return Fail(ErrorCode::kIo, file.path + " became shorter at the relay; download it again");
      WEFT_TRY(WriteAt(fd.get(), part, at));
      at += part.size();
      fetched_ += part.size();
      progress_.Add(part.size());
    }
    return {};
  }

  [[nodiscard]] std::uint64_t fetched() const { return fetched_; }

 private:
  // The relay has removed a chunk since it listed it: keeps the bytes that were here before.
  static Status WasRemoved(int fd, const RelayFile& file, std::uint64_t before) {
    return ftruncate(fd, static_cast<off_t>(before)) == 0 ? Status() : FailErrno(file.path);
  }

  // Where to go on in a file: behind what is here and the same at the relay. kNotFound: the relay
  // has removed it.
  Result<std::uint64_t> Start(int fd, const RelayFile& file) {
    WEFT_ASSIGN(const std::uint64_t here, SizeOf(fd));
    if (here == 0) return 0;
    if (!IsMetadata(file.path) && here <= file.size - file.offset) {
      const std::uint64_t compared = std::min(here, kCompared);
      WEFT_ASSIGN(const std::string mine, ReadAt(fd, compared, here - compared));
      WEFT_ASSIGN(const std::string theirs,
                  relay_.Read(file.path, file.offset + here - compared, compared));
      if (mine == theirs) return here;
    }
    if (ftruncate(fd, 0) != 0) return FailErrno(file.path);
    return 0;
  }

  RelayClient& relay_;
  const OutputFolder& folder_;
  Progress& progress_;
  Interrupts& interrupts_;
  std::uint64_t fetched_ = 0;
};

// The files of these pods: the first folder of a path is the pod's.
std::vector<RelayFile> OfPods(std::vector<RelayFile> files, const std::vector<std::string>& pods) {
  if (pods.empty()) return files;
  std::erase_if(files, [&](const RelayFile& file) {
    return std::ranges::find(pods, file.path.substr(0, file.path.find('/'))) == pods.end();
  });
  return files;
}

// The time of --since and --until.
Result<TimeRange> ParseRange(const DownloadCommand& command) {
  const auto now = std::chrono::system_clock::now();
  TimeRange range;
  if (!command.since.empty()) {
    WEFT_ASSIGN(range.since, ParseTimeText(command.since, now));
  }
  if (!command.until.empty()) {
    WEFT_ASSIGN(range.until, ParseTimeText(command.until, now));
  }
  if (range.since > range.until)
    return Fail(ErrorCode::kInvalid,
                "--since is later than --until: there is no time between them");
  return range;
}

// What the marker says. A file of another time would begin with another packet.
std::string MarkerOf(const std::string& folder, const TimeRange& range) {
  if (range == TimeRange{}) return folder;
  return folder + " " + std::to_string(range.since) + " " + std::to_string(range.until);
}

// Whether there is a stream among them: metadata alone has no events.
bool HasStream(const std::vector<RelayFile>& files) {
  return std::ranges::any_of(files, [](const RelayFile& file) { return !IsMetadata(file.path); });
}

// Removes the chunks of listed streams that the relay has cut off: what replaces them may have
// other names. Chunks older than the relay's oldest one stay.
Status RemoveCutChunks(const OutputFolder& folder, const std::vector<RelayFile>& files) {
  std::map<std::string, std::map<std::string, std::uint64_t>> oldest;  // by folder and stream
  std::set<std::string> listed;
  for (const RelayFile& file : files) {
    listed.insert(file.path);
    const std::size_t slash = std::min(file.path.rfind('/'), file.path.size());
    const std::string in = file.path.substr(0, slash);
    const store::ChunkName name =
        store::ParseChunkName(file.path.substr(std::min(slash + 1, file.path.size())));
    const auto [at, is_new] = oldest[in].try_emplace(name.stream, name.sequence);
    at->second = std::min(at->second, name.sequence);
  }
  UniqueFd top(openat(folder.descriptor(), ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (!top) return FailErrno(folder.path());
  store::DirectoryFileMaker here(std::move(top));
  for (const auto& [in, streams] : oldest) {
    const auto entries = here.List(in);
    if (!entries) continue;  // nothing of it is here yet
    for (const auto& entry : *entries) {
      const store::ChunkName name = store::ParseChunkName(entry.name);
      const auto stream = streams.find(name.stream);
      const std::string path = in + "/" + entry.name;
      if (stream == streams.end() || name.sequence <= stream->second || listed.contains(path)) {
        continue;
      }
      WEFT_TRY(here.Remove(path));
    }
  }
  return {};
}

Error WithoutFiles(const api::Trace& trace, const DownloadCommand& command) {
  if (!command.since.empty() || !command.until.empty())
    return {ErrorCode::kNotFound, 0,
            "the relay has no events of this time; kubectl weft download without --since and "
            "--until fetches all"};
  if (!command.pods.empty())
    return {ErrorCode::kNotFound, 0,
            "the relay has no events of this pod; kubectl weft download without --pod fetches all"};
  return {ErrorCode::kNotFound, 0,
          "there are no events of the Trace " + trace.metadata.name + " yet; kubectl weft status " +
              trace.metadata.name + " shows why"};
}

}  // namespace

int Download(const Connection& connection, const DownloadCommand& command, Interrupts& interrupts) {
  const auto range = ParseRange(command);
  if (!range) return Complain(range.error());
  const auto trace = GetTrace(connection, command.trace);
  if (!trace) return Complain(trace.error());
  const std::string at_relay = FolderAtRelay(*trace);
  if (at_relay.empty()) return Complain(WithoutFiles(*trace, {}));
  TraceView view(connection, command.trace);
  RelayClient relay(connection, view, at_relay);
  auto listed = relay.Files(*range);
  if (!listed && listed.error().code != ErrorCode::kNotFound) return Complain(listed.error());
  const auto files = OfPods(listed ? std::move(*listed) : std::vector<RelayFile>(), command.pods);
  if (files.empty() || (*range != TimeRange{} && !HasStream(files)))
    return Complain(WithoutFiles(*trace, command));

  auto folder = OutputFolder::Open(command.output.empty() ? command.trace : command.output);
  if (!folder) {
    Complain(folder.error());
    return cli::kExitOutput;
  }
  Status done = Claim(*folder, MarkerOf(trace->status.folder, *range));
  if (done) done = RemoveCutChunks(*folder, files);
  if (!done) return Complain(done.error());
  std::uint64_t total = 0;
  for (const RelayFile& file : files) total += file.size - file.offset;
  Progress progress(total, command.quiet);
  Downloader downloader(relay, *folder, progress, interrupts);
  for (const RelayFile& file : files) {
    if (done = downloader.Fetch(file); !done) break;
  }
  if (!done) {
    progress.Clear();
    Complain(
        std::move(done.error()).Context("the download is not complete; run it again to go on"));
    return interrupts.came() ? cli::kExitSignalBase + SIGINT : cli::kExitOutput;
  }
  if (!command.quiet)
    std::fprintf(stderr, "%s%s in %zu files, %s of them new, in %s\n", isatty(2) ? "\r\033[K" : "",
                 Bytes(total).c_str(), files.size(), Bytes(downloader.fetched()).c_str(),
                 folder->path().c_str());
  return cli::kExitOk;
}

}  // namespace weft::kubectl
