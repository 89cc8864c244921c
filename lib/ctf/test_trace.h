// SPDX-License-Identifier: Apache-2.0
// For tests: a trace in a temporary folder, written with PacketWriter and the metadata writers.
// Thread-safety: one thread per object.
#ifndef WEFT_LIB_CTF_TEST_TRACE_H_
#define WEFT_LIB_CTF_TEST_TRACE_H_

#include <cstdio>
#include <cstdlib>
#include <deque>
#include <filesystem>
#include <fstream>
#include <memory>
#include <sstream>
#include <string>
#include <vector>

#include "lib/base/uuid.h"
#include "lib/ctf/event_class.h"
#include "lib/ctf/metadata_writer.h"
#include "lib/ctf/packet_writer.h"
#include "lib/ctf/record_builder.h"

namespace weft::ctf {

class TempFolder {
 public:
  TempFolder() {
    std::string name = (std::filesystem::temp_directory_path() / "weft-test-XXXXXX").string();
    path_ = ::mkdtemp(name.data());
  }
  ~TempFolder() { std::filesystem::remove_all(path_); }
  TempFolder(const TempFolder&) = delete;
  TempFolder& operator=(const TempFolder&) = delete;
  [[nodiscard]] const std::string& path() const { return path_; }

 private:
  std::string path_;
};

class TestTrace {
 public:
  // 2026-11-21 10:30:00 UTC: any time will do.
  static constexpr uint64_t kStart = 1795257000'000000000;

  explicit TestTrace(Version version = Version::k1_8) {
    info.version = version;
    info.uuid = ParseUuid("2a6422d0-6cee-11e0-8c08-cb07d7b3a564").value();
    info.clock.uuid = ParseUuid("bdb25d1d-2af1-442e-9804-2d65f094f4c7").value();
    info.env = MakeEnv({.hostname = "host", .trace_name = "test"});
  }

  // Writes what `info` says; call before anything is added.
  void Begin() { Append("metadata", TraceMetadata(info)); }

  Channel& AddChannel(const ChannelSchema& schema) {
    channels_.push_back(MakeChannel(schema).value());
    Append("metadata", ChannelMetadata(info, channels_.back()));
    return channels_.back();
  }

  EventClass& AddEvent(uint32_t id, const Channel& channel, const EventDescription& event) {
    events_.push_back(MakeEventClass(id, channel, event).value());
    Append("metadata", EventMetadata(info, events_.back()));
    return events_.back();
  }

  // The file begins with the empty packet that a stream begins with.
  size_t AddStream(const Channel& channel, uint32_t cpu, size_t capacity = kMinPacketCapacity) {
    StreamConfig config{
        .trace_uuid = info.uuid, .channel_id = channel.id, .instance_id = cpu, .cpu_id = cpu};
    streams_.push_back({channel.name + "_" + std::to_string(cpu),
                        std::make_unique<PacketWriter>(config, capacity)});
    Finish(streams_.size() - 1, 0, kStart);
    return streams_.size() - 1;
  }

  PacketWriter& writer(size_t stream) { return *streams_[stream].writer; }
  [[nodiscard]] std::string file(size_t stream) const {
    return folder_.path() + "/" + streams_[stream].name;
  }

  void Finish(size_t stream, uint64_t discarded, uint64_t end) {
    const auto bytes = writer(stream).Finish(discarded, end);
    Append(streams_[stream].name, {reinterpret_cast<const char*>(bytes.data()), bytes.size()});
  }

  void Append(const std::string& name, std::string_view bytes) const {
    std::ofstream file(folder_.path() + "/" + name, std::ios::app | std::ios::binary);
    file << bytes;
  }

  [[nodiscard]] const std::string& path() const { return folder_.path(); }

  TraceInfo info;

 private:
  struct Stream {
    std::string name;
    std::unique_ptr<PacketWriter> writer;
  };

  TempFolder folder_;
  std::deque<Channel> channels_;
  std::deque<EventClass> events_;
  std::vector<Stream> streams_;
};

inline std::string ReadAll(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  std::stringstream text;
  text << file.rdbuf();
  return text.str();
}

// The result of a command: its stdout and stderr, and its exit status.
struct CommandResult {
  std::string out, err;
  int status = -1;
};

inline CommandResult RunCommand(const std::string& command) {
  const TempFolder folder;
  CommandResult result;
  result.status = std::system(
      (command + " >" + folder.path() + "/out 2>" + folder.path() + "/err </dev/null").c_str());
  result.out = ReadAll(folder.path() + "/out");
  result.err = ReadAll(folder.path() + "/err");
  return result;
}

// Returns this machine's babeltrace2; for CTF 2, the one that WEFT_BABELTRACE2 names, if it is set.
struct BabeltraceProgram {
  std::string program;
  int major = 0, minor = 0;

  [[nodiscard]] bool Reads(Version version) const {
    return major == 2 && (version == Version::k1_8 || minor >= 1);
  }
};

inline BabeltraceProgram FindBabeltrace(Version version) {
  const char* named = version == Version::k1_8 ? nullptr : std::getenv("WEFT_BABELTRACE2");
  BabeltraceProgram found{.program = named != nullptr ? named : "babeltrace2"};
  const std::string text = RunCommand(found.program + " --version").out;
  if (std::sscanf(text.c_str(), "Babeltrace %d.%d", &found.major, &found.minor) != 2) return {};
  return found;
}

}  // namespace weft::ctf

#endif  // WEFT_LIB_CTF_TEST_TRACE_H_
