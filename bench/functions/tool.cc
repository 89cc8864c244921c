// SPDX-License-Identifier: Apache-2.0
// What the bench of functions asks the agent's own code. Prints a JSON object.
//
//   bench_functions_tool share FILE
//       How many functions of an ELF file could be hooked, and why the others could not.
//   bench_functions_tool off PID
//       Takes all hooks off a process that weft record started.
//   bench_functions_tool switch PID OBJECT FUNCTION THREADS TIMES
//       Waits until the process has that many threads and a hook. Takes the hook off and puts it on
//       again, and prints how long all threads stood still for each, in microseconds.
//   bench_functions_tool attach PID LIBRARY FOLDER THREADS
//       Waits until the process has that many threads. Loads libweft.so into it, and prints how
//       long that took, and how long threads stood still, in microseconds.
//   bench_functions_tool types LIBRARY NAME
//       Loads the library, and reads its functions that the name means with their types, as for a
//       process that has it: twice with one cache. Prints how many were found and typed, the
//       seconds that it took, and the most memory in MB, that of weft-types included, which lies
//       beside this program.
#include <dlfcn.h>
#include <fcntl.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <map>
#include <nlohmann/json.hpp>
#include <string>
#include <thread>
#include <vector>

#include "lib/abi/hooks.h"
#include "lib/base/unique_fd.h"
#include "lib/elf/elf_image.h"
#include "node-agent/attach/load_library.h"
#include "node-agent/hooks/displace.h"
#include "node-agent/hooks/functions.h"
#include "node-agent/hooks/hook_process.h"
#include "node-agent/hooks/stopped_process.h"

namespace {

using nlohmann::json;
using weft::Status;
using weft::hooks::FunctionFile;
using weft::hooks::HookReport;
using weft::hooks::HookRule;
using Clock = std::chrono::steady_clock;

constexpr uint64_t kThunk = uint64_t{64} << 20;  // how far from the function a thunk is taken to be

int Fail(const std::string& what) {
  std::fprintf(stderr, "bench_functions_tool: %s\n", what.c_str());
  return 1;
}

std::vector<HookRule> RulesFor(const std::string& object, const std::string& function) {
  return {{.trace = "bench", .rule = {.name = function, .object = object}}};
}

// The bytes of a file's segments, by the addresses of the file's own numbering.
class Segments {
 public:
  explicit Segments(int file) : file_(file) {
    if (const auto image = weft::ElfImage::Read(file))
      image->EachSegment([this](const GElf_Phdr& segment) {
        if (segment.p_type == PT_LOAD) segments_.push_back(segment);
        return true;
      });
  }
  bool Read(uint64_t address, void* to, size_t size) const {
    return std::ranges::any_of(segments_, [&](const GElf_Phdr& s) {
      return address >= s.p_vaddr && address + size <= s.p_vaddr + s.p_filesz &&
             pread(file_, to, size, static_cast<off_t>(s.p_offset + address - s.p_vaddr)) ==
                 static_cast<ssize_t>(size);
    });
  }

