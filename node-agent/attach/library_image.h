// SPDX-License-Identifier: Apache-2.0
// libweft.so as a file, and what its memory holds when it is loaded at some address: what ld.so
// does for other programs. Nothing here touches a process. Thread-safety: plain values.
#ifndef WEFT_NODE_AGENT_ATTACH_LIBRARY_IMAGE_H_
#define WEFT_NODE_AGENT_ATTACH_LIBRARY_IMAGE_H_

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "lib/base/bytes.h"
#include "lib/base/result.h"

namespace weft::attach {

// A segment, in whole pages but for the lengths.
struct LibrarySegment {
  uint64_t address = 0;  // from the library's begin
  uint64_t offset = 0;   // in the file
  uint64_t file_bytes = 0;
  uint64_t memory_bytes = 0;  // the rest is zero
  int protection = 0;         // as for mmap
};

// A word that is written into the loaded library.
struct RelocatedWord {
  uint64_t address = 0;  // in the process
  uint64_t value = 0;
  bool operator==(const RelocatedWord&) const = default;
};

class LibraryImage {
 public:
  // kInvalid, kUnsupported, kCorrupt: it is no library that can be loaded this way.
  static Result<LibraryImage> Parse(std::vector<uint8_t> file);

  [[nodiscard]] Bytes file() const { return file_; }
  [[nodiscard]] const std::vector<LibrarySegment>& segments() const { return segments_; }
  // Bytes of memory, in whole pages.
  [[nodiscard]] uint64_t span() const { return span_; }

  // Returns the words that a library at `base` needs. `given`: addresses of symbols that it takes
  // from others. One that it needs and that is not given is 0 if it is weak, else kUnsupported.
  [[nodiscard]] Result<std::vector<RelocatedWord>> Relocate(
      uint64_t base, const std::map<std::string, uint64_t>& given) const;
  // Returns the functions that run when it is loaded, in this order, out of the result of Relocate.
  [[nodiscard]] std::vector<uint64_t> Constructors(uint64_t base,
                                                   const std::vector<RelocatedWord>& words) const;
  // Returns where one of its own symbols lies, from its begin.
  [[nodiscard]] Result<uint64_t> SymbolOffset(const std::string& name) const;

 private:
  struct Symbol {
    std::string name;
    uint64_t value = 0;
    bool is_own = false;
    bool is_weak = false;
  };

  Status ReadSegments();
  Status ReadDynamic();
  [[nodiscard]] Result<Bytes> At(uint64_t address, uint64_t bytes) const;
  [[nodiscard]] Result<Symbol> SymbolAt(uint64_t number) const;
  Status Relocate(uint64_t table, uint64_t bytes, uint64_t base,
                  const std::map<std::string, uint64_t>& given,
                  std::vector<RelocatedWord>& words) const;

  std::vector<uint8_t> file_;
  std::vector<LibrarySegment> segments_;
  uint64_t span_ = 0;
  std::map<int64_t, uint64_t> dynamic_;  // by tag
};

}  // namespace weft::attach

#endif  // WEFT_NODE_AGENT_ATTACH_LIBRARY_IMAGE_H_
