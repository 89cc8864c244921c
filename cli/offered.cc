// SPDX-License-Identifier: Apache-2.0
// See offered.h. How ld.so searches: ld.so(8).
#include "cli/offered.h"

#include <fcntl.h>
#include <glob.h>
#include <limits.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstdlib>
#include <deque>
#include <fstream>
#include <set>
#include <sstream>

#include "cli/elf_file.h"
#include "lib/base/unique_fd.h"

namespace weft::cli {
namespace {

constexpr size_t kMaxLibraries = 1024;
constexpr int kMaxInterpreters = 4;  // a script's interpreter may be a script

class MappedFile {
 public:
  static Result<MappedFile> Open(const std::string& path) {
    UniqueFd fd(open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
    struct stat st{};
    if (!fd || fstat(fd.get(), &st) != 0) return FailErrno(path);
    if (!S_ISREG(st.st_mode)) return Fail(ErrorCode::kInvalid, path + ": not a regular file");
    MappedFile file;
    file.size_ = static_cast<size_t>(st.st_size);
    if (file.size_ == 0) return file;
    file.map_ = mmap(nullptr, file.size_, PROT_READ, MAP_PRIVATE, fd.get(), 0);
    if (file.map_ == MAP_FAILED) return FailErrno(path);
    return file;
  }
  MappedFile(MappedFile&& other) noexcept
      : map_(std::exchange(other.map_, MAP_FAILED)), size_(other.size_) {}
  MappedFile(const MappedFile&) = delete;
  MappedFile& operator=(const MappedFile&) = delete;
  ~MappedFile() {
    if (map_ != MAP_FAILED) munmap(map_, size_);
  }
  [[nodiscard]] Bytes bytes() const {
    return map_ == MAP_FAILED ? Bytes() : Bytes(static_cast<const uint8_t*>(map_), size_);
  }

 private:
  MappedFile() = default;
  void* map_ = MAP_FAILED;
  size_t size_ = 0;
};

// "#!/bin/sh -e": "/bin/sh"; "" for what is no script.
std::string Interpreter(Bytes bytes) {
  const std::string_view text(reinterpret_cast<const char*>(bytes.data()),
                              std::min<size_t>(bytes.size(), PATH_MAX));
  if (!text.starts_with("#!")) return "";
  std::istringstream line(std::string(text.substr(2, text.find('\n') - 2)));
  std::string program;
  line >> program;
  // env(1) looks in PATH for the real one.
  std::string argument;
  if (program.ends_with("/env") && line >> argument) {
    if (auto found = FindProgram(argument)) return *found;
  }
  return program;
}

std::string Directory(const std::string& path) {
  const size_t slash = path.rfind('/');
  return slash == std::string::npos ? "." : path.substr(0, slash == 0 ? 1 : slash);
}

void ReplaceOrigin(std::string& text, const std::string& origin) {
  for (const std::string token : {"${ORIGIN}", "$ORIGIN"})
    for (size_t at; (at = text.find(token)) != std::string::npos;)
      text.replace(at, token.size(), origin);
}

void AddConfigured(const std::string& pattern, std::vector<std::string>& folders, int depth) {
  if (depth > 4) return;
  glob_t found{};
  if (glob(pattern.c_str(), 0, nullptr, &found) == 0) {
    for (size_t i = 0; i < found.gl_pathc; ++i) {
      std::ifstream in(found.gl_pathv[i]);
      for (std::string line; std::getline(in, line);) {
        std::istringstream words(line.substr(0, line.find('#')));
        std::string word;
        if (!(words >> word)) continue;
        if (word == "include") {
          while (words >> word)
            AddConfigured(word[0] == '/' ? word : "/etc/" + word, folders, depth + 1);
        } else if (word[0] == '/') {
          folders.push_back(word);
        }
      }
    }
  }
  globfree(&found);
}

std::vector<std::string> SystemFolders() {
  std::vector<std::string> folders;
  AddConfigured("/etc/ld.so.conf", folders, 0);
  for (const char* folder :
       {"/lib/x86_64-linux-gnu", "/usr/lib/x86_64-linux-gnu", "/lib/aarch64-linux-gnu",
        "/usr/lib/aarch64-linux-gnu", "/lib64", "/usr/lib64", "/lib", "/usr/lib", "/usr/local/lib"})
    folders.emplace_back(folder);
  return folders;
}

std::vector<std::string> EnvironmentFolders() {
  std::vector<std::string> folders;
  const char* list = std::getenv("LD_LIBRARY_PATH");
  std::istringstream in(list != nullptr ? list : "");
  for (std::string part; std::getline(in, part, ':');)
    if (!part.empty()) folders.push_back(part);
  return folders;
}

class Search {
 public:
  Result<Offered> Run(const std::string& program) {
    std::string path = program;
    for (int i = 0; i < kMaxInterpreters; ++i) {
      WEFT_ASSIGN(const MappedFile file, MappedFile::Open(path));
      const std::string interpreter = Interpreter(file.bytes());
      if (interpreter.empty()) break;
      path = interpreter;
    }
    offered_.program = path;
    WEFT_ASSIGN(const bool is_static, Add(path));
    offered_.is_static = is_static;
    while (!queue_.empty() && seen_.size() < kMaxLibraries) {
      const auto [name, folders] = std::move(queue_.front());
      queue_.pop_front();
      const std::string found = Find(name, folders);
      if (found.empty())
        offered_.missing.push_back(name);
      else
        (void)Add(found);  // a library that is no ELF file is ld.so's to complain about
    }
    return std::move(offered_);
  }

