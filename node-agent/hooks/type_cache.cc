// SPDX-License-Identifier: Apache-2.0
// See type_cache.h.
#include "node-agent/hooks/type_cache.h"

#include <elf.h>
#include <fcntl.h>
#include <poll.h>
#include <spawn.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstdlib>
#include <cstring>
#include <optional>

#include "lib/base/copy_fd.h"
#include "lib/base/open_in_root.h"
#include "lib/elf/elf_image.h"
#include "node-agent/hooks/limits.h"

namespace weft::hooks {
namespace {

constexpr const char* kDebugFolder = "/usr/lib/debug";

// What a file says of its debug information.
struct DebugNotes {
  bool has_types = false;
  bool has_symbols = false;
  bool has_packed_symbols = false;
  std::string build_id;  // hexadecimal
  std::string link;      // a file name
};

std::string BuildIdIn(Bytes notes) {
  constexpr char kHex[] = "0123456789abcdef";
  constexpr size_t kHead = sizeof(Elf64_Nhdr), kName = 4;  // "GNU"
  for (size_t at = 0; at + kHead + kName <= notes.size();) {
    Elf64_Nhdr head{};
    std::memcpy(&head, notes.data() + at, kHead);
    const size_t desc = at + kHead + ((size_t{head.n_namesz} + 3) & ~size_t{3});
    if (head.n_namesz > kMaxNoteBytes || head.n_descsz > kMaxNoteBytes ||
        desc + head.n_descsz > notes.size())
      return "";
    if (head.n_type == NT_GNU_BUILD_ID && head.n_namesz == kName && head.n_descsz > 1 &&
        std::memcmp(notes.data() + at + kHead, "GNU", kName) == 0) {
      std::string text;
      for (const uint8_t byte : notes.subspan(desc, head.n_descsz))
        text.append(1, kHex[byte >> 4]).append(1, kHex[byte & 15]);
      return text;
    }
    at = desc + ((size_t{head.n_descsz} + 3) & ~size_t{3});
  }
  return "";
}

Result<DebugNotes> NotesOf(int file) {
  DebugNotes notes;
  WEFT_ASSIGN(const ElfImage image, ElfImage::Read(file));
  image.EachSection([&](const ElfSection& section) {
    if (section.name == ".debug_info" && section.header.sh_type != SHT_NOBITS)
      notes.has_types = true;
    if (section.header.sh_type == SHT_SYMTAB) notes.has_symbols = true;
    if (section.name == kPackedSymbols) notes.has_packed_symbols = true;
    const bool is_id = section.name == ".note.gnu.build-id",
               is_link = section.name == ".gnu_debuglink";
    if ((!is_id && !is_link) || section.header.sh_size > kMaxNoteBytes) return true;
    const auto bytes = section.bytes();
    if (bytes && is_id) notes.build_id = BuildIdIn(*bytes);
    if (bytes && is_link) {
      const auto* text = reinterpret_cast<const char*>(bytes->data());
      notes.link.assign(text, strnlen(text, bytes->size()));
    }
    return true;
  });
  if (notes.link.find('/') != std::string::npos) notes.link.clear();
  return notes;
}

std::vector<std::string> PlacesOf(const DebugNotes& notes, const std::string& path) {
  std::vector<std::string> places;
  if (!notes.build_id.empty())
    places.push_back(std::string(kDebugFolder) + "/.build-id/" + notes.build_id.substr(0, 2) + "/" +
                     notes.build_id.substr(2) + ".debug");
  const std::string folder = path.substr(0, path.rfind('/'));
  if (!notes.link.empty() && path.starts_with('/'))
    for (const std::string& place :
         {folder + "/", folder + "/.debug/", kDebugFolder + folder + "/"})
      places.push_back(place + notes.link);
  return places;
}

// Opens the file that was split off an object, if it has the same build-id and what is looked for.
std::optional<UniqueFd> OpenSplitOff(const DebugNotes& notes, const std::string& root,
                                     const std::string& path, bool DebugNotes::* has) {
  if (notes.build_id.empty()) return std::nullopt;
  for (const std::string& place : PlacesOf(notes, path)) {
    auto file = OpenInRoot(root, place);
    if (!file) continue;
    const auto found = NotesOf(file->get());
    if (found && (*found).*has && found->build_id == notes.build_id) return std::move(*file);
  }
  return std::nullopt;
}

// The process that reads, until it is reaped.
class Child {
 public:
  explicit Child(pid_t pid) : pid_(pid) {}
  Child(const Child&) = delete;
  Child& operator=(const Child&) = delete;
  ~Child() {
    kill(pid_, SIGKILL);
    while (waitpid(pid_, nullptr, 0) < 0 && errno == EINTR) {
    }
  }

