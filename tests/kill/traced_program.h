// SPDX-License-Identifier: Apache-2.0
// The surroundings of one traced program: control area, doorbell, books, and a reader of all its
// ring sets that checks every record. One thread; call Poll() now and then while the program runs,
// and Finish() after its end.
#ifndef WEFT_TESTS_KILL_TRACED_PROGRAM_H_
#define WEFT_TESTS_KILL_TRACED_PROGRAM_H_

#include <sys/types.h>

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "lib/base/unique_fd.h"
#include "lib/control/area.h"
#include "lib/ring/ring_set.h"
#include "lib/ring/slot_reader.h"
#include "tests/kill/books.h"
#include "tests/kill/lanes.h"

namespace weft::kill_test {

struct TracedProgramConfig {
  weft_ring_mode mode = WEFT_RING_DISCARD;
  uint32_t subbuf_shift = 12;
  uint32_t subbufs_shift = 2;
  weft_clock_id clock = WEFT_CLOCK_TSC;
  std::string extra_environment;   // NAME=VALUE, or ""
  bool rseq_is_refused = false;    // by a seccomp filter: all that is left is the atomic slot
  bool has_room = true;            // for a ring set; if not, what is emitted is counted nowhere
  bool is_musl = false;            // the worker is a musl program
  std::vector<uint16_t> contexts;  // of every record; of fixed sizes
};

// The two sides of P3's equation after the end of a program.
struct Books {
  uint64_t begun = 0;
  uint64_t ended = 0;
  uint64_t recorded = 0;
  uint64_t read = 0;
  uint64_t read_of_plugin = 0;    // of `read`, events of an object that was unloaded
  uint64_t read_of_provider = 0;  // of `read`, events whose probe was loaded
  uint64_t discarded = 0;
  uint64_t overwritten = 0;
  uint64_t recorded_atomically = 0;   // of `recorded`, in atomic slots
  uint64_t discarded_atomically = 0;  // of `discarded`
  uint64_t ring_sets = 0;
  uint64_t undescribed = 0;  // ring sets without a description
  std::string wrong;         // the first contradiction, "" if all is well
};

class TracedProgram {
 public:
  explicit TracedProgram(const TracedProgramConfig& config);
  ~TracedProgram();
  TracedProgram(const TracedProgram&) = delete;
  TracedProgram& operator=(const TracedProgram&) = delete;

  // Starts the worker with `flags`; its pid.
  pid_t Start(int threads, uint64_t events, const std::string& flags);
  // Takes new ring sets and reads what there is.
  void Poll();
  // Was a ring set announced and not taken?
  [[nodiscard]] bool HasCallers() const;
  // Has some event's macro returned, or one of a lane's?
  [[nodiscard]] bool HasEnded() const;
  [[nodiscard]] bool HasEnded(uint64_t lane) const { return books_->lanes[lane].ended != 0; }
  // Ends the worker and all its children if they still run; then reads the rest.
  Books Finish(pid_t worker, bool kill);

 private:
  struct Ring {
    std::unique_ptr<ring::RingSet> set;
    std::vector<ring::SlotReader> slots;
    std::map<uint16_t, std::string> names;
    uint64_t descriptions = 0;
    uint32_t number = 0;
  };
  void TakeCallers();
  void ReadNames(Ring& ring);
  void Read(Ring& ring);
  void ReadSlot(Ring& ring, ring::SlotReader& slot);
  void Check(Ring& ring, uint32_t slot, const ring::RecordView& record);
  // Adds a slot to the result. Returns the events that were discarded or overwritten in it.
  uint64_t Count(const Ring& ring, const ring::SlotReader& slot);
  void Wrong(const std::string& what);

  TracedProgramConfig config_;
  size_t context_bytes_ = 0;  // of a record
  std::string folder_;
  UniqueFd listening_;
  stress_books* books_ = nullptr;
  std::vector<Ring> rings_;
  std::vector<uint8_t> buffer_;
  Lanes lanes_;
  Books result_;
};

// Returns the folder into which the build put what the tests run.
std::string WorkerPath();
std::string MuslWorkerPath();  // "": there was no compiler for it
std::string LibraryPath();

}  // namespace weft::kill_test

#endif  // WEFT_TESTS_KILL_TRACED_PROGRAM_H_