 private:
  // Is it a program without an interpreter?
  Result<bool> Add(const std::string& path) {
    WEFT_ASSIGN(const MappedFile file, MappedFile::Open(path));
    auto parsed = ParseElf(file.bytes());
    if (!parsed) return std::unexpected(std::move(parsed).error().Context(path));
    std::vector<std::string> folders;
    for (std::string folder : parsed->search) {
      ReplaceOrigin(folder, Directory(path));
      folders.push_back(std::move(folder));
    }
    for (std::string& name : parsed->needed)
      if (seen_.insert(name).second) queue_.emplace_back(std::move(name), folders);
    if (!parsed->events.empty()) offered_.files.push_back({path, std::move(parsed->events)});
    return parsed->is_program && !parsed->has_interpreter;
  }

  std::string Find(const std::string& name, const std::vector<std::string>& own) const {
    if (name.find('/') != std::string::npos) return access(name.c_str(), R_OK) == 0 ? name : "";
    for (const auto* folders : {&own, &environment_, &system_})
      for (const std::string& folder : *folders) {
        std::string path = folder;
        path.append("/").append(name);
        if (access(path.c_str(), R_OK) == 0) return path;
      }
    return "";
  }

  Offered offered_;
  std::set<std::string> seen_;
  std::deque<std::pair<std::string, std::vector<std::string>>> queue_;
  std::vector<std::string> environment_ = EnvironmentFolders();
  std::vector<std::string> system_ = SystemFolders();
};

}  // namespace

size_t Offered::events() const {
  size_t count = 0;
  for (const OfferedBy& file : files) count += file.events.size();
  return count;
}

std::vector<std::string> Offered::Names() const {
  std::vector<std::string> names;
  for (const OfferedBy& file : files)
    for (const EventDescription& event : file.events) names.push_back(event.name);
  return names;
}

Result<Offered> OfferedByProgram(const std::string& path) { return Search().Run(path); }

Result<Offered> OfferedByProcess(int32_t pid) {
  const std::string proc = "/proc/" + std::to_string(pid);
  const std::string root = proc + "/root";  // as the process sees its files
  std::ifstream maps(proc + "/maps");
  if (!maps) {
    if (access(proc.c_str(), F_OK) != 0)
      return Fail(ErrorCode::kNotFound, "there is no process " + std::to_string(pid));
    return Fail(ErrorCode::kPermission, proc + "/maps: no permission to look at this process");
  }
  Offered offered;
  std::set<std::string> seen;
  bool any = false;
  for (std::string line; std::getline(maps, line);) {
    any = true;
    const size_t at = line.find('/');
    if (at == std::string::npos || !seen.insert(line.substr(at)).second) continue;
    const std::string path = line.substr(at);
    std::string seen_from_here = root;
    seen_from_here.append(path);
    auto file = MappedFile::Open(seen_from_here);
    if (!file) continue;
    auto parsed = ParseElf(file->bytes());
    if (parsed && !parsed->events.empty())
      offered.files.push_back({path, std::move(parsed->events)});
  }
  if (!any)
    return Fail(ErrorCode::kPermission, proc + "/maps: no permission to look at this process");
  return offered;
}

Result<std::string> FindProgram(const std::string& name) {
  struct stat st{};
  const auto check = [&](const std::string& path) -> int {
    if (stat(path.c_str(), &st) != 0) return ENOENT;
    return S_ISREG(st.st_mode) && access(path.c_str(), X_OK) == 0 ? 0 : EACCES;
  };
  if (name.find('/') != std::string::npos) {
    const int e = check(name);
    if (e == 0) return name;
    if (e == ENOENT) return Fail(ErrorCode::kNotFound, name + ": there is no such program");
    return Fail(ErrorCode::kPermission, name + ": not an executable file");
  }
  bool found = false;
  const char* list = std::getenv("PATH");
  std::istringstream in(list != nullptr ? list : "/usr/local/bin:/usr/bin:/bin");
  for (std::string folder; std::getline(in, folder, ':');) {
    std::string path = (folder.empty() ? "." : folder) + "/" + name;
    const int e = check(path);
    if (e == 0) return path;
    found |= e == EACCES;
  }
  if (found) return Fail(ErrorCode::kPermission, name + ": not an executable file");
  return Fail(ErrorCode::kNotFound, name + ": there is no such program in PATH");
}

}  // namespace weft::cli
