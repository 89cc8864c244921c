// SPDX-License-Identifier: Apache-2.0
#include "lib/ctf/trace_reader.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <map>
#include <tuple>
#include <utility>

namespace weft::ctf {
namespace {

constexpr size_t kMaxStreams = 65536;
constexpr size_t kMaxProblems = 1000;  // every packet may be broken

// Regular files only: opening a FIFO would block, a device may do anything.
Result<UniqueFd> OpenRegular(const std::string& path) {
  UniqueFd fd(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY));
  if (!fd) return FailErrno(path);
  struct stat st{};
  if (::fstat(fd.get(), &st) != 0) return FailErrno(path);
  if (!S_ISREG(st.st_mode)) return Fail(ErrorCode::kInvalid, path + " is no file");
  return fd;
}

Result<std::string> ReadFile(const std::string& path, size_t limit) {
  WEFT_ASSIGN(const UniqueFd fd, OpenRegular(path));
  std::string text;
  while (true) {
    const size_t before = text.size();
    text.resize(before + 256 * 1024);
    const ssize_t n = ::read(fd.get(), text.data() + before, text.size() - before);
    text.resize(before + static_cast<size_t>(std::max<ssize_t>(n, 0)));
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) return FailErrno(path);
    if (n == 0) return text;
    if (text.size() > limit) return Fail(ErrorCode::kLimit, path + " is too large");
  }
}

// Searches for traces.
class Search {
 public:
  explicit Search(const SearchLimits& limits) : limits_(limits) {}

  // Appends the folders that have a file `metadata`, `path` itself included, in order, to found().
  // kLimit: `path` holds too much.
  Status In(const std::filesystem::path& path) {
    if (Below(path, 0)) return {};
    return Fail(ErrorCode::kLimit, path.string() + ": the search for traces ended after " +
                                       std::to_string(folders_) + " folders and " +
                                       std::to_string(entries_) +
                                       " files: name the folder of one trace, or of fewer");
  }

  [[nodiscard]] const std::vector<std::string>& found() const { return found_; }
  // Returns the first folder that lies too deep and was not searched; "": none.
  [[nodiscard]] const std::string& too_deep() const { return too_deep_; }

 private:
  // Returns false if a limit was reached.
  bool Below(const std::filesystem::path& path, int depth) {
    if (folders_++ == limits_.folders) return false;
    std::error_code error;
    if (std::filesystem::is_regular_file(path / "metadata", error)) found_.push_back(path.string());
    std::vector<std::filesystem::path> folders;
    for (std::filesystem::directory_iterator it(path, error), end; !error && it != end;
         it.increment(error)) {
      if (entries_++ == limits_.entries) return false;
      if (it->is_directory(error) && !it->is_symlink(error)) folders.push_back(it->path());
    }
    if (depth == limits_.depth) {
      if (too_deep_.empty() && !folders.empty()) too_deep_ = folders.front().string();
      return true;
    }
    std::sort(folders.begin(), folders.end());
    return std::ranges::all_of(folders, [&](const auto& f) { return Below(f, depth + 1); });
  }

  SearchLimits limits_;
  std::vector<std::string> found_;
  std::string too_deep_;
  size_t folders_ = 0;
  size_t entries_ = 0;  // of all folders
};

}  // namespace

struct TraceReader::Trace {
  std::string folder;
  TraceClass trace_class;
};

TraceReader::TraceReader(TraceReader&&) noexcept = default;
TraceReader& TraceReader::operator=(TraceReader&&) noexcept = default;
TraceReader::~TraceReader() = default;

Result<TraceReader> TraceReader::Open(const std::string& path, const SearchLimits& limits) {
  std::error_code error;
  if (!std::filesystem::exists(path, error)) {
    return Fail(ErrorCode::kNotFound, path + ": there is no such folder");
  }
  if (!std::filesystem::is_directory(path, error)) {
    return Fail(ErrorCode::kNotFound, path + " is not a folder");
  }
  Search search(limits);
  WEFT_TRY(search.In(path));
  std::string unsearched;
  if (!search.too_deep().empty()) {
    unsearched = search.too_deep() + ": folders that lie this deep in " + path +
                 " are not searched for traces; name the folder of a trace there";
  }
  if (search.found().empty()) {
    return Fail(ErrorCode::kNotFound, path + ": there is no trace in it" +
                                          (unsearched.empty() ? "" : " (" + unsearched + ")"));
  }
  TraceReader reader;
  if (!unsearched.empty()) reader.problems_.push_back(unsearched);
  for (const std::string& folder : search.found()) reader.OpenTrace(folder);
  for (size_t i = 0; i < reader.streams_.size(); i++) {
    if (reader.Advance(i)) reader.Insert(i);
  }
  return reader;
}