 private:
  pid_t pid_;
};

Result<pid_t> Spawn(const std::string& program, const std::vector<std::string>& arguments,
                    int memory, int answer, int file) {
  posix_spawn_file_actions_t actions;
  posix_spawnattr_t attributes;
  posix_spawn_file_actions_init(&actions);
  posix_spawnattr_init(&attributes);
  sigset_t none, all;
  sigemptyset(&none);
  sigfillset(&all);
  posix_spawnattr_setsigmask(&attributes, &none);
  posix_spawnattr_setsigdefault(&attributes, &all);
  posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF);
  posix_spawn_file_actions_adddup2(&actions, memory, 0);
  posix_spawn_file_actions_adddup2(&actions, answer, 1);
  posix_spawn_file_actions_addopen(&actions, 2, "/dev/null", O_WRONLY, 0);
  posix_spawn_file_actions_adddup2(&actions, file, 3);
  std::vector<char*> list{const_cast<char*>("weft-types")};
  for (const std::string& argument : arguments) list.push_back(const_cast<char*>(argument.c_str()));
  list.push_back(nullptr);
  char* const environment[] = {nullptr};
  pid_t pid = 0;
  const int e = posix_spawn(&pid, program.c_str(), &actions, &attributes, list.data(), environment);
  posix_spawn_file_actions_destroy(&actions);
  posix_spawnattr_destroy(&attributes);
  if (e == 0) return pid;
  errno = e;
  return FailErrno(program);
}

Result<std::string> ReadAnswer(int from) {
  const auto end = std::chrono::steady_clock::now() + kTypesPatience;
  std::string text;
  char buffer[65536];
  for (;;) {
    const auto left = std::chrono::duration_cast<std::chrono::milliseconds>(
        end - std::chrono::steady_clock::now());
    pollfd wait{from, POLLIN, 0};
    if (left.count() <= 0 || poll(&wait, 1, static_cast<int>(left.count())) == 0)
      return Fail(ErrorCode::kTimeout, "reading its debug information takes longer than " +
                                           std::to_string(kTypesPatience.count()) + " s");
    const ssize_t count = read(from, buffer, sizeof(buffer));
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) return FailErrno("weft-types");
    if (count == 0) break;
    text.append(buffer, static_cast<size_t>(count));
    if (text.size() > kMaxTypesBytes)
      return Fail(ErrorCode::kLimit, "the types of its functions are too many");
  }
  if (text.empty())
    return Fail(ErrorCode::kInvalid,
                "its debug information cannot be read, or not in the memory "
                "that is allowed for it");
  return text;
}

// Runs weft-types and returns its answer. `argument`: nullptr: none. `memory`: its descriptor 0.
Result<std::string> Run(const std::string& program, const std::vector<std::string>& arguments,
                        int memory, int file) {
  const UniqueFd safe = CopyFd(file);  // not one of the numbers that others get below
  int ends[2];
  if (!safe || pipe2(ends, O_CLOEXEC) != 0) return FailErrno("weft-types");
  const UniqueFd from(ends[0]);
  UniqueFd to(ends[1]);
  WEFT_ASSIGN(const pid_t pid, Spawn(program, arguments, memory, to.get(), safe.get()));
  const Child child(pid);
  to.reset();
  return ReadAnswer(from.get());
}

