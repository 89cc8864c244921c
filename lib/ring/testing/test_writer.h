// SPDX-License-Identifier: Apache-2.0
// A second writer of ring sets, for tests only: plain C++, one thread at a time per slot, written
// from lib/abi/ring.h and sharing no code with the real writer or the reader. It follows steps W, S
// and D and can stop between any two stores, as a killed process would.
#ifndef WEFT_LIB_RING_TESTING_TEST_WRITER_H_
#define WEFT_LIB_RING_TESTING_TEST_WRITER_H_

#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <vector>

#include "lib/abi/control.h"
#include "lib/abi/ring.h"
#include "lib/base/unique_fd.h"

namespace weft::ring::testing {

struct WriterOptions {
  uint32_t slots = 3;  // the last one is the atomic slot
  uint32_t subbuf_shift = 12;
  uint32_t subbufs_shift = 2;
  uint32_t mode = WEFT_RING_DISCARD;
  uint32_t clock = WEFT_CLOCK_TSC;
  uint64_t channel_id = 1;
  uint64_t instance = 42;
  uint64_t descriptions_size = 64 * 1024;
  int seals = -1;  // -1: the right ones
};

class TestWriter {
 public:
  explicit TestWriter(const WriterOptions& options = {});
  ~TestWriter();
  TestWriter(const TestWriter&) = delete;
  TestWriter& operator=(const TestWriter&) = delete;

  // Returns another descriptor of the memory.
  [[nodiscard]] UniqueFd Fd() const;
  [[nodiscard]] weft_ring_header* header() { return reinterpret_cast<weft_ring_header*>(map_); }
  // Returns the header as it was made. The functions below use this one, whatever the header in
  // memory says since.
  [[nodiscard]] const weft_ring_header& made() const { return made_; }
  [[nodiscard]] weft_slot* slot(uint32_t index);
  [[nodiscard]] uint8_t* ring(uint32_t slot);
  [[nodiscard]] std::span<uint8_t> memory() { return {map_, bytes_}; }

  // Appends a description; `commit` false: killed before its commit.
  void Describe(uint16_t event, std::span<const uint8_t> description, bool commit = true);

  // Records one event. Returns false if it was discarded (and counted) or the slot is closed.
  bool Write(uint32_t slot, uint16_t event, uint16_t cpu, uint64_t time,
             std::span<const uint8_t> body);

  // Called before each store of Write; a false answer leaves Write at that point ("killed").
  std::function<bool()> before_store;

  [[nodiscard]] uint64_t committed(uint32_t slot) const { return committed_[slot]; }
  [[nodiscard]] uint64_t discarded(uint32_t slot) const { return discarded_[slot]; }

 private:
  enum class Result { kDone, kFull, kKilled };
  bool Store() { return !before_store || before_store(); }
  Result Switch(uint32_t slot);

  WriterOptions options_;
  weft_ring_header made_{};
  UniqueFd fd_;
  uint8_t* map_ = nullptr;
  uint64_t bytes_ = 0;
  std::vector<uint64_t> committed_, discarded_;
};

// Returns the description of an event without fields, or with unsigned 64-bit integers of the given
// names.
std::vector<uint8_t> MakeDescription(const std::string& name,
                                     const std::vector<std::string>& u64_fields = {});

}  // namespace weft::ring::testing

#endif  // WEFT_LIB_RING_TESTING_TEST_WRITER_H_