void TraceReader::OpenTrace(const std::string& folder) {
  const std::string metadata_path = folder + "/metadata";
  const auto text = ReadFile(metadata_path, kMaxMetadataBytes);
  if (!text) return problems_.push_back(text.error().message);
  auto parsed = ParseMetadata(*text);
  if (!parsed) {
    problems_.push_back(metadata_path + ": " + parsed.error().message);
    // A tracer that was killed may leave a partial fragment; what stands before it is good.
    const size_t whole = text->rfind("\n\n");
    if (whole != std::string::npos) parsed = ParseMetadata(text->substr(0, whole + 2));
    if (!parsed) return;
  }
  for (const std::string& problem : parsed->problems) {
    problems_.push_back(metadata_path);
    problems_.back().append(": ").append(problem);
  }
  traces_.push_back(std::make_unique<Trace>(Trace{folder, std::move(*parsed)}));
  std::vector<std::string> files;
  std::error_code error;
  for (std::filesystem::directory_iterator it(folder, error), end; !error && it != end;
       it.increment(error)) {
    const std::string name = it->path().filename().string();
    if (it->is_regular_file(error) && name != "metadata" && name[0] != '.') {
      files.push_back(it->path().string());
    }
  }
  std::sort(files.begin(), files.end());
  OpenStreams(files);
}

void TraceReader::OpenStreams(const std::vector<std::string>& files) {
  struct Group {
    std::unique_ptr<StreamReader> reader;                 // of one of the files
    std::vector<std::pair<uint64_t, std::string>> files;  // with the times when they begin
  };
  std::vector<Group> groups;
  std::map<std::pair<uint64_t, uint64_t>, size_t> known;  // stream class and instance -> group
  for (const std::string& file : files) {
    auto reader = OpenStream(file);
    if (!reader) {
      problems_.push_back(reader.error().message);
      continue;
    }
    bytes_ += (*reader)->size();
    const auto identity = (*reader)->Identify();
    if (identity) {
      const auto [at, is_new] =
          known.try_emplace({identity->stream_class, identity->instance}, groups.size());
      if (!is_new) {
        groups[at->second].files.emplace_back(identity->begin, file);
        continue;
      }
    }
    groups.push_back({std::move(*reader), {{identity ? identity->begin : 0, file}}});
  }
  for (Group& group : groups) {
    std::ranges::sort(group.files);
    if (group.files.front().second != group.reader->file()) {
      auto reader = OpenStream(group.files.front().second);
      if (!reader) {
        problems_.push_back(reader.error().message);
        continue;
      }
      group.reader = std::move(*reader);
    }
    if (streams_.size() == kMaxStreams) {
      problems_.push_back(group.reader->file() + ": too many streams");
      continue;
    }
    streams_.push_back(std::move(group.reader));
    std::deque<std::string>& later = later_files_.emplace_back();
    for (size_t i = 1; i < group.files.size(); i++) later.push_back(group.files[i].second);
  }
}

Result<std::unique_ptr<StreamReader>> TraceReader::OpenStream(const std::string& file) const {
  WEFT_ASSIGN(UniqueFd fd, OpenRegular(file));
  return std::make_unique<StreamReader>(traces_.back()->trace_class, file, std::move(fd));
}

uint64_t TraceReader::bytes_read() const {
  uint64_t bytes = 0;
  for (const auto& stream : streams_) bytes += stream->packet_offset();
  return std::min(bytes, bytes_);
}

// Ties are broken as babeltrace2 does: by trace, stream class, stream.
bool TraceReader::Before(size_t a, size_t b) const {
  const int64_t time_a = streams_[a]->item().time_ns;
  const int64_t time_b = streams_[b]->item().time_ns;
  if (time_a != time_b) return time_a < time_b;
  const auto key = [this](size_t i) {
    const StreamReader& s = *streams_[i];
    return std::make_tuple(s.trace().uuid, s.stream()->id, s.instance_id(), i);
  };
  return key(a) < key(b);
}

bool TraceReader::Advance(size_t stream) {
  StreamReader& reader = *streams_[stream];
  std::deque<std::string>& later = later_files_[stream];
  bool more = reader.Next(problems_);
  for (; !more && !later.empty(); later.pop_front()) {
    auto fd = OpenRegular(later.front());
    if (!fd) {
      problems_.push_back(fd.error().message);
      continue;
    }
    reader.Continue(later.front(), std::move(*fd));
    more = reader.Next(problems_);
  }
  problems_.resize(std::min(problems_.size(), kMaxProblems));
  return more;
}

void TraceReader::Insert(size_t stream) {
  heap_.push_back(stream);
  std::push_heap(heap_.begin(), heap_.end(), [this](size_t a, size_t b) { return Before(b, a); });
}

StreamReader* TraceReader::Next() {
  if (current_ && Advance(*current_)) {
    // Often the next event is one of the same stream.
    if (heap_.empty() || Before(*current_, heap_.front())) return streams_[*current_].get();
    Insert(*current_);
  }
  current_.reset();
  if (heap_.empty()) return nullptr;
  std::pop_heap(heap_.begin(), heap_.end(), [this](size_t a, size_t b) { return Before(b, a); });
  current_ = heap_.back();
  heap_.pop_back();
  return streams_[*current_].get();
}

}  // namespace weft::ctf
