// SPDX-License-Identifier: Apache-2.0
// Finds the writers in libweft.so: its restartable sequences, by its table of rseq descriptors
// (ELF section weft_rseq_cs), and its functions, by its symbol table. A disassembler gives their
// instructions, and the debug information the lines of these.
#ifndef WEFT_TESTS_KILL_SECTIONS_H_
#define WEFT_TESTS_KILL_SECTIONS_H_

#include <sys/types.h>

#include <cstdint>
#include <string>
#include <vector>

namespace weft::kill_test {

// Returns the offsets from the load base of every instruction of every section, including the first
// one behind the commit, but for those in the code of these source files. Empty: there is no such
// table, or no section in the code of one of the files.
std::vector<uint64_t> SectionInstructions(const std::string& library,
                                          const std::vector<std::string>& without_files);

// Returns these offsets for the functions of these names, including the compiler's parts of them
// ("name.part.0"): all instructions that are reachable from their beginnings without executing a
// source line that contains one of the texts `without`. Empty: a function or a text does not exist,
// or a jump's target is unknown.
std::vector<uint64_t> FunctionInstructions(const std::string& library,
                                           const std::vector<std::string>& names,
                                           const std::vector<std::string>& without);

// Returns the address of libweft.so in a process; 0: it is not loaded.
uint64_t LibraryBase(pid_t pid);

}  // namespace weft::kill_test

#endif  // WEFT_TESTS_KILL_SECTIONS_H_
