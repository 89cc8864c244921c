// SPDX-License-Identifier: Apache-2.0
// See type_cache.h.
#include "node-agent/hooks/type_cache.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <optional>

#include "lib/base/copy_fd.h"
#include "lib/base/open_in_root.h"
#include "node-agent/hooks/debug_notes.h"
#include "node-agent/hooks/helper_program.h"
#include "node-agent/hooks/limits.h"

namespace weft::hooks {
namespace {

constexpr const char* kDebugFolder = "/usr/lib/debug";
// The memory that an address takes in Entry::asked: three links and a color, the address, and what
// malloc adds.
constexpr size_t kAskedBytes = 48;

std::string PlaceByBuildId(const std::string& build_id) {
  return std::string(kDebugFolder) + "/.build-id/" + build_id.substr(0, 2) + "/" +
         build_id.substr(2) + ".debug";
}

std::string FolderOf(const std::string& path) { return path.substr(0, path.rfind('/')); }

std::vector<std::string> PlacesOf(const DebugNotes& notes, const std::string& path) {
  std::vector<std::string> places{PlaceByBuildId(notes.build_id)};
  const std::string folder = FolderOf(path);
  if (!notes.link.empty() && path.starts_with('/'))
    for (const std::string& place :
         {folder + "/", folder + "/.debug/", kDebugFolder + folder + "/"})
      places.push_back(place + notes.link);
  return places;
}

// A file with debug information or symbols, and where it was found.
struct Found {
  UniqueFd file;
  DebugNotes notes;
  std::string place;
};

// Opens the first file that has this build-id and what is looked for.
std::optional<Found> OpenFirst(const std::string& root, const std::vector<std::string>& places,
                               const std::string& build_id, bool DebugNotes::* has) {
  if (build_id.empty()) return std::nullopt;
  for (const std::string& place : places) {
    auto file = OpenInRoot(root, place);
    if (!file) continue;
    auto notes = NotesOf(file->get());
    if (notes && (*notes).*has && notes->build_id == build_id)
      return Found{.file = std::move(*file), .notes = std::move(*notes), .place = place};
  }
  return std::nullopt;
}

// Opens the file that was split off an object.
std::optional<Found> OpenSplitOff(const DebugNotes& notes, const std::string& root,
                                  const std::string& path, bool DebugNotes::* has) {
  if (notes.build_id.empty()) return std::nullopt;
  return OpenFirst(root, PlacesOf(notes, path), notes.build_id, has);
}

// Opens the file that dwz made of parts of this one. `place`: where this one was found.
Result<UniqueFd> OpenShared(const DebugNotes& notes, const std::string& root,
                            const std::string& place, const DebugSource& source) {
  const std::string& name = notes.shared;
  std::vector<std::string> places;
  // The place may be a symbolic link, from which a relative name does not lead there.
  if (name.starts_with('/'))
    places = {name};
  else
    places = {FolderOf(place) + "/" + name,
              std::string(kDebugFolder) + "/.dwz/" + name.substr(name.rfind('/') + 1)};
  if (!notes.shared_id.empty()) places.push_back(PlaceByBuildId(notes.shared_id));
  if (auto found = OpenFirst(root, places, notes.shared_id, &DebugNotes::has_types))
    return std::move(found->file);
  if (source.is_there()) return source.server->Find(notes.shared_id, source.pod);
  return Fail(ErrorCode::kUnsupported,
              "parts of its debug information are in a file that dwz made, which is not there");
}

// Runs weft-types and returns its answer. `memory`: its descriptor 0.
Result<std::string> Run(const std::string& program, const std::vector<std::string>& arguments,
                        int memory, int file, int shared = -1) {
  auto answer = RunHelper({.program = program,
                           .arguments = arguments,
                           .environment = {},
                           .input = memory,
                           .file = file,
                           .second = shared,
                           .patience = kTypesPatience,
                           .max_bytes = kMaxTypesBytes});
  if (!answer && answer.error().code == ErrorCode::kTimeout)
    return Fail(ErrorCode::kTimeout, "reading its debug information takes longer than " +
                                         std::to_string(kTypesPatience.count()) + " s");
  if (!answer && answer.error().code == ErrorCode::kLimit)
    return Fail(ErrorCode::kLimit, "the types of its functions are too many");
  if (answer && answer->empty())
    return Fail(ErrorCode::kInvalid,
                "its debug information cannot be read, or not in the memory "
                "that is allowed for it");
  return answer;
}

Result<UniqueFd> Unpack(const std::string& program, int object) {
  UniqueFd to(memfd_create("weft-types", MFD_CLOEXEC));
  if (!to) return FailErrno("weft-types");
  WEFT_ASSIGN(const std::string answer, Run(program, {kUnpack}, to.get(), object));
  if (answer != kTypesDone) return Fail(ErrorCode::kInvalid, "its packed symbols cannot be read");
  return to;
}

}  // namespace

Result<DebugFile> OpenDebugFile(int object, const std::string& root, const std::string& path,
                                const DebugSource& source) {
  WEFT_ASSIGN(const DebugNotes notes, NotesOf(object));
  DebugFile debug;
  Found found;
  if (notes.has_types) {
    found = {.file = CopyFd(object), .notes = notes, .place = path};
    if (!found.file) return FailErrno(path);
  } else if (auto split_off = OpenSplitOff(notes, root, path, &DebugNotes::has_types)) {
    found = std::move(*split_off);
  } else if (source.is_there()) {
    WEFT_ASSIGN(found.file, source.server->Find(notes.build_id, source.pod));
    WEFT_ASSIGN(found.notes, NotesOf(found.file.get()));
    debug.is_from_server = true;
  } else {
    return Fail(ErrorCode::kNotFound, "it has no debug information");
  }
  debug.file = std::move(found.file);
  if (found.notes.shared.empty()) return debug;
  auto shared = OpenShared(found.notes, root, found.place, source);
  if (shared)
    debug.shared = std::move(*shared);
  else
    debug.shared_status = std::unexpected(shared.error());
  return debug;
}

std::vector<UniqueFd> OpenMoreSymbols(const std::string& program, int object,
                                      const std::string& root, const std::string& path) {
  std::vector<UniqueFd> files;
  const auto notes = NotesOf(object);
  if (!notes || notes->has_symbols) return files;
  if (auto file = OpenSplitOff(*notes, root, path, &DebugNotes::has_symbols)) {
    files.push_back(std::move(file->file));
  } else if (notes->has_packed_symbols) {
    if (auto unpacked = Unpack(program, object)) files.push_back(std::move(*unpacked));
  }
  return files;
}

Result<std::vector<UniqueFd>> FindSymbols(int object, const DebugSource& source) {
  std::vector<UniqueFd> files;
  WEFT_ASSIGN(const DebugNotes notes, NotesOf(object));
  if (notes.has_symbols) return files;
  WEFT_ASSIGN(UniqueFd file, source.server->Find(notes.build_id, source.pod));
  files.push_back(std::move(file));
  return files;
}

Result<TypesByAddress> RunTypes(const std::string& program, int file,
                                const std::vector<uint64_t>& addresses,
                                const std::set<std::string>& paths, int shared) {
  const UniqueFd list(memfd_create("weft-types", MFD_CLOEXEC));
  const size_t bytes = addresses.size() * sizeof(uint64_t);
  if (!list || write(list.get(), addresses.data(), bytes) != static_cast<ssize_t>(bytes))
    return FailErrno("weft-types");
  std::vector<std::string> arguments(paths.begin(), paths.end());
  if (arguments.size() > kMaxPaths) arguments.resize(kMaxPaths);
  WEFT_ASSIGN(const std::string text, Run(program, arguments, list.get(), file, shared));
  return ParseTypes(text);
}

size_t BytesOf(const TypesByAddress& types) {
  size_t bytes = 0;
  for (const auto& [address, one] : types)
    bytes += sizeof(one) + one.args.size() * sizeof(one.args[0]) +
             one.members.size() * sizeof(*one.members.begin());
  return bytes;
}

void TypeCache::Clear() {
  entries_.clear();
  bytes_ = 0;
  (void)share_.Resize(0);
}

Result<TypesByAddress> TypeCache::Find(const DebugFile& debug,
                                       const std::vector<uint64_t>& addresses,
                                       const std::set<std::string>& paths) {
  struct stat st{};
  if (fstat(debug.file.get(), &st) != 0) return FailErrno("debug information");
  const Key key(st.st_dev, st.st_ino, static_cast<uint64_t>(st.st_size),
                st.st_mtim.tv_sec * 1'000'000'000 + st.st_mtim.tv_nsec,
                static_cast<bool>(debug.shared), paths);
  if (entries_.size() >= kMaxTypedFiles && !entries_.contains(key)) Clear();
  Entry& entry = entries_[key];
  std::vector<uint64_t> missing;
  std::ranges::copy_if(addresses, std::back_inserter(missing),
                       [&](uint64_t address) { return !entry.asked.contains(address); });
  if (!missing.empty()) {
    entry.asked.insert(missing.begin(), missing.end());
    auto read =
        RunTypes(HelperPath("weft-types"), debug.file.get(), missing, paths, debug.shared.get());
    entry.status = read ? Status() : std::unexpected(read.error());
    bytes_ += missing.size() * kAskedBytes + (read ? BytesOf(*read) : 0);
    if (read) entry.types.merge(*read);
  }
  TypesByAddress types = entry.types;
  const Status status = entry.status;
  // What was asked for is remembered also after an error, so it counts.
  if (!share_.Resize(bytes_)) Clear();
  if (!status) return std::unexpected(status.error());
  return types;
}

}  // namespace weft::hooks
