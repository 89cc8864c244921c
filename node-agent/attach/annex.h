// SPDX-License-Identifier: Apache-2.0
// Constants that libweft.so gets behind its own memory when it is loaded into a running process:
// what ld.so and libc would give it at a start. It stays as long as the library does, and is
// mapped from the library's file, readable and executable.
//
// It holds the trampoline, a function getauxval over the process's auxiliary vector, the place of
// restartable sequences, and environment variables where the library looks for those of the
// start. Nothing here touches a process. Thread-safety: plain values.
#ifndef WEFT_NODE_AGENT_ATTACH_ANNEX_H_
#define WEFT_NODE_AGENT_ATTACH_ANNEX_H_

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "lib/base/bytes.h"
#include "node-agent/attach/hijacked_thread.h"

namespace weft::attach {

struct AnnexContent {
  std::string folder;              // WEFT_DIR
  std::string container;           // WEFT_CONTAINER
  std::vector<uint8_t> auxiliary;  // /proc/PID/auxv
  std::optional<int64_t> rseq_offset;
  bool is_go = false;
};

struct Annex {
  std::vector<uint8_t> bytes;  // whole pages
  Trampoline trampoline;
  std::map<std::string, uint64_t> symbols;  // for LibraryImage::Relocate
};

// Makes the annex that lies at `address`.
Annex MakeAnnex(uint64_t address, const AnnexContent& content);

}  // namespace weft::attach

#endif  // WEFT_NODE_AGENT_ATTACH_ANNEX_H_
