// SPDX-License-Identifier: Apache-2.0
#include "node-agent/kernel/syscalls.h"

#include <gtest/gtest.h>
#include <netinet/in.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <filesystem>
#include <map>
#include <span>

#include "lib/event/description.h"
#include "node-agent/kernel/fetch_program.h"
#include "node-agent/kernel/fetch_reference.h"
#include "node-agent/kernel/test_kernels.h"
#include "node-agent/kernel/tracefs.h"

namespace weft::kernel {
namespace {

constexpr const char* kTracefs = "/sys/kernel/tracing";

constexpr std::string_view kOpenat = R"(name: sys_enter_openat
ID: 782
format:
	field:unsigned short common_type;	offset:0;	size:2;	signed:0;
	field:int common_pid;	offset:4;	size:4;	signed:1;

	field:int __syscall_nr;	offset:8;	size:4;	signed:1;
	field:int dfd;	offset:16;	size:8;	signed:0;
	field:const char * filename;	offset:24;	size:8;	signed:0;
	field:struct stat *buf;	offset:32;	size:8;	signed:0;
	field:__data_loc char[] __filename_val;	offset:48;	size:4;	signed:0;

print fmt: "dfd: 0x%08lx"
)";

TEST(SyscallFormat, GivesTypesAndNamesOfParameters) {
  const auto parameters = ParseSyscallFormat(kOpenat);
  ASSERT_TRUE(parameters);
  EXPECT_EQ(*parameters,
            (std::vector<SyscallParameter>{
                {"int", "dfd"}, {"const char *", "filename"}, {"struct stat *", "buf"}}));
  EXPECT_TRUE(parameters->at(1).is_text());
  EXPECT_FALSE(parameters->at(2).is_text());
}

TEST(SyscallFormat, RefusesOtherText) {
  EXPECT_FALSE(ParseSyscallFormat(""));
  EXPECT_FALSE(ParseSyscallFormat("field:int a; offset:0;\n"));
  EXPECT_FALSE(ParseSyscallFormat("field:int __syscall_nr;\nfield:int a-b;\n"));
  std::string many = "field:int __syscall_nr;\n";
  for (int i = 0; i < 7; ++i) many += "field:int a" + std::to_string(i) + ";\n";
  EXPECT_FALSE(ParseSyscallFormat(many));
}

class SyscallsTest : public ::testing::TestWithParam<testing::TestKernel> {};

TEST_P(SyscallsTest, EveryCallIsRecordedAtEntryAndExit) {
  const auto all = testing::LoadKernel(GetParam());
  const std::string tracefs = GetParam().folder.empty() ? kTracefs : "";
  const auto calls = Syscalls::Load(all.front(), Catalogue::BuiltIn(), tracefs);
  ASSERT_TRUE(calls) << calls.error().message;
  EXPECT_GT(calls->all().size(), 400u);
  for (const char* without_arguments : {"getppid", "sync", "vfork"})
    EXPECT_FALSE(calls->Match(without_arguments, {}).empty()) << without_arguments;
  for (const Syscall& call : calls->all()) {
    for (const uint32_t bytes : {0u, 64u}) {
      const auto entry = calls->ResolveEntry(call, bytes);
      const auto exit = calls->ResolveExit(call, bytes);
      ASSERT_TRUE(entry) << call.name << ": " << entry.error().message;
      ASSERT_TRUE(exit) << call.name << ": " << exit.error().message;
      EXPECT_TRUE(EventDescription::Parse(entry->description)) << call.name;
      EXPECT_TRUE(EventDescription::Parse(exit->description)) << call.name;
      EXPECT_EQ(entry->subjects, WEFT_KERNEL_SUBJECT_CURRENT);
    }
  }
}

// Names of numbers that no kernel, or no newer kernel, has a call for. "syscalls" is the count of
// numbers.
constexpr std::string_view kOfNoCall[] = {
    "_sysctl",        "afs_syscall", "bdflush",        "break", "create_module",   "epoll_ctl_old",
    "epoll_wait_old", "ftime",       "getpmsg",        "gtty",  "get_kernel_syms", "idle",
    "lock",           "mpx",         "lookup_dcookie", "prof",  "profil",          "nfsservctl",
    "putpmsg",        "security",    "query_module",   "stty",  "ulimit",          "syscalls",
    "tuxcall",        "vserver"};

bool HasFunctionOf(const Btf& btf, const std::string& call) {
  for (const char* prefix : {"__x64_sys_", "__ia32_sys_", "__ia32_compat_sys_", "__do_sys_"})
    if (btf.Find(BtfKind::kFunction, prefix + call)) return true;
  return false;
}

TEST_P(SyscallsTest, AllOfTheKernelsTablesHaveTheirNumbers) {
  if (GetParam().folder.empty()) GTEST_SKIP() << "no headers of the running kernel";
  const auto all = testing::LoadKernel(GetParam());
  const auto calls = Syscalls::Load(all.front(), Catalogue::BuiltIn(), "");
  ASSERT_TRUE(calls) << calls.error().message;
  for (const bool compat : {false, true}) {
    std::map<std::string, uint32_t> ours;
    for (const Syscall& call : calls->all())
      if (call.compat == compat) ours[call.table_name] = call.number;
    const auto table = testing::SyscallTable(GetParam(), compat);
    EXPECT_GT(table.size(), 300u);
    for (const auto& [name, number] : table) {
      if (ours.contains(name)) {
        EXPECT_EQ(ours.at(name), number) << name << (compat ? " of 32 bits" : "");
        continue;
      }
      const bool is_call = std::ranges::find(kOfNoCall, name) == std::end(kOfNoCall) ||
                           HasFunctionOf(all.front(), name);
      EXPECT_FALSE(is_call) << name << " is not in the catalogue";
    }
  }
  EXPECT_TRUE(calls->LacksNumberOf("pciconfig_read"));  // of other machines' tables
  EXPECT_FALSE(calls->LacksNumberOf("openat"));
  EXPECT_FALSE(calls->LacksNumberOf("none"));
}

INSTANTIATE_TEST_SUITE_P(Kernels, SyscallsTest, ::testing::ValuesIn(testing::TestKernels()),
                         [](const auto& kernel) { return kernel.param.label; });

class RunningSyscalls : public ::testing::Test {
 protected:
  void SetUp() override {
    if (tracefs_.path().empty()) GTEST_SKIP() << tracefs_.problem();
    btf_ = std::make_unique<Btf>(std::move(Btf::Load("/sys/kernel/btf/vmlinux").value()));
    calls_ = std::make_unique<Syscalls>(
        Syscalls::Load(*btf_, Catalogue::BuiltIn(), tracefs_.path()).value());
  }