 private:
  int file_;
  std::vector<GElf_Phdr> segments_;
};

// As HookProcess decides.
std::string WhyNot(const FunctionFile& file, const weft::hooks::Function& f,
                   const Segments& segments) {
  if (!f.why_not.empty()) return f.why_not;
  std::vector<uint8_t> code(weft::hooks::CodeBytes(f.value, f.size));
  if (!segments.Read(f.value, code.data(), code.size()))
    return "its symbol is not in the object's code";
  if (!weft::hooks::IsPadding(weft::Bytes(code).subspan(f.size))) code.resize(f.size);
  const auto next = std::ranges::upper_bound(file.values, f.value);
  if (next != file.values.end() && *next - f.value < WEFT_HOOK_JUMP_BYTES)
    return weft::hooks::kSecondBegin;
  const auto read = [&](uint64_t at, void* to, size_t size) { return segments.Read(at, to, size); };
  if (const auto status = weft::hooks::CheckEntry(f.value, code, read); !status)
    return status.error().message;
  const auto moved = weft::hooks::Displace(f.value, code, f.value + kThunk);
  return moved ? "" : moved.error().message;
}

int Share(const char* path) {
  const weft::UniqueFd file(open(path, O_RDONLY | O_CLOEXEC));
  if (!file) return Fail(std::string(path) + ": " + std::strerror(errno));
  const auto functions = weft::hooks::ReadFunctions(file.get(), RulesFor("", "*"), {0});
  if (!functions) return Fail(std::string(path) + ": " + functions.error().message);
  const Segments segments(file.get());
  std::map<std::string, size_t> reasons;
  for (const weft::hooks::Function& function : functions->functions)
    ++reasons[WhyNot(*functions, function, segments)];
  const size_t can = reasons[""];
  reasons.erase("");
  std::printf("%s\n",
              json{{"functions", functions->functions.size()}, {"can", can}, {"reasons", reasons}}
                  .dump()
                  .c_str());
  return 0;
}

Status Hook(int pid, const std::vector<HookRule>& rules, weft::hooks::FunctionCache& cache,
            HookReport& report) {
  report = {};
  return weft::hooks::HookProcess(pid, rules, cache, report);
}

int Off(int pid) {
  weft::hooks::FunctionCache cache;
  HookReport report;
  const auto done = Hook(pid, {}, cache, report);
  return done ? 0 : Fail(done.error().message);
}

Status WaitForThreads(int pid, size_t threads) {
  for (int i = 0; weft::hooks::ThreadsOf(pid).size() < threads; ++i) {
    if (i == 600)
      return weft::Fail(weft::ErrorCode::kTimeout, "the process did not start its threads");
    std::this_thread::sleep_for(std::chrono::milliseconds(100));
  }
  return {};
}

int Switch(int pid, const std::string& object, const std::string& function, size_t threads,
           int times) {
  const std::vector<HookRule> rules = RulesFor(object, function);
  weft::hooks::FunctionCache cache;
  HookReport report;
  if (const Status ready = WaitForThreads(pid, threads); !ready) return Fail(ready.error().message);
  std::vector<double> stops;
  for (int i = 0; i < times; ++i) {
    if (const auto done = Hook(pid, {}, cache, report); !done) return Fail(done.error().message);
    if (const auto done = Hook(pid, rules, cache, report); !done) return Fail(done.error().message);
    if (report.hooked.size() != 1 || report.stopped.count() == 0)
      return Fail("the function was not hooked");
    stops.push_back(static_cast<double>(report.stopped.count()) / 1000);
  }
  std::printf(
      "%s\n",
      json{{"threads", weft::hooks::ThreadsOf(pid).size()}, {"stops_us", stops}}.dump().c_str());
  return 0;
}

int Attach(int pid, const char* library, const char* folder, size_t threads) {
  if (const Status ready = WaitForThreads(pid, threads); !ready) return Fail(ready.error().message);
  const auto begin = Clock::now();
  weft::attach::StopTime stops{};
  const Status loaded = weft::attach::LoadLibrary(
      pid, {.library = library, .folder = folder, .container = "attached", .is_meant = {}}, stops);
  using Microseconds = std::chrono::duration<double, std::micro>;
  const Microseconds took = Clock::now() - begin, stopped = stops;
  if (!loaded) return Fail(loaded.error().message);
  std::printf("%s\n",
              json{{"took_us", took.count()}, {"stopped_us", stopped.count()}}.dump().c_str());
  return 0;
}

int Types(const char* library, const std::string& name) {
  if (dlopen(library, RTLD_LAZY) == nullptr) return Fail(dlerror());
  const auto ranges = weft::hooks::ReadRanges(getpid());
  const auto memory = weft::hooks::ProcessMemory::Open(getpid());
  if (!ranges || !memory) return Fail("this process cannot be read");
  const std::vector<weft::hooks::LoadedObject> objects = weft::hooks::ObjectsOf(*ranges);
  const auto object = std::ranges::find(objects, library, &weft::hooks::LoadedObject::path);
  if (object == objects.end()) return Fail("give the library's whole path");
  const std::vector<HookRule> rules = RulesFor("", name);
  weft::hooks::FunctionCache cache;
  json out{{"seconds", json::array()}};
  for (int i = 0; i < 2; ++i) {
    const auto begin = Clock::now();
    const auto file = cache.Read(*memory, *object, rules, {0}, {});
    const std::chrono::duration<double> took = Clock::now() - begin;
    if (!file) return Fail(file.error().message);
    if (!file->why_no_types.empty()) return Fail(file->why_no_types);
    out["functions"] = file->functions.size();
    out["typed"] = file->types.size();
    out["seconds"].push_back(took.count());
  }
  double megabytes = 0;
  for (const auto who : {RUSAGE_SELF, RUSAGE_CHILDREN}) {
    rusage used{};
    getrusage(who, &used);
    megabytes += static_cast<double>(used.ru_maxrss) * 1024 / 1e6;
  }
  out["megabytes"] = megabytes;
  std::printf("%s\n", out.dump().c_str());
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  const std::string mode = argc > 1 ? argv[1] : "";
  if (mode == "share" && argc == 3) return Share(argv[2]);
  if (mode == "off" && argc == 3) return Off(std::atoi(argv[2]));
  if (mode == "switch" && argc == 7)
    return Switch(std::atoi(argv[2]), argv[3], argv[4], std::strtoul(argv[5], nullptr, 10),
                  std::atoi(argv[6]));
  if (mode == "attach" && argc == 6)
    return Attach(std::atoi(argv[2]), argv[3], argv[4], std::strtoul(argv[5], nullptr, 10));
  if (mode == "types" && argc == 4) return Types(argv[2], argv[3]);
  return Fail("see its source for the arguments");
}
