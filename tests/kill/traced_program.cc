// SPDX-License-Identifier: Apache-2.0
// See traced_program.h.
#include "tests/kill/traced_program.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <poll.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <optional>
#include <span>

#include "lib/abi/context.h"
#include "lib/abi/event.h"

namespace weft::kill_test {
namespace {

constexpr size_t kBufferBytes = 256 * 1024;

[[noreturn]] void Die(const char* what) {
  perror(what);
  abort();
}

struct Record {
  uint64_t lane = 0;
  uint64_t sequence = 0;
  uint64_t check = 0;
};

template <typename T>
T At(std::span<const uint8_t> body, size_t offset) {
  T value{};
  if (offset + sizeof(value) <= body.size()) memcpy(&value, body.data() + offset, sizeof(value));
  return value;
}

// Parses the events of provider.h. std::nullopt: it is none of them, or it is torn.
std::optional<Record> Parse(const std::string& name, std::span<const uint8_t> body) {
  Record r{At<uint64_t>(body, 0), At<uint64_t>(body, 8), At<uint64_t>(body, 16)};
  size_t size = 24;
  if (name == "stress:one") {
    r = {At<uint16_t>(body, 0), At<uint32_t>(body, 4), 0};
    r.check = stress_check(r.lane, r.sequence);
    if (At<uint16_t>(body, 2) != static_cast<uint16_t>(r.check)) return std::nullopt;
    size = 8;
  } else if (name == "stress:two") {
    r = {At<uint32_t>(body, 0), At<uint32_t>(body, 4), At<uint64_t>(body, 8)};
    size = 16;
  } else if (name == "stress:four" || name == "stress:five") {
    size = name == "stress:four" ? 32 : 40;
    for (size_t at = 24; at < size; at += 8)
      if (At<uint64_t>(body, at) != r.check) return std::nullopt;
  } else if (name == "stress:tail") {
    size += 4 + At<uint32_t>(body, 24);
    for (size_t at = 28; at < std::min(size, body.size()); ++at)
      if (body[at] != static_cast<uint8_t>(r.check)) return std::nullopt;
  }
  if (body.size() != size || r.lane >= STRESS_LANES) return std::nullopt;
  return r.check == stress_check(r.lane, r.sequence) ? std::optional(r) : std::nullopt;
}

// Refuses rseq to the calling process and to programs that it executes, as on an old kernel.
void RefuseRseq() {
  sock_filter code[] = {
      BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(seccomp_data, nr)),
      BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_rseq, 0, 1),
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | ENOSYS),
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
  };
  const sock_fprog program{static_cast<unsigned short>(std::size(code)), code};
  if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0 ||
      prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) != 0) {
    _exit(126);
  }
}

// committed = records_before + (head >> 32), without the reader's help.
uint64_t Committed(const ring::RingSet& set, uint32_t slot) {
  const ring::Geometry& g = set.geometry();
  const uint64_t head = set.LoadHead(slot);
  const uint64_t subbuf = static_cast<uint32_t>(head) & ~(g.subbuf_bytes() - 1);
  weft_subbuf_header header{};
  if (!set.ReadAt(g.data_offset + slot * g.slot_bytes() + subbuf,
                  {reinterpret_cast<uint8_t*>(&header), sizeof(header)})) {
    return 0;
  }
  return header.records_before + (head >> 32);
}

}  // namespace

std::string WorkerPath() { return WEFT_BINARY_DIR "/tests/kill/stress_worker"; }
std::string MuslWorkerPath() {
  const std::string path = WorkerPath() + "_musl";
  return access(path.c_str(), X_OK) == 0 ? path : "";
}
std::string LibraryPath() { return WEFT_BINARY_DIR "/lib/libweft.so"; }

