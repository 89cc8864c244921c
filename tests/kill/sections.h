// SPDX-License-Identifier: Apache-2.0
// Where the writer's restartable sequences are in libweft.so: from its table of rseq descriptors (ELF
// section weft_rseq_cs) and a disassembler.
#ifndef WEFT_TESTS_KILL_SECTIONS_H_
#define WEFT_TESTS_KILL_SECTIONS_H_

#include <sys/types.h>

#include <cstdint>
#include <string>
#include <vector>

namespace weft::kill_test {

// Offsets from the load base of every instruction of every section, the first one behind the commit
// included. Empty: no such table.
std::vector<uint64_t> SectionInstructions(const std::string& library);

// Where libweft.so is in a process; 0: nowhere.
uint64_t LibraryBase(pid_t pid);

}  // namespace weft::kill_test

#endif  // WEFT_TESTS_KILL_SECTIONS_H_
