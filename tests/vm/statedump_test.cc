// SPDX-License-Identifier: Apache-2.0
// The statedump, as the agent resolves it, against what /proc says of the same processes: all that
// a session's cgroups have, and nothing of any other task's.
#include <arpa/inet.h>
#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <csignal>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <set>
#include <sstream>
#include <thread>
#include <tuple>

#include "node-agent/kernel/statedump.h"
#include "tests/vm/module.h"

namespace weft::vm {
namespace {

using kernel::Catalogue;
using Fields = std::map<std::string, std::string>;

constexpr const char* kCgroups = "/sys/fs/cgroup";
constexpr int kFirstFd = 100;  // of what a Subject opens
constexpr int kThreads = 3;    // beside its first

// A process in a cgroup of its own, with files, mappings, threads and a socket. It does nothing
// else.
class Subject {
 public:
  explicit Subject(const std::string& name) : name_(name), cgroup_(kCgroups + ("/" + name)) {
    ::mkdir(cgroup_.c_str(), 0755);
    std::array<int, 2> ready{};
    if (::pipe(ready.data()) != 0) return;
    pid_ = ::fork();
    if (pid_ == 0) Live(ready[1]);
    ::close(ready[1]);
    if (::read(ready[0], &port_, sizeof(port_)) != sizeof(port_)) ADD_FAILURE() << name;
    ::close(ready[0]);
  }
  ~Subject() {
    ::kill(pid_, SIGKILL);
    ::waitpid(pid_, nullptr, 0);
    ::rmdir(cgroup_.c_str());
    ::unlink(File().c_str());
  }
  Subject(const Subject&) = delete;
  Subject& operator=(const Subject&) = delete;

  [[nodiscard]] const std::string& name() const { return name_; }
  [[nodiscard]] std::string pid() const { return std::to_string(pid_); }
  [[nodiscard]] std::string port() const { return std::to_string(port_); }
  [[nodiscard]] std::string File() const { return "/tmp/of-" + name_; }
  [[nodiscard]] uint64_t CgroupId() const {
    struct stat folder{};
    ::stat(cgroup_.c_str(), &folder);
    return folder.st_ino;
  }
  [[nodiscard]] std::string Proc(const std::string& what) const {
    return "/proc/" + pid() + "/" + what;
  }

 private:
  [[noreturn]] void Live(int ready) {
    std::ofstream(cgroup_ + "/cgroup.procs") << "0";
    ::prctl(PR_SET_NAME, name_.c_str());
    const int file = ::open(File().c_str(), O_CREAT | O_RDWR | O_APPEND, 0600);
    if (::ftruncate(file, 8192) != 0) ::_exit(1);
    ::dup2(file, kFirstFd);
    ::mmap(nullptr, 4096, PROT_READ, MAP_SHARED, file, 4096);
    const int listener = ::socket(AF_INET, SOCK_STREAM, 0);
    sockaddr_in address{.sin_family = AF_INET, .sin_addr = {htonl(INADDR_LOOPBACK)}};
    socklen_t size = sizeof(address);
    ::bind(listener, reinterpret_cast<sockaddr*>(&address), size);
    ::listen(listener, 1);
    ::getsockname(listener, reinterpret_cast<sockaddr*>(&address), &size);
    ::dup2(listener, kFirstFd + 1);
    for (int i = 0; i < kThreads; ++i) std::thread([] { ::pause(); }).detach();
    const uint32_t port = ntohs(address.sin_port);
    if (::write(ready, &port, sizeof(port)) != sizeof(port)) ::_exit(1);
    ::close(ready);
    for (;;) ::pause();
  }

  std::string name_, cgroup_;
  pid_t pid_ = -1;
  uint32_t port_ = 0;
};

class StatedumpTest : public ::testing::Test {
 protected:
  static void SetUpTestSuite() {
    btf_ = new kernel::Btf(kernel::Btf::Load("/sys/kernel/btf/vmlinux").value());
    states_ = new kernel::Statedump(*btf_);
  }

  // Returns everything of one dump, by name, in the order of time.
  static std::vector<SeenEvent> Dump(const std::vector<uint64_t>& cgroups) {
    Module module(cgroups);
    for (const kernel::StateEntry& entry : Catalogue::BuiltIn().states()) {
      const auto resolved =
          states_->Resolve(Catalogue::BuiltIn(), entry, {.cluster_wide = cgroups.empty()});
      if (!resolved) continue;
      EXPECT_EQ(module.Add(*resolved), 0) << entry.event;
    }
    module.Switch(true);
    EXPECT_EQ(module.Statedump(), 0);
    module.Switch(false);
    std::vector<SeenEvent> seen = module.Read();
    std::ranges::stable_sort(seen, {}, &SeenEvent::time);
    return seen;
  }

