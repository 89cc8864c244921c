// SPDX-License-Identifier: Apache-2.0
// Parts of the command that start no process: ELF files, checks of event names, summaries, session
// folders.
#include <fcntl.h>
#include <gtest/gtest.h>
#include <spawn.h>
#include <sys/file.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <thread>

#include "cli/attached.h"
#include "cli/elf_file.h"
#include "cli/event_check.h"
#include "cli/install_tree.h"
#include "cli/offered.h"
#include "cli/relay_address.h"
#include "cli/session_folder.h"
#include "cli/summary.h"
#include "cli/traced_program.h"

namespace weft::cli {
namespace {

std::vector<uint8_t> ThisProgram() {
  std::ifstream in("/proc/self/exe", std::ios::binary);
  return {std::istreambuf_iterator<char>(in), {}};
}

Offered WithEvents(std::initializer_list<const char*> names) {
  Offered offered;
  offered.files.push_back({"/bin/p", {}});
  for (const char* name : names) {
    EventDescription event;
    event.name = name;
    offered.files.back().events.push_back(std::move(event));
  }
  return offered;
}

std::vector<api::Trace> WithRules(std::initializer_list<const char*> names) {
  api::Trace trace;
  for (const char* name : names) trace.spec.user.events.push_back({.name = name});
  return {trace};
}

TEST(ElfFile, ReadsNeededLibraries) {
  const auto file = ParseElf(ThisProgram());
  ASSERT_TRUE(file.has_value()) << file.error().message;
  EXPECT_TRUE(file->is_program);
  EXPECT_TRUE(file->has_interpreter);
  EXPECT_NE(std::find(file->needed.begin(), file->needed.end(), "libc.so.6"), file->needed.end());
  EXPECT_TRUE(file->events.empty());
}

// Those of scripts/fuzz_seeds.py.
Result<ElfFile> ParseSeed(const std::string& name) {
  std::ifstream file(WEFT_SOURCE_DIR "/cli/elf_fuzz_corpus/" + name, std::ios::binary);
  const std::vector<uint8_t> bytes{std::istreambuf_iterator<char>(file), {}};
  return ParseElf(bytes);
}

TEST(ElfFile, ReadsEventsNeededLibrariesAndSearchPaths) {
  const auto library = ParseSeed("library");
  ASSERT_TRUE(library) << library.error().message;
  ASSERT_EQ(library->events.size(), 1U);
  EXPECT_EQ(library->events.front().name, "app:hit");
  EXPECT_EQ(library->needed, std::vector<std::string>{"libc.so.6"});
  EXPECT_EQ(library->search, (std::vector<std::string>{"$ORIGIN/lib", "/opt/lib"}));
  EXPECT_FALSE(library->has_interpreter);
  const auto program = ParseSeed("program");
  ASSERT_TRUE(program) << program.error().message;
  EXPECT_TRUE(program->has_interpreter);
  EXPECT_TRUE(program->is_program);
  EXPECT_TRUE(program->events.empty());
}

TEST(ElfFile, SurvivesEveryTruncation) {
  const std::vector<uint8_t> bytes = ThisProgram();
  for (size_t size = 0; size < 4096; ++size) (void)ParseElf(Bytes(bytes).first(size));
  EXPECT_FALSE(ParseElf({}).has_value());
  std::vector<uint8_t> other(bytes.begin(), bytes.begin() + 64);
  other[4] = 1;
  EXPECT_EQ(ParseElf(other).error().code, ErrorCode::kUnsupported);
}

// What a program that is started so has in its environment.
std::string EnvironmentSeen(const TracedProgram::Tracing& tracing) {
  char path[] = "/tmp/weft-cli-units-XXXXXX";
  const UniqueFd file(mkstemp(path));
  auto program = TracedProgram::Prepare();
  EXPECT_TRUE(program.has_value());
  const std::string script = std::string("echo \"$LD_PRELOAD $WEFT_DIR\" >") + path;
  const Status started = program->Start("/bin/sh", {"sh", "-c", script}, tracing);
  EXPECT_TRUE(started.has_value()) << started.error().message;
  while (!program->Wait(std::chrono::milliseconds(100))) {
  }
  std::ifstream in(path);
  std::string line;
  std::getline(in, line);
  unlink(path);
  return line;
}

TEST(TracedProgram, IsPreloadedOnlyWithALibrary) {
  const std::string library = "/nowhere/libweft.so";
  unsetenv("LD_PRELOAD");
  unsetenv("WEFT_DIR");
  EXPECT_EQ(EnvironmentSeen({.library = library, .folder = "/folder", .cgroup = ""}),
            library + " /folder");
  EXPECT_EQ(EnvironmentSeen({.library = "", .folder = "/folder", .cgroup = ""}), " ");
  // In a recording of user space: that one goes on.
  setenv("LD_PRELOAD", "/outer/libweft.so", 1);
  setenv("WEFT_DIR", "/outer", 1);
  EXPECT_EQ(EnvironmentSeen({.library = "", .folder = "/folder", .cgroup = ""}),
            "/outer/libweft.so /outer");
  EXPECT_EQ(EnvironmentSeen({.library = library, .folder = "/folder", .cgroup = ""}),
            "/outer/libweft.so:" + library + " /folder");
  unsetenv("LD_PRELOAD");
  unsetenv("WEFT_DIR");
}

TEST(Offered, FindsLibrariesAndRefusesOtherFiles) {
  const auto own = OfferedByProgram("/proc/self/exe");
  ASSERT_TRUE(own.has_value());
  EXPECT_FALSE(own->is_static);
  EXPECT_TRUE(own->missing.empty());
  EXPECT_FALSE(OfferedByProgram("/etc/passwd").has_value());
  EXPECT_FALSE(OfferedByProgram("/no/such").has_value());
  EXPECT_TRUE(OfferedByProcess(getpid()).has_value());
  EXPECT_EQ(OfferedByProcess(1 << 22).error().code, ErrorCode::kNotFound);
}

TEST(EventCheck, RefusesMisspeltNamesAndReportsPatternsWithoutMatch) {
  const Offered offered = WithEvents({"shop:order_placed", "shop:closed"});
  EXPECT_TRUE(CheckEvents(WithRules({"shop:*", "shop:closed"}), offered, "p").problems.empty());
  const EventCheck misspelt = CheckEvents(WithRules({"shop:order_plcaed"}), offered, "p");
  EXPECT_TRUE(misspelt.is_wrong);
  ASSERT_EQ(misspelt.problems.size(), 1u);
  EXPECT_NE(misspelt.problems[0].find("shop:order_placed"), std::string::npos);
  const EventCheck pattern = CheckEvents(WithRules({"store:*"}), offered, "p");
  EXPECT_FALSE(pattern.is_wrong);
  EXPECT_EQ(pattern.problems.size(), 1u);
}

// Lines and verdict of these rules, each with its filter, and the Trace's own, on what is offered.
EventCheck CheckFilters(std::vector<api::EventRule> rules, const std::string& of_all = "") {
  Offered offered = WithEvents({"shop:order", "shop:closed", "shop:debug"});
  auto& events = offered.files[0].events;
  for (const char* name : {"number", "words"}) events[0].fields.push_back({.name = name});
  events[1].fields.push_back({.name = "reason"});
  events[2].fields.push_back({.name = "detail"});
  events[2].loglevel = 14;
  api::Trace trace;
  trace.spec.user.events = std::move(rules);
  trace.spec.filter = of_all;
  return CheckEvents({trace}, offered, "p");
}

TEST(EventCheck, RefusesFieldThatNoMatchedEventHas) {
  for (const char* name : {"shop:order", "shop:*", "*"}) {
    EXPECT_TRUE(CheckFilters({{.name = name, .filter = "number > 5"}}).problems.empty());
    const EventCheck check = CheckFilters({{.name = name, .filter = "number > 5 && nmber > 5"}});
    EXPECT_TRUE(check.is_wrong);
    ASSERT_EQ(check.problems.size(), 1u);
    EXPECT_EQ(check.problems[0], "filter of event \"" + std::string(name) +
                                     "\": no event that p offers for it has a field \"nmber\", "
                                     "did you mean \"number\"?");
  }
  EXPECT_TRUE(CheckFilters({{.name = "shop:closed", .filter = "number > 5"}}).is_wrong);
  EXPECT_TRUE(
      CheckFilters({{.name = "s*", .exclude = {"*:order"}, .filter = "number > 5"}}).is_wrong);
  const api::LogLevelRule severe{.at_least = api::LogLevel::kDebugLine};
  EXPECT_TRUE(CheckFilters({{.name = "s*", .log_level = severe, .filter = "detail > 5"}}).is_wrong);
  // Not of the event: contexts, and what the library itself emits.
  EXPECT_TRUE(CheckFilters({{.name = "s*", .filter = "$ctx.vpid > 5"}}).problems.empty());
  EXPECT_TRUE(CheckFilters({{.name = "*", .filter = "baddr > 5"}}).problems.empty());
}

TEST(EventCheck, CommonFilterNeedsOneEventWithAllItsFields) {
  const api::EventRule order{.name = "shop:order"}, closed{.name = "shop:closed"};
  EXPECT_TRUE(CheckFilters({order, closed}, "nmber > 5").is_wrong);
  const EventCheck some = CheckFilters({order, closed}, "number > 5");
  EXPECT_FALSE(some.is_wrong);
  ASSERT_EQ(some.problems.size(), 1u);
  EXPECT_NE(some.problems[0].find("\"shop:closed\""), std::string::npos);
  EXPECT_FALSE(CheckFilters({order, {.name = "plugin:*"}}, "nmber > 5").is_wrong) << "not known";
}

TEST(EventCheck, AcceptsProgramsWithoutTracepoints) {
  const EventCheck check = CheckEvents(WithRules({"shop:closed"}), Offered(), "sh");
  EXPECT_FALSE(check.is_wrong);
  EXPECT_EQ(check.problems.size(), 1u);
}

TEST(Summary, NamesReasonsAndUnits) {
  ipc::SessionState state;
  state.output = "/out";
  state.traces.push_back({.name = "t", .path = "p", .counts = {}});
  ipc::ChannelCounts& counts = state.traces[0].counts;
  counts.delivered = 1;
  counts.streams = 2;
  counts.bytes = 1536;
  EXPECT_EQ(SummaryText(state),
            "weft: 1 event in 2 streams, 1.5 KiB, in /out\nweft: discarded 0\n");
  counts.discarded = {{"full", 10}, {"memory", 2}, {"nested", 0}};
  counts.lost = {{"store/disk_full", 3}};
  state.notices = {"the disk is full"};
  EXPECT_EQ(SummaryText(state),
            "weft: 1 event in 2 streams, 1.5 KiB, in /out\n"
            "weft: discarded 12 (full 10, memory 2), lost 3 (store/disk_full 3)\n"
            "weft: the disk is full\n");
  EXPECT_TRUE(OutputFailed(state));
  counts.missed_anywhere = 1;
  EXPECT_NE(SummaryText(state).find("\nweft: 1 hit of its kernel probes, by any program of this "
                                    "machine, missed by the kernel\n"),
            std::string::npos);
  EXPECT_NE(SummaryJson(state).find("\"missed_anywhere\": 1"), std::string::npos);
}

TEST(RelayAddress, ReadsPortsOrTakesDefaults) {
  const auto parsed = [](const char* text) {
    const auto address = ParseRelayAddress(text);
    if (!address) return std::string("wrong");
    return address->host + " " + std::to_string(address->control_port) + " " +
           std::to_string(address->data_port);
  };
  EXPECT_EQ(parsed("relay.weft.svc"), "relay.weft.svc 4460 4461");
  EXPECT_EQ(parsed("10.0.0.1:7000"), "10.0.0.1 7000 7001");
  EXPECT_EQ(parsed("h:7000:80"), "h 7000 80");
  EXPECT_EQ(parsed("[::1]:7000"), "::1 7000 7001");
  for (const char* wrong :
       {"", ":1", "h:", "h:x", "h:0", "h:70000", "h:65535", "h:1:2:3", "[::1", "[::1]7", "h:1:"}) {
    EXPECT_EQ(parsed(wrong), "wrong") << wrong;
  }
}

class SessionFolders : public ::testing::Test {
 protected:
  void SetUp() override { ASSERT_NE(mkdtemp(runtime.data()), nullptr); }
  void TearDown() override { std::filesystem::remove_all(runtime); }