Result<UniqueFd> Unpack(const std::string& program, int object) {
  UniqueFd to(memfd_create("weft-types", MFD_CLOEXEC));
  if (!to) return FailErrno("weft-types");
  WEFT_ASSIGN(const std::string answer, Run(program, {kUnpack}, to.get(), object));
  if (answer != kTypesDone) return Fail(ErrorCode::kInvalid, "its packed symbols cannot be read");
  return to;
}

}  // namespace

Result<UniqueFd> OpenDebugFile(int object, const std::string& root, const std::string& path) {
  WEFT_ASSIGN(const DebugNotes notes, NotesOf(object));
  if (notes.has_types) {
    UniqueFd copy = CopyFd(object);
    if (!copy) return FailErrno(path);
    return copy;
  }
  if (auto file = OpenSplitOff(notes, root, path, &DebugNotes::has_types)) return std::move(*file);
  return Fail(ErrorCode::kNotFound, "it has no debug information");
}

std::vector<UniqueFd> OpenMoreSymbols(const std::string& program, int object,
                                      const std::string& root, const std::string& path) {
  std::vector<UniqueFd> files;
  const auto notes = NotesOf(object);
  if (!notes || notes->has_symbols) return files;
  if (auto file = OpenSplitOff(*notes, root, path, &DebugNotes::has_symbols)) {
    files.push_back(std::move(*file));
  } else if (notes->has_packed_symbols) {
    if (auto unpacked = Unpack(program, object)) files.push_back(std::move(*unpacked));
  }
  return files;
}

Result<TypesByAddress> RunTypes(const std::string& program, int file,
                                const std::vector<uint64_t>& addresses,
                                const std::set<std::string>& paths) {
  const UniqueFd list(memfd_create("weft-types", MFD_CLOEXEC));
  const size_t bytes = addresses.size() * sizeof(uint64_t);
  if (!list || write(list.get(), addresses.data(), bytes) != static_cast<ssize_t>(bytes))
    return FailErrno("weft-types");
  std::vector<std::string> arguments(paths.begin(), paths.end());
  if (arguments.size() > kMaxPaths) arguments.resize(kMaxPaths);
  WEFT_ASSIGN(const std::string text, Run(program, arguments, list.get(), file));
  return ParseTypes(text);
}

std::string TypesProgram() {
  char path[4096];
  const ssize_t size = readlink("/proc/self/exe", path, sizeof(path));
  const std::string self(path, size > 0 ? static_cast<size_t>(size) : 0);
  return self.substr(0, self.rfind('/') + 1) + "weft-types";
}

Result<TypesByAddress> TypeCache::Find(int object, const std::string& root, const std::string& path,
                                       const std::vector<uint64_t>& addresses,
                                       const std::set<std::string>& paths) {
  WEFT_ASSIGN(const UniqueFd file, OpenDebugFile(object, root, path));
  struct stat st{};
  if (fstat(file.get(), &st) != 0) return FailErrno(path);
  const Key key(st.st_dev, st.st_ino, static_cast<uint64_t>(st.st_size),
                st.st_mtim.tv_sec * 1'000'000'000 + st.st_mtim.tv_nsec, paths);
  if (entries_.size() >= kMaxTypedFiles && !entries_.contains(key)) entries_.clear();
  Entry& entry = entries_[key];
  std::vector<uint64_t> missing;
  std::ranges::copy_if(addresses, std::back_inserter(missing),
                       [&](uint64_t address) { return !entry.asked.contains(address); });
  if (!missing.empty()) {
    entry.asked.insert(missing.begin(), missing.end());
    auto read = RunTypes(TypesProgram(), file.get(), missing, paths);
    entry.status = read ? Status() : std::unexpected(read.error());
    if (read) entry.types.merge(*read);
  }
  if (!entry.status) return std::unexpected(entry.status.error());
  return entry.types;
}

}  // namespace weft::hooks