TracedProgram::TracedProgram(const TracedProgramConfig& config)
    : config_(config), buffer_(kBufferBytes) {
  prctl(PR_SET_CHILD_SUBREAPER, 1);
  char name[] = "/tmp/weft-kill-XXXXXX";
  if (mkdtemp(name) == nullptr) Die("mkdtemp");
  folder_ = name;
  auto area = control::ControlArea::Create(
      folder_ + "/local.ctl",
      {.slot_count = static_cast<uint32_t>(sysconf(_SC_NPROCESSORS_CONF)), .clock = config.clock});
  if (!area.has_value()) Die(area.error().message.c_str());
  control::ChannelSpec channel;
  channel.id = 7;
  channel.mode = config.mode;
  channel.subbuf_shift = config.subbuf_shift;
  channel.subbufs_shift = config.subbufs_shift;
  channel.rules.push_back({.pattern = "stress:*"});
  for (const uint16_t id : config.contexts) {
    channel.contexts.push_back({.id = id});
    context_bytes_ += weft_context_by_id(id)->size;
  }
  if (!area->Publish({channel}).has_value()) Die("publish");

  listening_.reset(socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  sockaddr_un at{.sun_family = AF_UNIX, .sun_path = {}};
  snprintf(at.sun_path, sizeof(at.sun_path), "%s/%s", name, WEFT_DOORBELL_NAME);
  if (bind(listening_.get(), reinterpret_cast<sockaddr*>(&at), sizeof(at)) != 0 ||
      listen(listening_.get(), 1024) != 0) {
    Die("doorbell");
  }
  UniqueFd fd(open((folder_ + "/books").c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600));
  if (ftruncate(fd.get(), sizeof(stress_books)) != 0) Die("books");
  void* map = mmap(nullptr, sizeof(stress_books), PROT_READ | PROT_WRITE, MAP_SHARED, fd.get(), 0);
  if (map == MAP_FAILED) Die("books");
  books_ = static_cast<stress_books*>(map);
}

TracedProgram::~TracedProgram() {
  munmap(books_, sizeof(stress_books));
  std::filesystem::remove_all(folder_);
}

pid_t TracedProgram::Start(int threads, uint64_t events, const std::string& flags) {
  const std::string books = folder_ + "/books";
  const std::string preload = "LD_PRELOAD=" + LibraryPath();
  const std::string dir = "WEFT_DIR=" + folder_;
  const std::string n = std::to_string(threads);
  const std::string e = std::to_string(events);
  const std::string worker = config_.is_musl ? MuslWorkerPath() : WorkerPath();
  const char* argv[] = {worker.c_str(), books.c_str(), n.c_str(),
                        e.c_str(),      flags.c_str(), nullptr};
  const char* envp[] = {
      preload.c_str(), dir.c_str(),
      config_.extra_environment.empty() ? nullptr : config_.extra_environment.c_str(), nullptr};
  const pid_t pid = fork();
  if (pid == 0) {
    setpgid(0, 0);
    const rlimit no_core{};
    setrlimit(RLIMIT_CORE, &no_core);
    const rlimit no_room{4096, 4096};
    if (!config_.has_room) setrlimit(RLIMIT_FSIZE, &no_room);
    if (config_.rseq_is_refused) RefuseRseq();
    execve(worker.c_str(), const_cast<char**>(argv), const_cast<char**>(envp));
    _exit(127);
  }
  setpgid(pid, pid);
  return pid;
}

void TracedProgram::Wrong(const std::string& what) {
  if (result_.wrong.empty()) result_.wrong = what;
}

bool TracedProgram::HasCallers() const {
  pollfd fd{listening_.get(), POLLIN, 0};
  return poll(&fd, 1, 0) == 1;
}

bool TracedProgram::HasEnded() const {
  return std::ranges::any_of(books_->lanes,
                             [](const stress_lane& lane) { return lane.ended != 0; });
}

void TracedProgram::TakeCallers() {
  for (;;) {
    UniqueFd s(accept4(listening_.get(), nullptr, nullptr, SOCK_CLOEXEC));
    if (!s.valid()) return;
    weft_doorbell bell{};
    iovec iov{&bell, sizeof(bell)};
    alignas(cmsghdr) char control[CMSG_SPACE(sizeof(int))];
    msghdr message{};
    message.msg_iov = &iov;
    message.msg_iovlen = 1;
    message.msg_control = control;
    message.msg_controllen = sizeof(control);
    const ssize_t got = recvmsg(s.get(), &message, MSG_CMSG_CLOEXEC);
    const cmsghdr* c = CMSG_FIRSTHDR(&message);
    if (got <= 0 || c == nullptr)
      continue;  // killed between connect and send: it has no record yet
    int fd = -1;
    memcpy(&fd, CMSG_DATA(c), sizeof(fd));
    auto set = ring::RingSet::Open(UniqueFd(fd));
    if (!set.has_value()) {
      Wrong("ring set refused: " + set.error().message);
      continue;
    }
    Ring ring;
    ring.number = static_cast<uint32_t>(rings_.size());
    ring.set = std::make_unique<ring::RingSet>(std::move(*set));
    for (uint32_t i = 0; i < ring.set->geometry().slot_count; ++i)
      ring.slots.emplace_back(*ring.set, i);
    rings_.push_back(std::move(ring));
    ++result_.ring_sets;
  }
}

void TracedProgram::ReadNames(Ring& ring) {
  const uint64_t used = ring.set->LoadDescriptionsUsed();
  std::vector<uint8_t> bytes(used);
  if (used == ring.descriptions ||
      !ring.set->ReadAt(ring.set->geometry().descriptions_offset, bytes)) {
    return;
  }
  uint64_t at = 0;
  while (at + sizeof(weft_description_entry) + sizeof(weft_event_desc) < used) {
    weft_description_entry entry;
    memcpy(&entry, bytes.data() + at, sizeof(entry));
    ring.names[entry.event] =
        reinterpret_cast<const char*>(bytes.data() + at + sizeof(entry) + sizeof(weft_event_desc));
    at += (entry.size + 7) & ~7U;
  }
  ring.descriptions = used;
}

void TracedProgram::Check(Ring& ring, uint32_t slot, const ring::RecordView& record) {
  // The record may be newer than the names that were read before the slot, never older than its own
  // name.
  if (!ring.names.contains(record.event)) ReadNames(ring);
  if (!ring.names.contains(record.event)) return Wrong("event without a description");
  const size_t contexts = std::min(context_bytes_, record.body.size());
  const std::optional<Record> r = Parse(ring.names[record.event], record.body.subspan(contexts));
  if (!r) return Wrong("torn record of " + ring.names[record.event]);
  lanes_.Saw(r->lane, {r->sequence, record.time, ring.number, slot});
  ++result_.read;
  result_.read_of_plugin += ring.names[record.event] == "stress:plugin" ? 1 : 0;
  result_.read_of_provider += ring.names[record.event] == "stress:provided" ? 1 : 0;
  if (r->sequence >= books_->lanes[r->lane].begun) Wrong("a record of an event that never began");
}

void TracedProgram::ReadSlot(Ring& ring, ring::SlotReader& slot) {
  if (!slot.Look().has_value()) return Wrong(std::string("look: ") + slot.why_corrupt());
  for (;;) {
    switch (slot.Fetch()) {
      case ring::SlotReader::Step::kRecord:
        Check(ring, slot.slot(), slot.record());
        slot.Advance();
        break;
      case ring::SlotReader::Step::kNeedCopy:
        if (!slot.Copy(buffer_).has_value())
          return Wrong(std::string("copy: ") + slot.why_corrupt());
        break;
      case ring::SlotReader::Step::kEnd:
        ring.set->StoreTail(slot.slot(), slot.position());
        return;
      case ring::SlotReader::Step::kCorrupt:
        return Wrong(std::string("corrupt: ") + slot.why_corrupt());
    }
  }
}

void TracedProgram::Read(Ring& ring) {
  for (ring::SlotReader& slot : ring.slots) {
    ReadNames(ring);
    ReadSlot(ring, slot);
  }
}

void TracedProgram::Poll() {
  TakeCallers();
  for (Ring& ring : rings_) Read(ring);
}

uint64_t TracedProgram::Count(const Ring& ring, const ring::SlotReader& slot) {
  const bool atomic = slot.slot() == ring.set->geometry().slot_count - 1;
  const uint64_t recorded = Committed(*ring.set, slot.slot());
  uint64_t discarded = 0;
  for (const uint64_t n : ring.set->LoadDiscarded(slot.slot())) discarded += n;
  if (slot.clamped() != 0) Wrong("times went back");
  result_.recorded += recorded;
  result_.discarded += discarded;
  result_.overwritten += slot.state().overwritten;
  if (atomic) {
    result_.recorded_atomically += recorded;
    result_.discarded_atomically += discarded;
  }
  return discarded + slot.state().overwritten;
}

Books TracedProgram::Finish(pid_t worker, bool kill) {
  if (kill) ::kill(-worker, SIGKILL);
  int status = 0;
  for (;;) {
    const pid_t gone = waitpid(-1, &status, kill ? 0 : WNOHANG);
    if (gone < 0) break;
    if (gone == 0) {
      Poll();
      usleep(200);
    } else if (gone == worker && !kill && status != 0) {
      Wrong("the worker ended with status " + std::to_string(status));
    }
  }
  Poll();
  Poll();  // an overwritten slot needs a second look
  std::vector<uint64_t> lost;
  for (Ring& ring : rings_) {
    result_.undescribed += ring.set->LoadDescriptionsUsed() == 0 ? 1 : 0;
    lost.push_back(0);
    for (const ring::SlotReader& slot : ring.slots) lost.back() += Count(ring, slot);
  }
  if (config_.has_room) {
    if (const std::string wrong = lanes_.Contradiction(*books_, lost); !wrong.empty()) Wrong(wrong);
  }
  for (const stress_lane& lane : books_->lanes) {
    result_.begun += lane.begun;
    result_.ended += lane.ended;
  }
  return result_;
}

}  // namespace weft::kill_test
