// SPDX-License-Identifier: Apache-2.0
// A ring set (lib/abi/ring.h) as its reader sees it: a memfd of a process that may be hostile.
// Open() refuses everything that could hurt later: what is no sealed tmpfs memfd (it could shrink
// under the mapping), sizes that contradict each other, unknown versions and features. The header
// is copied once and only the copy is used.
//
// The consumer's thread uses it. Slot words are shared with the traced process: they are read and
// written as single atomic words and mean nothing until checked; records are copied by pread only.
// Invariant: after Open no access can fault, block or allocate more than the mapped pages: the
// memory cannot shrink, and a punched hole reads as zeros.
#ifndef WEFT_LIB_RING_RING_SET_H_
#define WEFT_LIB_RING_RING_SET_H_

#include <array>
#include <cstdint>
#include <span>

#include "lib/abi/ring.h"
#include "lib/base/bytes.h"
#include "lib/base/result.h"
#include "lib/base/unique_fd.h"

namespace weft::ring {

// Records and descriptions begin at such offsets.
constexpr uint64_t RoundUp8(uint64_t bytes) { return (bytes + 7) & ~uint64_t{7}; }

// A checked copy of the header.
struct Geometry {
  uint64_t total_size = 0;
  uint64_t slots_offset = 0;
  uint64_t descriptions_offset = 0;
  uint64_t descriptions_size = 0;
  uint64_t data_offset = 0;
  uint32_t slot_count = 0;
  uint32_t slot_size = 0;
  uint32_t slot_shift = 0;
  uint32_t subbuf_shift = 0;
  uint32_t mode = 0;
  uint32_t clock = 0;
  uint64_t channel_id = 0;
  uint64_t instance = 0;
  uint64_t created = 0;
  uint32_t claimed_pid = 0;

  [[nodiscard]] uint32_t subbufs() const { return 1U << (slot_shift - subbuf_shift); }
  [[nodiscard]] uint64_t subbuf_bytes() const { return uint64_t{1} << subbuf_shift; }
  [[nodiscard]] uint64_t slot_bytes() const { return uint64_t{1} << slot_shift; }
  [[nodiscard]] bool overwrite() const { return mode == WEFT_RING_OVERWRITE; }
  // Returns the size of the largest record that a writer may make.
  [[nodiscard]] uint32_t max_record() const {
    const uint64_t quarter = subbuf_bytes() / 4;
    return quarter < WEFT_RECORD_MAX_BYTES ? static_cast<uint32_t>(quarter) : WEFT_RECORD_MAX_BYTES;
  }
};

// Checks a copy of the header against the file's size. kCorrupt; kUnsupported: it has a version or
// feature of later writers. It has no side effects.
Result<Geometry> ParseHeader(Bytes header, uint64_t file_size);

// Checks the header in a descriptor's memory: makes no mapping and keeps nothing. kInvalid: it is
// no sealed tmpfs memfd. It never blocks, whatever kind of file a stranger sent.
Result<Geometry> ReadGeometry(int fd);

// Names the memory as the kernel does: by an inode number, which no process can choose. Rings of
// weft.ko share their inode: for these it is device 0 and the instance.
struct RingKey {
  uint64_t device = 0;
  uint64_t inode = 0;
  auto operator<=>(const RingKey&) const = default;
};

class RingSet {
 public:
  // Takes over the descriptor. kInvalid: it is no sealed tmpfs memfd; kCorrupt, kUnsupported: see
  // ParseHeader.
  static Result<RingSet> Open(UniqueFd fd);
  // Takes a ring of weft.ko (lib/abi/kernel.h), which is no file: it has no size and no seals. The
  // caller has it from the agent, never from a process. kCorrupt, kUnsupported: ParseHeader.
  static Result<RingSet> OpenKernel(UniqueFd fd);

  RingSet(RingSet&& other) noexcept;
  RingSet& operator=(RingSet&&) = delete;
  RingSet(const RingSet&) = delete;
  ~RingSet();

  [[nodiscard]] const Geometry& geometry() const { return geometry_; }
  [[nodiscard]] const RingKey& key() const { return key_; }
  [[nodiscard]] int fd() const { return fd_.get(); }

  // These load words of a slot; `slot` < slot_count. Any value may come back.
  [[nodiscard]] uint64_t LoadHead(uint32_t slot) const;
  [[nodiscard]] uint64_t LoadFrontier(uint32_t slot) const;
  [[nodiscard]] uint64_t LoadTail(uint32_t slot) const;
  [[nodiscard]] std::array<uint64_t, WEFT_DISCARD_REASONS> LoadDiscarded(uint32_t slot) const;
  // Return the atomic slot's owner, 0: none; and the time of the last record that it began.
  [[nodiscard]] uint64_t LoadLock(uint32_t slot) const;
  [[nodiscard]] uint64_t LoadLastTime(uint32_t slot) const;
  [[nodiscard]] uint64_t LoadDescriptionsUsed() const;

  // R5: gives room to the writer, after everything below `position` was copied.
  void StoreTail(uint32_t slot, uint64_t position);
  // Closes all slots: no record begins after this and a barrier on every CPU (see CloseBarrier).
  void StoreClosed();

  // Copies exactly out.size() bytes from `offset`. kIo never depends on the writer.
  Status ReadAt(uint64_t offset, std::span<uint8_t> out) const;

 private:
  static Result<RingSet> Map(UniqueFd fd, const Geometry& geometry, RingKey key);
  RingSet(UniqueFd fd, const Geometry& geometry, RingKey key, uint8_t* map, size_t map_bytes)
      : fd_(std::move(fd)), geometry_(geometry), key_(key), map_(map), map_bytes_(map_bytes) {}

  [[nodiscard]] uint8_t* Slot(uint32_t slot) const {
    return map_ + geometry_.slots_offset + uint64_t{slot} * geometry_.slot_size;
  }

  UniqueFd fd_;
  Geometry geometry_;
  RingKey key_;
  uint8_t* map_ = nullptr;
  size_t map_bytes_ = 0;
};

// Runs a barrier on all CPUs, after StoreClosed of any number of ring sets. It takes milliseconds.
// Returns false if the kernel has no global membarrier; the caller then waits and looks again.
bool CloseBarrier();

}  // namespace weft::ring

#endif  // WEFT_LIB_RING_RING_SET_H_
