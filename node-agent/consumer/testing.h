// SPDX-License-Identifier: Apache-2.0
// For tests of the consumer: a folder that goes away, a consumer that writes into it, and what
// babeltrace2 reads from it.
#ifndef WEFT_NODE_AGENT_CONSUMER_TESTING_H_
#define WEFT_NODE_AGENT_CONSUMER_TESTING_H_

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <functional>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "node-agent/consumer/consumer.h"
#include "node-agent/consumer/folder_sink.h"

namespace weft::consumer::testing {

class Folder {
 public:
  Folder() {
    std::string name = (std::filesystem::temp_directory_path() / "weft-test-XXXXXX").string();
    path_ = ::mkdtemp(name.data());
  }
  ~Folder() { std::filesystem::remove_all(path_); }
  Folder(const Folder&) = delete;
  Folder& operator=(const Folder&) = delete;
  [[nodiscard]] const std::filesystem::path& path() const { return path_; }
  [[nodiscard]] UniqueFd Open() const {
    return UniqueFd(::open(path_.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  }

 private:
  std::filesystem::path path_;
};

inline UniqueFd Duplicate(const UniqueFd& fd) {
  return UniqueFd(::fcntl(fd.get(), F_DUPFD_CLOEXEC, 0));
}

inline ipc::ChannelDefinition Definition(uint64_t id = 1, const std::string& path = "ust") {
  ipc::ChannelDefinition d;
  d.id = id;
  d.trace = "test";
  d.channel = "user";
  d.trace_path = path;
  d.trace_uuid[0] = 1;
  d.trace_uuid[15] = static_cast<uint8_t>(path.size());
  d.ctf_version = "1.8";
  d.hostname = "host";
  d.domain = "ust";
  return d;
}

// A consumer on a folder and a journal; may be made again on the same ones.
struct Running {
  Running(const Folder& folder, const UniqueFd& journal) : maker(folder.Open()) {
    auto made = Consumer::Make({}, Duplicate(journal), sinks,
                               [this](const std::string& text) { notices.push_back(text); });
    if (!made) {
      std::fprintf(stderr, "consumer: %s\n", made.error().message.c_str());
      std::abort();
    }
    consumer = std::move(*made);
  }

  // Rounds until `is_done`. False: it is not, for longer than disk and CPUs may be busy.
  bool RunUntil(const std::function<bool()>& is_done) const {
    const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(60);
    while (!is_done()) {
      if (std::chrono::steady_clock::now() > end) return false;
      consumer->Round();
      std::this_thread::yield();
    }
    return true;
  }

  // Stops all channels and reads to the end. False: it does not end.
  bool Drain() {
    std::vector<uint64_t> ids;
    for (Channel* channel : consumer->Channels()) ids.push_back(channel->id());
    consumer->StopChannels(ids);
    const auto is_drained = [this] {
      bool all = true;
      for (Channel* channel : consumer->Channels()) all = all && channel->drained();
      return all;
    };
    return RunUntil(is_drained) && consumer->FlushAll().has_value();
  }

  store::DirectoryFileMaker maker;
  std::unique_ptr<BackgroundWriter> writer =
      std::move(*BackgroundWriter::Make([] { return Status{}; }));
  FolderSinks sinks{maker, *writer};
  std::vector<std::string> notices;
  std::unique_ptr<Consumer> consumer;
};

// Returns the lines that babeltrace2 prints for a folder; *errors gets its stderr.
inline std::vector<std::string> Babeltrace(const std::filesystem::path& path,
                                           std::string* errors = nullptr) {
  const std::string err = path.string() + ".stderr";
  const std::string command = "babeltrace2 " + path.string() + " 2>" + err;
  std::vector<std::string> lines;
  FILE* pipe = ::popen(command.c_str(), "r");
  if (pipe == nullptr) return lines;
  char* line = nullptr;
  size_t room = 0;
  for (ssize_t n; (n = ::getline(&line, &room, pipe)) > 0;) {
    lines.emplace_back(line, static_cast<size_t>(n) - (line[n - 1] == '\n' ? 1 : 0));
  }
  std::free(line);
  ::pclose(pipe);
  if (errors != nullptr) {
    FILE* file = std::fopen(err.c_str(), "r");
    char text[4096];
    const size_t n = file == nullptr ? 0 : std::fread(text, 1, sizeof(text), file);
    errors->assign(text, n);
    if (file != nullptr) std::fclose(file);
  }
  ::unlink(err.c_str());
  return lines;
}

// Returns the number behind "NAME = " in a line; ~0 if there is none.
inline uint64_t Value(const std::string& line, const std::string& name) {
  const size_t at = line.find(" " + name + " = ");
  return at == std::string::npos ? ~uint64_t{0}
                                 : std::strtoull(line.c_str() + at + name.size() + 4, nullptr, 10);
}

}  // namespace weft::consumer::testing

#endif  // WEFT_NODE_AGENT_CONSUMER_TESTING_H_
