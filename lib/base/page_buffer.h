// SPDX-License-Identifier: Apache-2.0
// Memory in whole, uninitialized pages, as direct writes to files require. Thread-safety: none.
#ifndef WEFT_LIB_BASE_PAGE_BUFFER_H_
#define WEFT_LIB_BASE_PAGE_BUFFER_H_

#include <sys/mman.h>

#include <cstddef>
#include <cstdint>
#include <new>
#include <span>
#include <utility>

namespace weft {

class PageBuffer {
 public:
  static constexpr size_t kPageBytes = 4096;

  PageBuffer() = default;
  // Maps at least `bytes` of memory, which goes back to the kernel as soon as it is not used.
  // Throws std::bad_alloc, as every allocation does.
  explicit PageBuffer(size_t bytes) : size_((bytes + kPageBytes - 1) / kPageBytes * kPageBytes) {
    void* const memory =
        ::mmap(nullptr, size_, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (memory == MAP_FAILED) throw std::bad_alloc();
    data_ = static_cast<uint8_t*>(memory);
  }
  PageBuffer(PageBuffer&& other) noexcept
      : size_(std::exchange(other.size_, 0)), data_(std::exchange(other.data_, nullptr)) {}
  PageBuffer& operator=(PageBuffer&& other) noexcept {
    std::swap(size_, other.size_);
    std::swap(data_, other.data_);
    return *this;
  }
  ~PageBuffer() {
    if (data_ != nullptr) ::munmap(data_, size_);
  }

  [[nodiscard]] std::span<uint8_t> span() const { return {data_, size_}; }
  [[nodiscard]] bool empty() const { return data_ == nullptr; }

 private:
  size_t size_ = 0;
  uint8_t* data_ = nullptr;
};

}  // namespace weft

#endif  // WEFT_LIB_BASE_PAGE_BUFFER_H_
