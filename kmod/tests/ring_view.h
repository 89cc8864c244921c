// SPDX-License-Identifier: GPL-2.0-only
// Reads a ring of weft.ko for tests. It is written from lib/abi/ring.h and shares no code with the
// consumer's reader. It does not trust the module: a contradiction ends the reading with a text.
// One thread per slot.
#ifndef WEFT_KMOD_TESTS_RING_VIEW_H_
#define WEFT_KMOD_TESTS_RING_VIEW_H_

#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <vector>

#include "lib/abi/ring.h"

namespace weft::kmod {

struct SeenRecord {
  uint64_t time;
  uint16_t event, cpu;
  std::span<const uint8_t> payload;
  // Returns the u64 field at `index`; 0: the record is too short.
  [[nodiscard]] uint64_t Field(size_t index) const;
};

class RingView {
 public:
  using Use = std::function<void(uint32_t slot, const SeenRecord& record)>;

  // Maps the shared part of a ring's descriptor, which the caller keeps open.
  explicit RingView(int fd);
  ~RingView();
  RingView(const RingView&) = delete;
  RingView& operator=(const RingView&) = delete;

  // Returns "" if all is well, otherwise what contradicts lib/abi/ring.h.
  [[nodiscard]] const std::string& problem() const { return problem_; }
  [[nodiscard]] const weft_ring_header& header() const { return header_; }  // the copy of Open
  [[nodiscard]] uint8_t* map() const { return map_; }
  [[nodiscard]] weft_slot* slot(uint32_t index) const;
  [[nodiscard]] uint32_t rings() const {
    return header_.slot_count - 1;
  }  // without the atomic slot

  // Reads the committed records of a slot that were not read before, then stores tail. In overwrite
  // mode, call it only after the writer came to rest; it then reads all that is left. Returns the
  // number of records.
  uint64_t Drain(uint32_t index, const Use& use);
  // All slots.
  uint64_t DrainAll(const Use& use);

  // Sums of the slots' counts.
  [[nodiscard]] uint64_t Committed() const;
  [[nodiscard]] uint64_t Discarded() const;  // whatever the reason
  [[nodiscard]] uint64_t Missed() const;     // of those, what the kernel did not deliver
  [[nodiscard]] uint64_t overwritten() const { return overwritten_; }

 private:
  struct Place {
    uint64_t position = sizeof(weft_subbuf_header);
    uint64_t records = 0;  // below position, overwritten ones included
    uint64_t last_time = 0;
  };

  // Reads the sub-buffer that `sequence` names, if it still exists, from `from` to its end or to
  // `head`.
  uint64_t ReadSubbuf(uint32_t index, uint64_t sequence, uint64_t head_sequence, const Use& use);
  uint64_t Walk(uint32_t index, uint64_t sequence, std::span<const uint8_t> bytes, uint64_t start,
                const Use& use);
  weft_subbuf_header SubbufHeader(uint32_t index, uint64_t sequence);
  bool Read(uint64_t offset, void* to, size_t bytes);
  uint64_t DataOffset(uint32_t index, uint64_t sequence) const;
  uint64_t SequenceOfHead(uint32_t index, uint64_t head);
  void Wrong(uint32_t index, const std::string& what);

  int fd_;
  uint8_t* map_ = nullptr;
  weft_ring_header header_{};
  std::vector<Place> places_;
  std::vector<uint8_t> buffer_;
  uint64_t overwritten_ = 0;
  std::string problem_;
};

}  // namespace weft::kmod

#endif  // WEFT_KMOD_TESTS_RING_VIEW_H_
