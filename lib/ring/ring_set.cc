// SPDX-License-Identifier: Apache-2.0
// See ring_set.h.
#include "lib/ring/ring_set.h"

#include <fcntl.h>
#include <linux/magic.h>
#include <linux/membarrier.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/vfs.h>

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <optional>
#include <string>

#include "lib/ring/reader_limits.h"

namespace weft::ring {
namespace {

constexpr uint64_t kAlign = 8;

std::unexpected<Error> CorruptHeader(const char* what) {
  return Fail(ErrorCode::kCorrupt, std::string("ring header: ") + what);
}

Status CheckIdentity(const weft_ring_header& h) {
  if (h.magic != WEFT_RING_MAGIC) return CorruptHeader("wrong magic number");
  if (h.major != WEFT_RING_MAJOR) {
    return Fail(ErrorCode::kUnsupported,
                "ring header: major version " + std::to_string(h.major) + " is not ours");
  }
  if (h.features != 0) {
    return Fail(ErrorCode::kUnsupported, "ring header: unknown features");
  }
  if (h.header_size < sizeof(h) || h.header_size > kMaxHeaderSize || h.header_size % kAlign != 0) {
    return CorruptHeader("header_size");
  }
  if (h.reserved0 != 0 || std::any_of(std::begin(h.reserved), std::end(h.reserved),
                                      [](uint64_t v) { return v != 0; })) {
    return CorruptHeader("reserved is not zero");
  }
  if (h.mode > WEFT_RING_OVERWRITE) return CorruptHeader("mode");
  if (h.clock != WEFT_CLOCK_TSC && h.clock != WEFT_CLOCK_MONOTONIC) return CorruptHeader("clock");
  return {};
}

// Every product and sum below stays far under 2^64: counts and shifts are checked first.
Status CheckRegions(const weft_ring_header& h, uint64_t file_size) {
  if (h.total_size != file_size || h.total_size > kMaxTotalSize) return CorruptHeader("total_size");
  if (h.slot_count == 0 || h.slot_count > WEFT_RING_MAX_SLOTS) return CorruptHeader("slot_count");
  if (h.slot_size < sizeof(weft_slot) || h.slot_size > kMaxSlotSize || h.slot_size % kAlign != 0) {
    return CorruptHeader("slot_size");
  }
  if (h.subbuf_shift < WEFT_RING_MIN_SUBBUF_SHIFT || h.slot_shift > WEFT_RING_MAX_SLOT_SHIFT ||
      h.slot_shift < h.subbuf_shift + uint64_t{WEFT_RING_MIN_SUBBUFS_SHIFT} ||
      h.slot_shift > h.subbuf_shift + uint64_t{WEFT_RING_MAX_SUBBUFS_SHIFT}) {
    return CorruptHeader("slot_shift or subbuf_shift");
  }
  const uint64_t slots_bytes = uint64_t{h.slot_count} * h.slot_size;
  const uint64_t data_bytes = uint64_t{h.slot_count} << h.slot_shift;
  if ((h.slots_offset | h.descriptions_offset | h.data_offset) % kAlign != 0) {
    return CorruptHeader("an offset is not aligned");
  }
  if (h.slots_offset < h.header_size || h.slots_offset > kMaxMappedBytes - slots_bytes) {
    return CorruptHeader("slots_offset");
  }
  if (h.descriptions_offset < h.slots_offset + slots_bytes ||
      h.descriptions_offset > h.total_size || h.descriptions_size > kMaxDescriptionsSize) {
    return CorruptHeader("descriptions_offset or descriptions_size");
  }
  if (h.data_offset < h.descriptions_offset + h.descriptions_size || h.data_offset > h.total_size ||
      data_bytes > h.total_size - h.data_offset) {
    return CorruptHeader("data_offset");
  }
  return {};
}

// Returns a word of the traced process. The mapping is never const and never typed: all access goes
// by std::atomic_ref on 8-byte aligned words (offsets and slot sizes are checked multiples of 8).
std::atomic_ref<uint64_t> Word(uint8_t* at) {
  return std::atomic_ref<uint64_t>(*reinterpret_cast<uint64_t*>(at));
}

Status CheckFile(int fd, struct stat& st) {
  // First, since it asks no file system: those of a stranger's choice (FUSE) could let us wait
  // forever.
  const int seals = ::fcntl(fd, F_GET_SEALS);
  constexpr int kNeeded = F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL;
  if (seals < 0 || (seals & kNeeded) != kNeeded) {
    return Fail(ErrorCode::kInvalid, "ring: memory is not sealed against resizing");
  }
  struct statfs fs{};
  if (::fstatfs(fd, &fs) != 0) return FailErrno("ring: fstatfs");
  // hugetlbfs memfds pass the check of seals, but punching a hole there makes access fault.
  if (fs.f_type != TMPFS_MAGIC) return Fail(ErrorCode::kInvalid, "ring: memory is not tmpfs");
  if (::fstat(fd, &st) != 0) return FailErrno("ring: fstat");
  if (!S_ISREG(st.st_mode)) return Fail(ErrorCode::kInvalid, "ring: not a file");
  return {};
}

}  // namespace

Result<Geometry> ParseHeader(Bytes bytes, uint64_t file_size) {
  ByteReader reader(bytes);
  const auto h = reader.Read<weft_ring_header>();
  if (!reader.ok()) return CorruptHeader("memory is shorter than a header");
  WEFT_TRY(CheckIdentity(h));
  WEFT_TRY(CheckRegions(h, file_size));
  return Geometry{.total_size = h.total_size,
                  .slots_offset = h.slots_offset,
                  .descriptions_offset = h.descriptions_offset,
                  .descriptions_size = h.descriptions_size,
                  .data_offset = h.data_offset,
                  .slot_count = h.slot_count,
                  .slot_size = h.slot_size,
                  .slot_shift = h.slot_shift,
                  .subbuf_shift = h.subbuf_shift,
                  .mode = h.mode,
                  .clock = h.clock,
                  .channel_id = h.channel_id,
                  .instance = h.instance,
                  .created = h.created,
                  .claimed_pid = h.pid};
}

namespace {

// `file_size`: std::nullopt if the header alone counts.
Result<Geometry> ReadHeader(int fd, std::optional<uint64_t> file_size) {
  weft_ring_header header{};
  const ssize_t got = ::pread(fd, &header, sizeof(header), 0);
  if (got < 0) return FailErrno("ring: pread");
  return ParseHeader(Bytes(reinterpret_cast<const uint8_t*>(&header), static_cast<size_t>(got)),
                     file_size.value_or(header.total_size));
}

Result<Geometry> ReadChecked(int fd, struct stat& st) {
  WEFT_TRY(CheckFile(fd, st));
  return ReadHeader(fd, static_cast<uint64_t>(st.st_size));
}

}  // namespace

Result<Geometry> ReadGeometry(int fd) {
  struct stat st{};
  return ReadChecked(fd, st);
}

Result<RingSet> RingSet::Open(UniqueFd fd) {
  struct stat st{};
  WEFT_ASSIGN(const Geometry geometry, ReadChecked(fd.get(), st));
  return Map(std::move(fd), geometry, RingKey{st.st_dev, st.st_ino});
}

Result<RingSet> RingSet::OpenKernel(UniqueFd fd) {
  WEFT_ASSIGN(const Geometry geometry, ReadHeader(fd.get(), std::nullopt));
  return Map(std::move(fd), geometry, RingKey{0, geometry.instance});
}

Result<RingSet> RingSet::Map(UniqueFd fd, const Geometry& geometry, RingKey key) {
  const size_t map_bytes =
      geometry.slots_offset + uint64_t{geometry.slot_count} * geometry.slot_size;
  void* map = ::mmap(nullptr, map_bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd.get(), 0);
  if (map == MAP_FAILED) return FailErrno("ring: mmap");
  return RingSet(std::move(fd), geometry, key, static_cast<uint8_t*>(map), map_bytes);
}

RingSet::RingSet(RingSet&& other) noexcept
    : fd_(std::move(other.fd_)),
      geometry_(other.geometry_),
      key_(other.key_),
      map_(std::exchange(other.map_, nullptr)),
      map_bytes_(other.map_bytes_) {}

RingSet::~RingSet() {
  if (map_ != nullptr) ::munmap(map_, map_bytes_);
}

uint64_t RingSet::LoadHead(uint32_t slot) const {
  // acquire: pairs with the writer's commit (W5, S5); what head covers is copied after it.
  return Word(Slot(slot) + offsetof(weft_slot, head)).load(std::memory_order_acquire);
}

uint64_t RingSet::LoadFrontier(uint32_t slot) const {
  // The copy before this load must not be moved behind it (R3): a fence for loads, then the load.
  std::atomic_thread_fence(std::memory_order_acquire);  // acquire: orders the copy before the load
  return Word(Slot(slot) + offsetof(weft_slot, frontier)).load(std::memory_order_acquire);
}

uint64_t RingSet::LoadTail(uint32_t slot) const {
  // relaxed: only readers store it
  return Word(Slot(slot) + offsetof(weft_slot, tail)).load(std::memory_order_relaxed);
}

std::array<uint64_t, WEFT_DISCARD_REASONS> RingSet::LoadDiscarded(uint32_t slot) const {
  std::array<uint64_t, WEFT_DISCARD_REASONS> out{};
  for (size_t i = 0; i < WEFT_DISCARD_MISSED; i++) {
    // relaxed: a count of its own; after a close, CloseBarrier orders it
    out[i] =
        Word(Slot(slot) + offsetof(weft_slot, discarded) + 8 * i).load(std::memory_order_relaxed);
  }
  // relaxed: as above
  out[WEFT_DISCARD_MISSED] =
      Word(Slot(slot) + offsetof(weft_slot, missed)).load(std::memory_order_relaxed);
  return out;
}

uint64_t RingSet::LoadLock(uint32_t slot) const {
  // acquire: an owner seen as gone has committed; last_time is read after it
  return Word(Slot(slot) + offsetof(weft_slot, lock)).load(std::memory_order_acquire);
}

uint64_t RingSet::LoadLastTime(uint32_t slot) const {
  // relaxed: a bound that is checked against the clock
  return Word(Slot(slot) + offsetof(weft_slot, last_time)).load(std::memory_order_relaxed);
}

uint64_t RingSet::LoadDescriptionsUsed() const {
  // acquire: pairs with the commit of an entry; its bytes are copied after it
  return Word(map_ + offsetof(weft_ring_header, descriptions_used)).load(std::memory_order_acquire);
}

void RingSet::StoreTail(uint32_t slot, uint64_t position) {
  // release: the copy was done before the writer may store there (pairs with the writer's load in
  // S1)
  Word(Slot(slot) + offsetof(weft_slot, tail)).store(position, std::memory_order_release);
}

void RingSet::StoreClosed() {
  for (uint32_t slot = 0; slot < geometry_.slot_count; slot++) {
    auto* closed = reinterpret_cast<uint32_t*>(Slot(slot) + offsetof(weft_slot, closed));
    // relaxed: CloseBarrier orders it
    std::atomic_ref<uint32_t>(*closed).store(1, std::memory_order_relaxed);
  }
}

Status RingSet::ReadAt(uint64_t offset, std::span<uint8_t> out) const {
  size_t done = 0;
  while (done < out.size()) {
    const ssize_t n =
        ::pread(fd_.get(), out.data() + done, out.size() - done, static_cast<off_t>(offset + done));
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) return FailErrno("ring: pread");
    if (n == 0) return Fail(ErrorCode::kCorrupt, "ring: memory ends too early");
    done += static_cast<size_t>(n);
  }
  return {};
}

bool CloseBarrier() { return ::syscall(SYS_membarrier, MEMBARRIER_CMD_GLOBAL, 0, 0) == 0; }

}  // namespace weft::ring