  [[nodiscard]] const Syscall& Call(const std::string& name) const {
    const auto found = calls_->Match(name, {});
    if (found.empty()) throw std::runtime_error("no " + name);
    return *found.front();
  }

  static std::string Shape(const Result<Resolved>& resolved) {
    if (!resolved) return resolved.error().message;
    const EventDescription event = EventDescription::Parse(resolved->description).value();
    std::string shape = event.name + ":";
    for (const FieldDescription& field : event.fields)
      shape += " " + field.name +
               (field.kind == FieldKind::kString     ? "$"
                : field.kind == FieldKind::kSequence ? "[]"
                : field.is_pointer()                 ? "*"
                                                     : "");
    return shape;
  }

  const Tracefs tracefs_ = Tracefs::Open();
  std::unique_ptr<Btf> btf_;
  std::unique_ptr<Syscalls> calls_;
};

TEST_F(RunningSyscalls, HaveTheNumbersThatProgramsUse) {
  EXPECT_EQ(Call("openat").number, static_cast<uint32_t>(SYS_openat));
  EXPECT_EQ(Call("futex").number, static_cast<uint32_t>(SYS_futex));
  EXPECT_EQ(Call("newfstat").number, static_cast<uint32_t>(SYS_fstat));
  EXPECT_EQ(Call("clone3").number, static_cast<uint32_t>(SYS_clone3));
}

TEST_F(RunningSyscalls, AreNamedLikeTheFunctionAndFoundByBothNames) {
  const auto found = calls_->Match("*fstat", {"compat_*"});
  std::vector<std::string> names;
  for (const Syscall* call : found)
    if (!call->compat) names.push_back(call->name);
  EXPECT_NE(std::ranges::find(names, "newfstat"), names.end());
  EXPECT_EQ(&Call("fstat"), &Call("newfstat"));
  EXPECT_TRUE(calls_->Match("open*", {"openat*", "open_*", "open"}).empty());
}

TEST_F(RunningSyscalls, AreFoundByTheirNumberIn64BitPrograms) {
  const auto number = std::to_string(SYS_openat);
  const auto found = calls_->Match(number, {});
  ASSERT_EQ(found.size(), 1u);
  EXPECT_EQ(found.front()->name, "openat");
  EXPECT_FALSE(found.front()->compat);
  EXPECT_TRUE(calls_->Match("99999", {}).empty());
  EXPECT_TRUE(calls_->Match("0" + number, {}).empty());
  const auto others = calls_->Match("open*", {number});
  EXPECT_EQ(std::ranges::find(others, found.front()), others.end());
  EXPECT_FALSE(others.empty());
}

TEST_F(RunningSyscalls, RecordWhatGoesInAtEntryAndWhatComesOutAtExit) {
  EXPECT_EQ(Shape(calls_->ResolveEntry(Call("openat"))),
            "syscall_entry_openat: dfd filename$ flags mode");
  EXPECT_EQ(Shape(calls_->ResolveExit(Call("openat"))), "syscall_exit_openat: ret");
  EXPECT_EQ(Shape(calls_->ResolveEntry(Call("read"))), "syscall_entry_read: fd count");
  EXPECT_EQ(Shape(calls_->ResolveExit(Call("read"))), "syscall_exit_read: ret buf*");
  EXPECT_EQ(Shape(calls_->ResolveExit(Call("read"), 64)), "syscall_exit_read: ret buf* buf_data[]");
  EXPECT_EQ(Shape(calls_->ResolveEntry(Call("write"), 64)),
            "syscall_entry_write: fd buf* count buf_data[]");
  EXPECT_EQ(Shape(calls_->ResolveEntry(Call("connect"))),
            "syscall_entry_connect: fd uservaddr* addrlen family dport v4addr v6addr path$");
  EXPECT_EQ(Shape(calls_->ResolveEntry(Call("sendmsg"), 64)),
            "syscall_entry_sendmsg: fd msg* flags iovlen iov_len[] iov_data[] namelen family dport "
            "v4addr v6addr path$");
  EXPECT_EQ(Shape(calls_->ResolveEntry(Call("readv"), 64)),
            "syscall_entry_readv: fd vec* vlen iov_len[]");
  EXPECT_EQ(Shape(calls_->ResolveExit(Call("readv"), 64)), "syscall_exit_readv: ret iov_data[]");
  EXPECT_EQ(Shape(calls_->ResolveExit(Call("pipe2"))),
            "syscall_exit_pipe2: ret fildes* read_fd write_fd");
  EXPECT_EQ(Shape(calls_->ResolveExit(Call("readlink"))), "syscall_exit_readlink: ret buf[]");
  EXPECT_EQ(Shape(calls_->ResolveEntry(Call("execve"))),
            "syscall_entry_execve: filename$ argv* envp*");
}

TEST_F(RunningSyscalls, ShowAddressesInHexAndDescriptorsWithTheirSign) {
  const auto field = [](const Result<Resolved>& resolved, const std::string& name) {
    return *EventDescription::Parse(resolved->description)->FindField(name);
  };
  for (const char* name : {"mmap", "brk", "mremap", "shmat"})
    EXPECT_EQ(field(calls_->ResolveExit(Call(name)), "ret").base, 16) << name;
  EXPECT_EQ(field(calls_->ResolveExit(Call("munmap")), "ret").base, 10);
  for (const auto& [call, name] : {std::pair{"read", "fd"},
                                   {"mmap", "fd"},
                                   {"close", "fd"},
                                   {"dup", "fildes"},
                                   {"dup2", "oldfd"},
                                   {"openat", "dfd"}}) {
    const FieldDescription found = field(calls_->ResolveEntry(Call(call)), name);
    EXPECT_TRUE(found.is_signed()) << call;
    EXPECT_EQ(found.elem_size, 4) << call;
  }
  EXPECT_FALSE(field(calls_->ResolveEntry(Call("read")), "count").is_signed());
}

// docs/formats/kernel.md
constexpr uint8_t kPartsOfWritev[] = {
    0x01, 0x02, 0x08, 0, 0, 0, 0, 0, 0,    0, 0, 0, 0, 0, 0, 0,  //
    0x05, 0,    0,    0, 0, 0, 0, 0, 0,    0, 0, 0, 0, 0, 0, 0,  //
    0x01, 0x01, 0x08, 0, 0, 0, 0, 0, 0,    0, 0, 0, 0, 0, 0, 0,  //
    0x13, 0x10, 0x08, 4, 8, 0, 0, 0, 0x80, 0, 0, 0, 0, 0, 0, 0,  //
    0x01, 0x02, 0x08, 0, 0, 0, 0, 0, 0,    0, 0, 0, 0, 0, 0, 0,  //
    0x05, 0,    0,    0, 0, 0, 0, 0, 0,    0, 0, 0, 0, 0, 0, 0,  //
    0x01, 0x01, 0x08, 0, 0, 0, 0, 0, 0,    0, 0, 0, 0, 0, 0, 0,  //
    0x14, 0xff, 0x08, 4, 0, 0, 0, 0, 0x10, 0, 0, 0, 0, 0, 0, 0};

TEST_F(RunningSyscalls, CallsWithSeveralBuffersHaveTheDocumentedProgram) {
  const std::vector<weft_fetch_op> writev =
      FetchProgram(calls_->ResolveEntry(Call("writev"), 16).value().fetch);
  ASSERT_GE(writev.size(), 8u);
  EXPECT_EQ(std::memcmp(&writev[writev.size() - 8], kPartsOfWritev, sizeof(kPartsOfWritev)), 0);
  const weft_fetch_op readv =
      FetchProgram(calls_->ResolveExit(Call("readv"), 16).value().fetch).back();
  EXPECT_EQ(readv.code, 0x14);
  EXPECT_EQ(readv.arg, 7);
}

constexpr uint8_t kAddressOfConnect[] = {
    0x01, 0x02, 4, 1, 0, 0, 0, 0, 0,    0, 0, 0, 0, 0, 0, 0,  // dport
    0x05, 0,    0, 0, 0, 0, 0, 0, 0,    0, 0, 0, 0, 0, 0, 0,  //
    0x01, 0x01, 8, 0, 0, 0, 0, 0, 0,    0, 0, 0, 0, 0, 0, 0,  //
    0x08, 0,    0, 0, 4, 0, 0, 0, 0,    0, 0, 0, 0, 0, 0, 0,  //
    0x02, 0,    2, 4, 2, 0, 0, 0, 0,    0, 0, 0, 0, 0, 0, 0,  //
    0x10, 0,    2, 0, 0, 0, 0, 0, 0,    0, 0, 0, 0, 0, 0, 0,  //
    0x01, 0x02, 4, 1, 0, 0, 0, 0, 0,    0, 0, 0, 0, 0, 0, 0,  // path
    0x05, 0,    0, 0, 0, 0, 0, 0, 0,    0, 0, 0, 0, 0, 0, 0,  //
    0x01, 0x01, 8, 0, 0, 0, 0, 0, 0,    0, 0, 0, 0, 0, 0, 0,  //
    0x15, 0,    0, 4, 2, 0, 0, 0, 0x6c, 0, 0, 0, 0, 0, 0, 0};

TEST_F(RunningSyscalls, WithSocketAddressesHaveTheProgramOfThePage) {
  const std::vector<weft_fetch_op> ops =
      FetchProgram(calls_->ResolveEntry(Call("connect")).value().fetch);
  const auto bytes = std::as_bytes(std::span(ops));
  const auto golden = std::as_bytes(std::span(kAddressOfConnect));
  const auto dport = golden.first(6 * sizeof(weft_fetch_op));
  const auto path = golden.subspan(dport.size());
  EXPECT_FALSE(std::ranges::search(bytes, dport).empty());
  EXPECT_TRUE(std::ranges::equal(bytes.last(path.size()), path));
}

// Returns the fields of connect's address, made from the first `length` bytes of this one.
std::map<std::string, std::string> AddressFields(const Resolved& connect, const void* address,
                                                 int64_t length) {
  const auto event = EventDescription::Parse(connect.description).value();
  const auto values = testing::FetchReference::Run(
      connect.fetch,
      {3, reinterpret_cast<uint64_t>(address), static_cast<uint64_t>(length), 0, 0, 0, 0});
  std::map<std::string, std::string> fields;
  for (size_t i = 0; i < values.size(); ++i) fields[event.fields[i].name] = values[i];
  return fields;
}

TEST_F(RunningSyscalls, ReadSocketAddressesAsFarAsTheirLengthGoes) {
  const Resolved connect = calls_->ResolveEntry(Call("connect")).value();
  sockaddr_un unix{.sun_family = AF_UNIX, .sun_path = "/run/socket"};
  const auto path_of = [&](int64_t length) {
    return AddressFields(connect, &unix, length)["path"];
  };
  const std::string whole = unix.sun_path;
  for (int64_t length = -1; length <= int64_t{sizeof(unix)} + 1; ++length)
    EXPECT_EQ(path_of(length), length <= 2 ? "" : whole.substr(0, static_cast<size_t>(length - 2)))
        << length;
  std::memcpy(unix.sun_path, "\0a\0b\0cd", 7);
  const std::string abstract = "@a@b@cd";
  for (int64_t length = 2; length <= 9; ++length)
    EXPECT_EQ(path_of(length), abstract.substr(0, static_cast<size_t>(length - 2))) << length;
  std::ranges::fill(unix.sun_path, 'x');
  EXPECT_EQ(path_of(sizeof(unix)), std::string(sizeof(unix.sun_path), 'x'));
  EXPECT_EQ(path_of(1000), std::string(sizeof(unix.sun_path), 'x'));

  sockaddr_in6 inet{.sin6_family = AF_INET6, .sin6_port = 0x5000, .sin6_flowinfo = 0x01020304};
  std::ranges::fill(inet.sin6_addr.s6_addr, 7);
  for (int64_t length = 0; length <= int64_t{sizeof(inet)}; ++length) {
    auto fields = AddressFields(connect, &inet, length);
    EXPECT_EQ(fields["family"], length < 2 ? std::string(2, '\0') : std::string("\x0a\0", 2));
    EXPECT_EQ(fields["dport"], length < 4 ? std::string(2, '\0') : std::string("\0\x50", 2));
    EXPECT_EQ(fields["v4addr"], length < 8 ? std::string(4, '\0') : "\4\3\2\1");
    EXPECT_EQ(fields["v6addr"], std::string(16, length < 24 ? '\0' : '\7')) << length;
    EXPECT_EQ(fields["path"], "") << "a port below 256 is no abstract name";
  }
}

// The address is read at entry or, if the kernel fills it in, at exit; also in calls of 32-bit
// programs, whatever their number.
TEST_F(RunningSyscalls, EndTheAddressesOfAllCallsThatHaveOne) {
  for (const char* name : {"bind", "connect", "sendto", "sendmsg", "accept", "accept4",
                           "getsockname", "getpeername", "recvfrom", "recvmsg"}) {
    const std::vector<const Syscall*> calls = calls_->Match(name, {});
    EXPECT_FALSE(calls.empty()) << name;
    for (const Syscall* call : calls) {
      std::vector<FetchStep> ops = calls_->ResolveEntry(*call).value().fetch;
      const std::vector<FetchStep> exit = calls_->ResolveExit(*call).value().fetch;
      ops.insert(ops.end(), exit.begin(), exit.end());
      EXPECT_EQ(std::ranges::count(ops, FetchCode::kWithin, &FetchStep::code), 4) << name;
      EXPECT_EQ(std::ranges::count(ops, FetchCode::kUnixPath, &FetchStep::code), 1) << name;
      EXPECT_EQ(std::ranges::count(ops, FetchCode::kString, &FetchStep::code), 0) << name;
    }
  }
}

TEST_F(RunningSyscalls, ReadSocketAddressesWholeWhereTheModuleCannotEndThem) {
  const Syscalls calls = Syscalls::Load(*btf_, Catalogue::BuiltIn(), tracefs_.path(),
                                        ~uint32_t{WEFT_KERNEL_SOCKET_ADDRESSES})
                             .value();
  const Resolved connect =
      calls.ResolveEntry(*calls.Match("connect", {"compat_*"}).front()).value();
  EXPECT_EQ(Shape(connect),
            "syscall_entry_connect: fd uservaddr* addrlen family dport v4addr v6addr path$");
  EXPECT_TRUE(connect.left_out.empty());
  for (const FetchStep& op : connect.fetch)
    EXPECT_TRUE(op.code != FetchCode::kWithin && op.code != FetchCode::kUnixPath);
}

TEST_F(RunningSyscalls, LeaveOutFieldsThatTheLoadedModuleCannotMake) {
  const Syscalls calls =
      Syscalls::Load(*btf_, Catalogue::BuiltIn(), tracefs_.path(), ~uint32_t{WEFT_KERNEL_PARTS})
          .value();
  const Resolved writev =
      calls.ResolveEntry(*calls.Match("writev", {"compat_*"}).front(), 64).value();
  EXPECT_EQ(Shape(writev), "syscall_entry_writev: fd vec* vlen");
  ASSERT_EQ(writev.left_out.size(), 2u);
  EXPECT_EQ(writev.left_out[0],
            "iov_len: 'iov_len' is made by a later weft.ko than the one that is loaded");
}

TEST_F(RunningSyscalls, Of32BitProgramsHaveTheirOwnLayouts) {
  const auto compat = [this](const std::string& name) -> const Syscall& {
    for (const Syscall* call : calls_->Match(name, {}))
      if (call->compat && call->table_name == name) return *call;
    throw std::runtime_error("no 32-bit " + name);
  };
  EXPECT_EQ(Shape(calls_->ResolveEntry(compat("nanosleep"))),
            "compat_syscall_entry_nanosleep_time32: rqtp* sec nsec");
  EXPECT_EQ(Shape(calls_->ResolveEntry(compat("pread64"))),
            "compat_syscall_entry_ia32_pread64: fd count pos_low pos_high");
  EXPECT_EQ(Shape(calls_->ResolveExit(compat("stat"))),
            "compat_syscall_exit_newstat: ret statbuf* st_size st_mode");
  const Resolved writev = calls_->ResolveEntry(compat("writev"), 64).value();
  EXPECT_TRUE(writev.left_out.empty()) << writev.left_out.front();
  for (const FetchStep& op : writev.fetch) {
    if (op.code == FetchCode::kArgument && op.arg < 6) {
      EXPECT_LE(op.size, sizeof(uint32_t));
    }
    if (op.code == FetchCode::kLoad || op.code >= FetchCode::kSequence) {
      EXPECT_EQ(op.size, sizeof(uint32_t));
    }
    if (op.code == FetchCode::kSequence) {
      EXPECT_EQ(op.arg, 2 * sizeof(uint32_t));
    }
  }
}

TEST_F(RunningSyscalls, CallsOfUnknownNumbersAreEventsOfTheirOwn) {
  EXPECT_TRUE(Syscalls::MeansUnknown("*", {"open*"}));
  EXPECT_FALSE(Syscalls::MeansUnknown("*", {"unknown"}));
  EXPECT_FALSE(Syscalls::MeansUnknown("open*", {}));
  const auto events = calls_->ResolveUnknown();
  ASSERT_TRUE(events) << events.error().message;
  ASSERT_GE(events->size(), 2u);
  EXPECT_EQ(Shape(events->at(0)), "syscall_entry_unknown: id arg0* arg1* arg2* arg3* arg4* arg5*");
  EXPECT_EQ(Shape(events->at(1)), "syscall_exit_unknown: id ret");
  for (const Resolved& event : *events) {
    EXPECT_EQ(event.number, WEFT_KERNEL_SYSCALL_UNKNOWN);
    ASSERT_EQ(event.known.size(), WEFT_KERNEL_SYSCALL_NUMBERS / 8);
    const auto is_known = [&](uint32_t n) { return (event.known[n / 8] >> n % 8 & 1) != 0; };
    for (const Syscall& call : calls_->all()) {
      if (call.compat == (event.table == WEFT_KERNEL_SYSCALLS_COMPAT)) {
        EXPECT_TRUE(is_known(call.number)) << call.name;
      }
    }
    EXPECT_FALSE(is_known(1000));
  }
}

TEST_F(RunningSyscalls, ThroughAnotherCallAreFoundByTheirOwnNames) {
  const auto by = [this](const std::string& pattern) {
    std::vector<const Syscall*> found = calls_->Match(pattern, {});
    std::erase_if(found, [](const Syscall* call) { return call->by == nullptr; });
    return found;
  };
  if (by("connect").empty()) GTEST_SKIP() << "this kernel runs no 32-bit programs";
  const Syscall& connect = *by("connect").front();
  EXPECT_EQ(connect.number, 102u);
  const Resolved entry = calls_->ResolveEntry(connect).value();
  EXPECT_EQ(Shape(entry),
            "compat_syscall_entry_connect: call fd uservaddr* addrlen family dport v4addr v6addr "
            "path$");
  EXPECT_EQ(entry.condition, "call == 3");
  EXPECT_EQ(Shape(calls_->ResolveExit(connect)), "compat_syscall_exit_connect: call ret");
  // fd is the first of the words behind the second argument.
  ASSERT_GE(entry.fetch.size(), 5u);
  EXPECT_EQ(entry.fetch[2].code, FetchCode::kArgument);
  EXPECT_EQ(entry.fetch[2].arg, 1);
  EXPECT_EQ(entry.fetch[3].code, FetchCode::kLoad);
  EXPECT_EQ(entry.fetch[3].offset, 0);
  EXPECT_EQ(entry.fetch[3].flags & kFetchUser, kFetchUser);
  EXPECT_EQ(by("msgrcv").size(), 2u) << "two versions";
  EXPECT_EQ(calls_->ResolveEntry(*by("semop").front()).value().condition, "(call & 65535) == 1");
  EXPECT_TRUE(by("*").empty()) << "socketcall itself is recorded then";
  EXPECT_TRUE(by("socketcall").empty());
  for (const MultiplexedSyscall& call : MultiplexedSyscalls()) {
    for (const Syscall* found : by(std::string(call.name))) {
      EXPECT_TRUE(calls_->ResolveEntry(*found, 64)) << call.name;
      EXPECT_TRUE(calls_->ResolveExit(*found, 64)) << call.name;
      EXPECT_NE(calls_->ResolveEntry(*found).value().description.size(), 0u);
      EXPECT_TRUE(calls_->ResolveEntry(*found).value().remarks.empty()) << call.name;
    }
  }
}

TEST_F(RunningSyscalls, ReportMissingParameterNames) {
  const Syscalls calls = Syscalls::Load(*btf_, Catalogue::BuiltIn(), "").value();
  size_t said = 0;
  for (const Syscall& call : calls.all()) {
    const Resolved entry = calls.ResolveEntry(call).value();
    const bool is_raw =
        Shape(entry).find(" arg0* arg1* arg2* arg3* arg4* arg5*") != std::string::npos;
    EXPECT_EQ(entry.remarks.size(), is_raw ? 1u : 0u) << call.name;
    said += entry.remarks.size();
  }
  EXPECT_GT(said, 0u);
}

TEST(Tracefs, IsMountedPrivatelyIfItIsNotMounted) {
  if (geteuid() != 0) GTEST_SKIP() << "needs root, to mount tracefs";
  const std::string places[] = {"/nowhere"};
  const Tracefs tracefs = Tracefs::Open(places);
  if (tracefs.path().empty()) {
    EXPECT_TRUE(tracefs.problem().starts_with("tracefs is not mounted, and cannot be: "));
    GTEST_SKIP() << tracefs.problem();
  }
  EXPECT_TRUE(tracefs.path().starts_with("/proc/self/fd/"));
  EXPECT_TRUE(std::filesystem::exists(tracefs.path() + "/events/syscalls/sys_enter_openat/format"));
  EXPECT_EQ(tracefs.problem(), "");
}

TEST_F(RunningSyscalls, LeaveNothingOutThatTheCatalogueNames) {
  size_t left_out = 0;
  for (const Syscall& call : calls_->all()) {
    if (call.compat) continue;
    for (const auto& resolved : {calls_->ResolveEntry(call, 64), calls_->ResolveExit(call, 64)}) {
      for (const std::string& text : resolved->left_out) {
        std::cout << resolved->name << ": " << text << "\n";
        ++left_out;
      }
    }
  }
  EXPECT_LT(left_out, 10u);
}

}  // namespace
}  // namespace weft::kernel
