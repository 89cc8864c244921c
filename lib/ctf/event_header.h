// SPDX-License-Identifier: Apache-2.0
// A short way to read the headers of events. A header is a class and a time, often in a variant
// that its first bits select. Where all of it lies within 64 little-endian bits, a table of forms,
// one for each value of these first bits, says where class and time are; Decoder reads all other
// headers. Called by StreamReader. Thread-safety: immutable once made.
#ifndef WEFT_LIB_CTF_EVENT_HEADER_H_
#define WEFT_LIB_CTF_EVENT_HEADER_H_

#include <cstdint>
#include <optional>
#include <vector>

#include "lib/ctf/type.h"

namespace weft::ctf {

class EventHeader {
 public:
  // Bits of the header, counted from its begin.
  struct Field {
    uint32_t at = 0;
    uint32_t bits = 0;  // 0: there is no such field

    [[nodiscard]] uint64_t In(uint64_t word) const {
      return word << (64 - at - bits) >> (64 - bits);
    }
  };
  struct Form {
    uint32_t bits = 0;  // the whole header; 0: Decoder has to read it
    Field event_class;
    Field time;
  };

  // `type` is resolved (ResolveReferences).
  explicit EventHeader(const std::optional<Type>& type);

  // Returns the form of a header whose first 64 bits are `word`; nullptr: Decoder has to read it.
  [[nodiscard]] const Form* Find(uint64_t word) const {
    if (forms_.empty()) return nullptr;
    const Form& form = forms_[word & (forms_.size() - 1)];
    return form.bits == 0 ? nullptr : &form;
  }
  // Returns where the header begins, in bits, if what precedes it ends at bit `at`.
  [[nodiscard]] uint64_t Aligned(uint64_t at) const {
    return (at + align_ - 1) & ~uint64_t{align_ - 1};
  }
  // The integer that selects a form; none (0 bits) if there is one form.
  [[nodiscard]] const Field& tag() const { return tag_; }
  // Where a decoder keeps the tag's value.
  [[nodiscard]] uint32_t tag_saved() const { return tag_saved_; }

 private:
  [[nodiscard]] bool Add(const Type& type, uint64_t tag, Form& form) const;
  [[nodiscard]] bool AddInteger(const Type& type, Form& form) const;

  uint32_t align_ = 8;
  Field tag_;
  uint32_t tag_saved_ = kNotSaved;
  std::vector<Form> forms_;  // one for each value of the tag
};

}  // namespace weft::ctf

#endif  // WEFT_LIB_CTF_EVENT_HEADER_H_