  static std::vector<Fields> Of(const std::vector<SeenEvent>& seen, const std::string& name) {
    std::vector<Fields> found;
    for (const SeenEvent& event : seen)
      if (event.name == "lttng_statedump_" + name) found.push_back(event.fields);
    return found;
  }
  // Returns the events whose fields include all of `known`.
  static std::vector<Fields> Of(const std::vector<SeenEvent>& seen, const std::string& name,
                                const Fields& known) {
    std::vector<Fields> found = Of(seen, name);
    std::erase_if(found, [&](const Fields& fields) {
      return !std::ranges::all_of(known, [&](const auto& field) {
        return fields.contains(field.first) && fields.at(field.first) == field.second;
      });
    });
    return found;
  }

  static kernel::Btf* btf_;
  static kernel::Statedump* states_;
};

kernel::Btf* StatedumpTest::btf_ = nullptr;
kernel::Statedump* StatedumpTest::states_ = nullptr;

std::set<std::string> NamesIn(const std::string& folder) {
  std::set<std::string> names;
  for (const auto& item : std::filesystem::directory_iterator(folder))
    names.insert(item.path().filename());
  return names;
}

std::string Hexadecimal(uint64_t number) {
  std::ostringstream text;
  text << std::hex << number;
  return text.str();
}

// start-end offset inode name, as /proc/PID/maps has them; a name only of files.
using Mapping = std::tuple<std::string, std::string, std::string, std::string>;

std::multiset<Mapping> MappingsOf(const Subject& subject) {
  std::multiset<Mapping> mappings;
  std::ifstream maps(subject.Proc("maps"));
  for (std::string line; std::getline(maps, line);) {
    std::istringstream words(line);
    std::string range, rights, offset, device, inode, name;
    words >> range >> rights >> offset >> device >> inode;
    std::getline(words >> std::ws, name);
    if (name == "[vsyscall]") continue;  // it is no mapping of the process's
    if (inode == "0") {
      name.clear();
      offset = "0";
    }
    mappings.emplace(range, Hexadecimal(std::stoull(offset, nullptr, 16)), inode, name);
  }
  return mappings;
}

TEST_F(StatedumpTest, HasThreadsFilesMappingsAndSocketsAsProcHasThem) {
  const Subject tenant("tenant");
  const Subject stranger("stranger");
  const auto seen = Dump({tenant.CgroupId()});

  std::set<std::string> tids;
  for (const Fields& thread : Of(seen, "process_state")) {
    EXPECT_TRUE(tids.insert(thread.at("tid")).second) << "twice";
    EXPECT_EQ(thread.at("name"), "tenant");
    EXPECT_EQ(thread.at("ppid"), "0") << "its parent is none of the session's";
    EXPECT_EQ(thread.at("type"), "0") << "of user space";
    EXPECT_EQ(thread.at("status"), "5") << "it waits";
  }
  EXPECT_EQ(tids, NamesIn(tenant.Proc("task")));
  EXPECT_EQ(tids.size(), size_t{kThreads + 1});
  EXPECT_EQ(Of(seen, "process_pid_ns", {{"vpid", tenant.pid()}, {"vppid", "0"}}).size(),
            tids.size());

  std::set<std::string> fds;
  for (const Fields& file : Of(seen, "file_descriptor")) {
    EXPECT_TRUE(fds.insert(file.at("fd")).second) << "twice";
    EXPECT_EQ(file.at("filename"),
              std::filesystem::read_symlink(tenant.Proc("fd/" + file.at("fd"))).string());
  }
  EXPECT_EQ(fds, NamesIn(tenant.Proc("fd")));
  const auto file = Of(seen, "file_descriptor", {{"fd", std::to_string(kFirstFd)}});
  ASSERT_EQ(file.size(), 1u);
  EXPECT_EQ(file[0].at("filename"), tenant.File());
  EXPECT_NE(std::stoul(file[0].at("flags")) & O_APPEND, 0u);

  std::multiset<Mapping> mappings;
  for (const Fields& map : Of(seen, "vm_map"))
    mappings.emplace(
        Hexadecimal(std::stoull(map.at("start"))) + "-" + Hexadecimal(std::stoull(map.at("end"))),
        map.at("inode") == "0" ? "0" : Hexadecimal(std::stoull(map.at("pgoff")) * 4096),
        map.at("inode"), map.at("filename"));
  EXPECT_EQ(mappings, MappingsOf(tenant));

  const auto sockets = Of(seen, "socket", {{"fd", std::to_string(kFirstFd + 1)}});
  ASSERT_EQ(sockets.size(), 1u);
  EXPECT_EQ(sockets[0].at("sport"), tenant.port());
  EXPECT_EQ(sockets[0].at("state"), "10") << "it listens";
  EXPECT_EQ(sockets[0].at("family"), "2");
  EXPECT_EQ(sockets[0].at("saddr"), "7f000001");
  EXPECT_EQ(Of(seen, "network_interface", {{"name", "lo"}}).size(), 1u);
}

TEST_F(StatedumpTest, HasNothingOfTasksOutsideTheScope) {
  const Subject tenant("tenant");
  const Subject stranger("stranger");
  const std::set<std::string> tids = NamesIn(tenant.Proc("task"));
  for (const SeenEvent& event : Dump({tenant.CgroupId()})) {
    for (const auto& [field, value] : event.fields) {
      EXPECT_EQ(value.find("stranger"), std::string::npos) << event.name << "." << field;
      const bool process = field == "pid" || field == "vpid";
      const bool thread = field == "tid" || field == "vtid";
      EXPECT_TRUE(!process || value == tenant.pid()) << event.name << ": " << value;
      EXPECT_TRUE(!thread || tids.contains(value)) << event.name << ": " << value;
      EXPECT_TRUE(field != "sport" || value != stranger.port()) << event.name;
    }
  }
}

TEST_F(StatedumpTest, BeginsAndEndsEvenForAnEmptyCgroup) {
  const std::string folder = std::string(kCgroups) + "/empty";
  ::mkdir(folder.c_str(), 0755);
  struct stat empty_cgroup{};
  ASSERT_EQ(::stat(folder.c_str(), &empty_cgroup), 0);
  const auto empty = Dump({empty_cgroup.st_ino});
  ::rmdir(folder.c_str());
  ASSERT_EQ(empty.size(), 2u);
  EXPECT_EQ(empty[0].name, "lttng_statedump_start");
  EXPECT_EQ(empty[1].name, "lttng_statedump_end");
  EXPECT_EQ(empty[1].fields, (Fields{{"dump", "1"}, {"found", "0"}, {"lost", "0"}}));

  const Subject tenant("tenant");
  const auto seen = Dump({tenant.CgroupId()});
  EXPECT_EQ(seen.front().name, "lttng_statedump_start");
  EXPECT_EQ(seen.back().name, "lttng_statedump_end");
  EXPECT_EQ(seen.back().fields.at("lost"), "0");
}

TEST_F(StatedumpTest, ADumpOfAClusterWideSessionHasEverything) {
  // If its kernel has no such driver built in, the guest has no block devices.
  if (!std::filesystem::exists("/sys/class/block/ram1")) {
    ASSERT_EQ(std::system("modprobe brd rd_nr=2 rd_size=64"), 0);
  }
  const Subject one("one"), two("two");
  const auto seen = Dump({});
  for (const Subject* subject : {&one, &two}) {
    const auto threads = Of(seen, "process_state", {{"pid", subject->pid()}});
    EXPECT_EQ(threads.size(), size_t{kThreads + 1});
    EXPECT_EQ(threads[0].at("ppid"), std::to_string(::getpid()));
    EXPECT_EQ(Of(seen, "socket", {{"sport", subject->port()}}).size(), 2u) << "two descriptors";
  }
  EXPECT_EQ(Of(seen, "process_state", {{"tid", "1"}}).size(), 1u);
  EXPECT_EQ(Of(seen, "process_state", {{"tid", "2"}, {"name", "kthreadd"}, {"type", "1"}}).size(),
            1u);
  EXPECT_EQ(Of(seen, "cpu_topology", {{"online", "1"}}).size(),
            static_cast<size_t>(::sysconf(_SC_NPROCESSORS_ONLN)));
  EXPECT_FALSE(Of(seen, "interrupt").empty());
  std::set<std::string> disks, named;
  for (const auto& item : std::filesystem::directory_iterator("/sys/class/block"))
    disks.insert(item.path().filename());
  for (const Fields& disk : Of(seen, "block_device")) named.insert(disk.at("diskname"));
  EXPECT_EQ(named, disks);
  EXPECT_TRUE(named.contains("ram1"));
  std::cout << seen.size() << " events, " << disks.size() << " block devices, "
            << Of(seen, "interrupt").size() << " interrupts\n";
}

}  // namespace
}  // namespace weft::vm