  std::string Make(const std::string& end, std::initializer_list<const char*> files) {
    std::string path = runtime + "/" + SessionPrefix() + end;
    std::filesystem::create_directory(path);
    for (const char* file : files) std::ofstream(path + "/" + file) << "x";
    return path;
  }

  std::string runtime = "/tmp/weft-cli-test-XXXXXX";
};

TEST_F(SessionFolders, RemovesAbandonedFolders) {
  const std::string killed = Make("aaaaaa", {"local.ctl", "local.mem", "agent.names",
                                             "session.json", "agent.sock.new", "hooks.sock"});
  const std::string empty = Make("bbbbbb", {});
  const std::string others = Make("cccccc", {"local.ctl", "letter"});
  const std::string unlike = Make("dddddd-of-mine", {"local.ctl"});
  const std::string locked = Make("eeeeee", {"local.ctl"});
  const UniqueFd lock(open(locked.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  ASSERT_EQ(flock(lock.get(), LOCK_SH), 0);
  std::filesystem::create_directory_symlink(unlike, runtime + "/" + SessionPrefix() + "ffffff");

  ClearAbandonedFolders(runtime);
  EXPECT_FALSE(std::filesystem::exists(killed));
  EXPECT_TRUE(std::filesystem::exists(empty)) << "it may be in the making";
  EXPECT_TRUE(std::filesystem::exists(others + "/letter"));
  EXPECT_TRUE(std::filesystem::exists(unlike + "/local.ctl"));
  EXPECT_TRUE(std::filesystem::exists(locked + "/local.ctl"));

  ClearAbandonedFolders(runtime, std::chrono::seconds(0));
  EXPECT_FALSE(std::filesystem::exists(empty));
}

TEST_F(SessionFolders, KeepsFolderWhereAProcessListens) {
  const std::string path = Make("aaaaaa", {"local.ctl"});
  sockaddr_un address{.sun_family = AF_UNIX, .sun_path = {}};
  (path + "/session.sock").copy(address.sun_path, sizeof(address.sun_path) - 1);
  UniqueFd listening(socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0));
  ASSERT_EQ(bind(listening.get(), reinterpret_cast<sockaddr*>(&address), sizeof(address)), 0);
  ASSERT_EQ(listen(listening.get(), 1), 0);
  ClearAbandonedFolders(runtime);
  EXPECT_TRUE(std::filesystem::exists(path + "/local.ctl"));
  listening.reset();
  ClearAbandonedFolders(runtime);
  EXPECT_FALSE(std::filesystem::exists(path));
}

TEST(Attached, TellsThreadsFromProcesses) {
  pid_t tid = 0;
  std::thread([&tid] {
    tid = gettid();
    const auto attached = Attached::Prepare({tid}, {});
    ASSERT_FALSE(attached);
    EXPECT_EQ(attached.error().message, std::to_string(tid) + " is a thread of process " +
                                            std::to_string(getpid()) + "; use --pid " +
                                            std::to_string(getpid()));
  }).join();
  const auto none = Attached::Prepare({INT32_MAX}, {});
  ASSERT_FALSE(none);
  EXPECT_EQ(none.error().message, "there is no process 2147483647; ps -e shows all");
}

TEST(ProcessesCalled, FindsProgramsWhoseFileIsGone) {
  const std::string name = "weft-cli-units-" + std::to_string(getpid());
  const std::string path = testing::TempDir() + name;
  std::filesystem::copy_file("/bin/sleep", path);
  std::string duration = "1000";
  char* arguments[] = {const_cast<char*>(path.c_str()), duration.data(), nullptr};
  pid_t pid = 0;
  ASSERT_EQ(posix_spawn(&pid, path.c_str(), nullptr, nullptr, arguments, environ), 0);
  EXPECT_EQ(ProcessesCalled(name), std::vector<int32_t>{pid});
  // A recording takes processes that began while its agent started.
  auto attached = Attached::Prepare({getpid()}, {});
  ASSERT_TRUE(attached);
  attached->AddCalled({name, name});
  EXPECT_EQ(attached->pids(), (std::vector<int32_t>{getpid(), pid}));
  std::filesystem::remove(path);
  EXPECT_EQ(ProcessesCalled(name), std::vector<int32_t>{pid});
  kill(pid, SIGKILL);
  waitpid(pid, nullptr, 0);
}

}  // namespace
}  // namespace weft::cli
