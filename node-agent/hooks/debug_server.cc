// SPDX-License-Identifier: Apache-2.0
// See debug_server.h.
#include "node-agent/hooks/debug_server.h"

#include <fcntl.h>
#include <sys/eventfd.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <vector>

#include "lib/base/background.h"
#include "lib/base/open_in_root.h"
#include "node-agent/hooks/debug_notes.h"
#include "node-agent/hooks/helper_program.h"
#include "node-agent/hooks/limits.h"

namespace weft::hooks {
namespace {

// What weft-debuginfod is given of the agent's environment, beside the servers.
constexpr const char* kHandedOn[] = {"DEBUGINFOD_TIMEOUT",
                                     "DEBUGINFOD_MAXTIME",
                                     "DEBUGINFOD_RETRY_LIMIT",
                                     "DEBUGINFOD_HEADERS_FILE",
                                     "http_proxy",
                                     "https_proxy",
                                     "HTTPS_PROXY",
                                     "all_proxy",
                                     "ALL_PROXY",
                                     "no_proxy",
                                     "NO_PROXY"};

std::string Variable(const char* name) {
  const char* value = std::getenv(name);
  return value == nullptr ? "" : value;
}

// A tenant chooses it, and it becomes a part of an URL and of a path.
bool IsBuildId(const std::string& text) {
  return text.size() % 2 == 0 && text.size() >= 2 * kMinBuildIdBytes &&
         text.size() <= 2 * kMaxBuildIdBytes &&
         text.find_first_not_of("0123456789abcdef") == std::string::npos;
}

Status Awaited() { return Fail(ErrorCode::kTimeout, "debuginfod: there is no answer yet"); }

}  // namespace

DebugServerSettings DebugServerSettingsFromEnvironment(bool is_cluster) {
  DebugServerSettings settings{.urls = Variable("DEBUGINFOD_URLS"),
                               .folder = Variable("DEBUGINFOD_CACHE_PATH"),
                               .max_file_bytes = kMaxDebugFileBytes,
                               .is_own_folder = is_cluster,
                               .program = HelperPath("weft-debuginfod")};
  if (settings.urls.find_first_not_of(' ') == std::string::npos) settings.urls.clear();
  const std::string cache = Variable("XDG_CACHE_HOME"), home = Variable("HOME");
  if (settings.folder.empty() && !cache.empty())
    settings.folder = cache + "/debuginfod_client";
  else if (settings.folder.empty() && !home.empty())
    settings.folder = home + "/.cache/debuginfod_client";
  const std::string size = Variable("DEBUGINFOD_MAXSIZE");
  uint64_t bytes = 0;
  if (std::from_chars(size.data(), size.data() + size.size(), bytes).ec == std::errc() && bytes > 0)
    settings.max_file_bytes = std::min(bytes, kMaxDebugFileBytes);
  return settings;
}

DebugServer::~DebugServer() {
  if (!thread_.joinable()) return;
  {
    const std::lock_guard lock(mutex_);
    ends_ = true;
  }
  has_work_.notify_one();
  eventfd_write(stop_.get(), 1);
  thread_.join();
}

Result<UniqueFd> DebugServer::Find(const std::string& build_id, const std::string& pod) {
  if (!IsBuildId(build_id))
    return Fail(ErrorCode::kNotFound, "debuginfod is not asked: it has no usual build-id");
  if (auto file = OpenCached(build_id)) return file;
  return std::unexpected(Ask(build_id, pod).error());
}

// Returns an error: why the file is not there.
Status DebugServer::Ask(const std::string& build_id, const std::string& pod) {
  const std::lock_guard lock(mutex_);
  const auto now = std::chrono::steady_clock::now();
  if (now - period_ > kServerPeriod) {
    period_ = now;
    by_pod_.clear();
  }
  std::erase_if(asked_, [&](const auto& entry) {
    return entry.second.is_there && now - entry.second.when > kServerPeriod;
  });
  if (const auto before = asked_.find(build_id); before != asked_.end()) {
    if (!before->second.is_there) return Awaited();
    if (!before->second.status) return before->second.status;
  }
  if (by_pod_[pod] >= kMaxAskedFiles || asked_.size() >= kMaxAnswers)
    return Fail(ErrorCode::kLimit,
                "debuginfod is not asked: too many other files were asked for "
                "in the last minutes; give the types in the Trace");
  if (!thread_.joinable()) {
    stop_.reset(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
    if (!stop_) return FailErrno("eventfd");
    thread_ = ThreadWithoutSignals([this] { Work(); });
  }
  ++by_pod_[pod];
  asked_.insert_or_assign(build_id, Answer{.is_there = false, .status = {}, .when = now});
  queue_.push_back(build_id);
  has_work_.notify_one();
  return Awaited();
}

Result<UniqueFd> DebugServer::OpenCached(const std::string& build_id) const {
  WEFT_ASSIGN(UniqueFd file, OpenInRoot(settings_.folder, build_id + "/debuginfo"));
  const auto notes = NotesOf(file.get());
  if (!notes || notes->build_id != build_id)
    return Fail(ErrorCode::kNotFound, "debuginfod: the server's answer is not its debug file");
  // For PruneCache: file systems note the first use of a day only.
  const timespec times[]{{.tv_sec = 0, .tv_nsec = UTIME_NOW}, {.tv_sec = 0, .tv_nsec = UTIME_OMIT}};
  (void)futimens(file.get(), times);
  return file;
}

void DebugServer::Work() {
  for (;;) {
    std::string build_id;
    {
      std::unique_lock lock(mutex_);
      has_work_.wait(lock, [&] { return ends_ || !queue_.empty(); });
      if (ends_) return;
      build_id = queue_.front();
      queue_.pop_front();
    }
    Status status = Fetch(build_id);
    {
      const std::lock_guard lock(mutex_);
      asked_[build_id] = {
          .is_there = true, .status = std::move(status), .when = std::chrono::steady_clock::now()};
    }
    ++answers_;
  }
}

Status DebugServer::PrepareFolder() const {
  if (settings_.folder.empty())
    return Fail(ErrorCode::kInvalid,
                "debuginfod: set HOME or DEBUGINFOD_CACHE_PATH, for its cache");
  std::error_code error;
  std::filesystem::create_directories(settings_.folder, error);
  if (error)
    return Fail(ErrorCode::kIo, "debuginfod: " + settings_.folder + ": " + error.message());
  if (settings_.is_own_folder && geteuid() == 0 &&
      (chmod(settings_.folder.c_str(), 0700) != 0 ||
       chown(settings_.folder.c_str(), kDebuginfodUser, kDebuginfodUser) != 0))
    return FailErrno("debuginfod: " + settings_.folder);
  return {};
}

Status DebugServer::Fetch(const std::string& build_id) const {
  WEFT_TRY(PrepareFolder());
  const UniqueFd folder(open(settings_.folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (!folder) return FailErrno("debuginfod: " + settings_.folder);
  std::vector<std::string> environment{"DEBUGINFOD_URLS=" + settings_.urls};
  for (const char* name : kHandedOn)
    if (const std::string value = Variable(name); !value.empty())
      environment.push_back(name + ("=" + value));
  std::vector<std::string> arguments{build_id, std::to_string(settings_.max_file_bytes)};
  if (settings_.is_own_folder && geteuid() == 0)
    arguments.push_back(std::to_string(kDebuginfodUser));
  const auto answer = RunHelper({.program = settings_.program,
                                 .arguments = arguments,
                                 .environment = environment,
                                 .file = folder.get(),
                                 .patience = kServerPatience,
                                 .max_bytes = kMaxServerAnswer,
                                 .stop = stop_.get()});
  if (settings_.is_own_folder) PruneCache(settings_.folder, kMaxCacheBytes, kMaxCacheFolders);
  if (!answer && answer.error().code == ErrorCode::kTimeout)
    return Fail(ErrorCode::kIo, "debuginfod: the download takes longer than " +
                                    std::to_string(kServerPatience.count()) + " s");
  if (!answer) return std::unexpected(answer.error());
  if (*answer != kDebuginfodDone)
    return Fail(ErrorCode::kNotFound,
                answer->empty() ? "debuginfod: weft-debuginfod ended" : "debuginfod: " + *answer);
  auto file = OpenCached(build_id);
  if (file) return {};
  // Else it would be in the way until it is old.
  std::error_code ignored;
  std::filesystem::remove(settings_.folder + "/" + build_id + "/debuginfo", ignored);
  return std::unexpected(file.error());
}

void PruneCache(const std::string& folder, uint64_t max_bytes, size_t max_folders) {
  namespace fs = std::filesystem;
  struct Part {
    int64_t used = 0;
    uint64_t bytes = 0;
    fs::path path;
  };
  std::vector<Part> parts;
  uint64_t bytes = 0;
  std::error_code error;
  for (fs::directory_iterator part(folder, error), end; !error && part != end;
       part.increment(error)) {
    if (!fs::is_directory(part->symlink_status(error))) continue;
    Part one{.path = part->path()};
    std::error_code inner;
    for (fs::directory_iterator file(one.path, inner); !inner && file != end;
         file.increment(inner)) {
      struct stat st{};
      if (lstat(file->path().c_str(), &st) != 0) continue;
      one.bytes += static_cast<uint64_t>(st.st_blocks) * 512;
      one.used = std::max({one.used, int64_t{st.st_atim.tv_sec}, int64_t{st.st_mtim.tv_sec}});
    }
    bytes += one.bytes;
    parts.push_back(std::move(one));
  }
  std::ranges::sort(parts, {}, &Part::used);
  for (size_t i = 0; i < parts.size() && (bytes > max_bytes || parts.size() - i > max_folders);
       ++i) {
    fs::remove_all(parts[i].path, error);
    bytes -= parts[i].bytes;
  }
}

}  // namespace weft::hooks
