// SPDX-License-Identifier: Apache-2.0
// Memory in whole pages, not initialized: what direct writes to files ask for. Thread-safety: none.
#ifndef WEFT_LIB_BASE_PAGE_BUFFER_H_
#define WEFT_LIB_BASE_PAGE_BUFFER_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <new>
#include <span>

namespace weft {

class PageBuffer {
 public:
  static constexpr size_t kPageBytes = 4096;

  PageBuffer() = default;
  // At least `bytes`. Throws std::bad_alloc, as all memory does.
  explicit PageBuffer(size_t bytes)
      : size_((bytes + kPageBytes - 1) / kPageBytes * kPageBytes),
        data_(static_cast<uint8_t*>(::operator new(size_, kAlignment))) {}

  [[nodiscard]] std::span<uint8_t> span() const { return {data_.get(), size_}; }

 private:
  static constexpr std::align_val_t kAlignment{kPageBytes};
  struct Free {
    void operator()(uint8_t* data) const { ::operator delete(data, kAlignment); }
  };

  size_t size_ = 0;
  std::unique_ptr<uint8_t, Free> data_;
};

}  // namespace weft

#endif  // WEFT_LIB_BASE_PAGE_BUFFER_H_
