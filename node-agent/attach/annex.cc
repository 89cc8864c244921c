// SPDX-License-Identifier: Apache-2.0
// See annex.h. x86-64.
#include "node-agent/attach/annex.h"

#include <algorithm>
#include <iterator>

#include "lib/abi/hooks.h"
#include "node-agent/attach/limits.h"

namespace weft::attach {
namespace {

// rdi: the type. Goes through the vector, whose address is the word behind this code:
//   mov vector(%rip), %rax
// 1: mov (%rax), %rdx; test %rdx, %rdx; je 2f; cmp %rdi, %rdx; je 3f; add $16, %rax; jmp 1b
// 2: xor %eax, %eax; ret
// 3: mov 8(%rax), %rax; ret
constexpr uint8_t kGetAuxiliary[] = {0x48, 0x8b, 0x05, 33,   0,    0,    0,           // mov
                                     0x48, 0x8b, 0x10, 0x48, 0x85, 0xd2, 0x74, 0x0b,  // 1:
                                     0x48, 0x39, 0xfa, 0x74, 0x09, 0x48, 0x83, 0xc0,
                                     0x10, 0xeb, 0xed,              //
                                     0x31, 0xc0, 0xc3,              // 2:
                                     0x48, 0x8b, 0x40, 0x08, 0xc3,  // 3:
                                     0x90, 0x90, 0x90, 0x90, 0x90, 0x90};
static_assert(sizeof(kGetAuxiliary) == 40, "the word behind it is at the distance of the mov");

constexpr uint32_t kRseqBytes = 32;

class Writer {
 public:
  explicit Writer(uint64_t address) : address_(address) {}

  uint64_t Put(Bytes bytes) {
    bytes_.resize((bytes_.size() + 15) & ~size_t{15});
    const uint64_t at = address_ + bytes_.size();
    bytes_.insert(bytes_.end(), bytes.begin(), bytes.end());
    return at;
  }
  uint64_t Put(const std::vector<uint64_t>& words) {
    return Put(Bytes(reinterpret_cast<const uint8_t*>(words.data()), words.size() * 8));
  }
  uint64_t Put(const std::string& text) {
    return Put(Bytes(reinterpret_cast<const uint8_t*>(text.c_str()), text.size() + 1));
  }
  std::vector<uint8_t> TakePages() {
    bytes_.resize((bytes_.size() + kPageBytes - 1) & ~size_t{kPageBytes - 1});
    return std::move(bytes_);
  }

 private:
  uint64_t address_;
  std::vector<uint8_t> bytes_;
};

}  // namespace

Annex MakeAnnex(uint64_t address, const AnnexContent& content) {
  Annex annex;
  Writer out(address);
  annex.trampoline = TrampolineAt(out.Put(Bytes(TrampolineCode())));

  std::vector<uint8_t> vector = content.auxiliary;
  vector.resize(std::min(vector.size(), kMaxAuxiliaryBytes) & ~size_t{15});
  vector.insert(vector.end(), 16, 0);  // AT_NULL, if it is not there
  const uint64_t vector_at = out.Put(Bytes(vector));
  std::vector<uint8_t> code(std::begin(kGetAuxiliary), std::end(kGetAuxiliary));
  const auto* word = reinterpret_cast<const uint8_t*>(&vector_at);
  code.insert(code.end(), word, word + sizeof(vector_at));
  annex.symbols["getauxval"] = out.Put(Bytes(code));

  const uint64_t folder = out.Put("WEFT_DIR=" + content.folder);
  const uint64_t container = out.Put("WEFT_CONTAINER=" + content.container);
  const uint64_t attached = out.Put(std::string(WEFT_HOOKS_ATTACHED "=1"));
  const uint64_t of_go = content.is_go ? out.Put(std::string(WEFT_HOOKS_OF_GO "=1")) : 0;
  // argc, the end of argv, environment, its end.
  const uint64_t start =
      out.Put(std::vector<uint64_t>{0, 0, folder, container, attached, of_go, 0});
  annex.symbols["__libc_stack_end"] = out.Put(std::vector<uint64_t>{start});

  if (content.rseq_offset) {
    annex.symbols["__rseq_offset"] =
        out.Put(std::vector<uint64_t>{static_cast<uint64_t>(*content.rseq_offset)});
    annex.symbols["__rseq_size"] = out.Put(std::vector<uint64_t>{kRseqBytes});
  }
  annex.bytes = out.TakePages();
  return annex;
}

}  // namespace weft::attach
