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

// Runs weft-types and returns its answer. `memory`: its descriptor 0.
Result<std::string> Run(const std::string& program, const std::vector<std::string>& arguments,
                        int memory, int file) {
  auto answer = RunHelper({.program = program,
                           .arguments = arguments,
                           .environment = {},
                           .input = memory,
                           .file = file,
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
  if (notes.has_types) {
    UniqueFd copy = CopyFd(object);
    if (!copy) return FailErrno(path);
    return DebugFile{.file = std::move(copy)};
  }
  if (auto file = OpenSplitOff(notes, root, path, &DebugNotes::has_types))
    return DebugFile{.file = std::move(*file)};
  if (!source.is_there()) return Fail(ErrorCode::kNotFound, "it has no debug information");
  WEFT_ASSIGN(UniqueFd file, source.server->Find(notes.build_id, source.pod));
  return DebugFile{.file = std::move(file), .is_from_server = true};
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

Result<TypesByAddress> TypeCache::Find(int file, const std::vector<uint64_t>& addresses,
                                       const std::set<std::string>& paths) {
  struct stat st{};
  if (fstat(file, &st) != 0) return FailErrno("debug information");
  const Key key(st.st_dev, st.st_ino, static_cast<uint64_t>(st.st_size),
                st.st_mtim.tv_sec * 1'000'000'000 + st.st_mtim.tv_nsec, paths);
  if (entries_.size() >= kMaxTypedFiles && !entries_.contains(key)) entries_.clear();
  Entry& entry = entries_[key];
  std::vector<uint64_t> missing;
  std::ranges::copy_if(addresses, std::back_inserter(missing),
                       [&](uint64_t address) { return !entry.asked.contains(address); });
  if (!missing.empty()) {
    entry.asked.insert(missing.begin(), missing.end());
    auto read = RunTypes(HelperPath("weft-types"), file, missing, paths);
    entry.status = read ? Status() : std::unexpected(read.error());
    if (read) entry.types.merge(*read);
  }
  if (!entry.status) return std::unexpected(entry.status.error());
  return entry.types;
}

}  // namespace weft::hooks
