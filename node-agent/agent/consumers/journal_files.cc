// SPDX-License-Identifier: Apache-2.0
// See journal_files.h.
#include "node-agent/agent/consumers/journal_files.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <nlohmann/json.hpp>
#include <thread>

#include "lib/ipc/journal_version.h"
#include "node-agent/agent/base/limits.h"
#include "node-agent/agent/session/session.h"

namespace weft::agent {
namespace {

using Json = nlohmann::json;

constexpr const char* kNoteSuffix = ".json";  // namespaces have no dots in their names
constexpr mode_t kMode = 0600;

Status Lock(const UniqueFd& fd, const std::string& path, JournalFiles::Deadline until) {
  while (flock(fd.get(), LOCK_EX | LOCK_NB) != 0) {
    if (errno != EWOULDBLOCK && errno != EINTR) return FailErrno(path);
    if (std::chrono::steady_clock::now() >= until)
      return Fail(ErrorCode::kTimeout,
                  path +
                      ": a process of an earlier keeper still has this journal, and reads the "
                      "rings that it names; it is tried again");
    std::this_thread::sleep_for(kJournalRetry);
  }
  return {};
}

}  // namespace

JournalNote JournalNote::Now() {
  return {.realtime_offset_ns = RealtimeOffset(), .clock_uuid = BootUuid()};
}

Result<JournalNote> JournalNote::Parse(const std::string& text) {
  JournalNote note;
  const Json json = Json::parse(text, nullptr, false);
  try {
    if (json.at("version").get<uint32_t>() != ipc::kJournalVersion)
      return Fail(ErrorCode::kUnsupported, "journal: of another version of weft");
    json.at("realtime_offset_ns").get_to(note.realtime_offset_ns);
    json.at("clock_uuid").get_to(note.clock_uuid);
  } catch (const Json::exception& e) {
    return Fail(ErrorCode::kCorrupt, std::string("journal's note: ") + e.what());
  }
  if (note.clock_uuid != BootUuid())
    return Fail(ErrorCode::kUnsupported, "journal: of another boot of this machine");
  return note;
}

std::string JournalNote::Text() const {
  return Json{{"version", ipc::kJournalVersion},
              {"realtime_offset_ns", realtime_offset_ns},
              {"clock_uuid", clock_uuid}}
      .dump();
}

std::string JournalFiles::NoteOf(const std::string& name) const {
  return PathOf(name) + kNoteSuffix;
}

Result<JournalFile> JournalFiles::MakeInMemory() {
  JournalFile made{.fd = UniqueFd(memfd_create("weft-journal", MFD_CLOEXEC)),
                   .note = JournalNote::Now()};
  if (!made.fd) return FailErrno("memfd_create");
  return made;
}

Result<JournalFile> JournalFiles::Make(const std::string& name) const {
  if (dir_.empty()) return MakeInMemory();
  Remove(name);
  auto made = MakeFile(name);
  if (!made) Remove(name);  // an empty journal is believed, too
  return made;
}

Result<JournalFile> JournalFiles::MakeFile(const std::string& name) const {
  JournalFile made{.fd = {}, .note = JournalNote::Now()};
  std::ofstream note(NoteOf(name), std::ios::trunc);
  note << made.note.Text();
  note.close();
  if (!note) return Fail(ErrorCode::kIo, NoteOf(name) + ": cannot be written");
  made.fd.reset(open(PathOf(name).c_str(), O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, kMode));
  if (!made.fd) return FailErrno(PathOf(name));
  WEFT_TRY(Lock(made.fd, PathOf(name), {}));
  return made;
}

// The lock comes first: also a journal that is of no use is waited for, since its consumer reads
// the rings.
Result<JournalFile> JournalFiles::Open(const std::string& name, Deadline until) const {
  if (dir_.empty()) return Fail(ErrorCode::kNotFound, name + ": no journal");
  JournalFile opened;
  opened.fd.reset(open(PathOf(name).c_str(), O_RDWR | O_CLOEXEC | O_NOFOLLOW));
  if (!opened.fd) return Fail(ErrorCode::kNotFound, PathOf(name) + ": no journal");
  WEFT_TRY(Lock(opened.fd, PathOf(name), until));
  std::ifstream in(NoteOf(name));
  const std::string text{std::istreambuf_iterator<char>(in), {}};
  WEFT_ASSIGN(opened.note, JournalNote::Parse(text));
  return opened;
}

// The note last: a journal without one is not believed.
void JournalFiles::Remove(const std::string& name) const {
  if (dir_.empty()) return;
  unlink(PathOf(name).c_str());
  unlink(NoteOf(name).c_str());
}

void JournalFiles::KeepOnly(const std::set<std::string>& names) const {
  if (dir_.empty()) return;
  std::set<std::string> there;
  std::error_code error;
  for (const auto& file : std::filesystem::directory_iterator(dir_, error))
    there.insert(file.path().stem().string());
  for (const std::string& name : there)
    if (!names.contains(name)) Remove(name);
}

}  // namespace weft::agent
