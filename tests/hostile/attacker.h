// SPDX-License-Identifier: Apache-2.0
// A hostile process: writes valid records, and between them whatever could harm a reader, into
// memory that a consumer reads at the same time. Deterministic for a seed, apart from that race.
#ifndef WEFT_TESTS_HOSTILE_ATTACKER_H_
#define WEFT_TESTS_HOSTILE_ATTACKER_H_

#include <cstdint>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include "lib/ring/testing/test_writer.h"

namespace weft::hostile {

// Memory that is no ring set, by the defect that it has.
enum class Impostor : uint8_t {
  kUnsealed,
  kHalfSealed,
  kTruncated,  // before it was sealed
  kGiant,      // grown before it was sealed
  kHugePages,  // hugetlbfs, where a hole makes access fault
  kDevice,     // no memory of a file system at all
  kEmpty,      // sealed, without a byte
};
inline constexpr Impostor kImpostors[] = {
    Impostor::kUnsealed,  Impostor::kHalfSealed, Impostor::kTruncated, Impostor::kGiant,
    Impostor::kHugePages, Impostor::kDevice,     Impostor::kEmpty,
};

class Attacker {
 public:
  explicit Attacker(uint32_t seed) : random_(seed) {}

  // Makes one mutation of `ring`, random or targeted.
  void Mutate(ring::testing::TestWriter& ring);
  // Makes one that a reader survives with the ring set: time, CPU, event id or payload of a record,
  // counts of discarded events, tail. Attacks thus reach the code behind the reader, too.
  void MutateGently(ring::testing::TestWriter& ring);
  // Writes some valid records, so that the reader comes to what was mutated.
  void Write(ring::testing::TestWriter& ring, int count);

  // Changes any field of the header: magic, sizes, offsets, counts, shifts, mode, clock, ids. The
  // second function restores the header, except for what Describe wrote since.
  void MutateHeader(ring::testing::TestWriter& ring);
  static void RestoreHeader(ring::testing::TestWriter& ring);

  // Returns a descriptor of an impostor of channel `channel`. It is invalid if the machine cannot
  // make it.
  UniqueFd MakeImpostor(Impostor kind, uint64_t channel);

 private:
  uint64_t Nasty();
  void MutateSlot(ring::testing::TestWriter& ring);
  void MutateData(ring::testing::TestWriter& ring);
  void MutateDescriptions(ring::testing::TestWriter& ring);

  std::mt19937_64 random_;
};

}  // namespace weft::hostile

#endif  // WEFT_TESTS_HOSTILE_ATTACKER_H_
