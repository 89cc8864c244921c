// SPDX-License-Identifier: Apache-2.0
// Bounded reading of foreign bytes. Every accessor checks the remaining length and fails sticky:
// after the first failure ok() is false and all values are zero, so a parser may read a whole
// struct and ask once. Little-endian (all weft formats are). Thread-safety: plain values; the bytes
// must not change while read (copy shared memory first).
#ifndef WEFT_LIB_BASE_BYTES_H_
#define WEFT_LIB_BASE_BYTES_H_

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <string_view>
#include <type_traits>

namespace weft {

using Bytes = std::span<const uint8_t>;

class ByteReader {
 public:
  explicit ByteReader(Bytes bytes) : bytes_(bytes) {}

  [[nodiscard]] bool ok() const { return ok_; }
  [[nodiscard]] size_t offset() const { return offset_; }
  [[nodiscard]] size_t remaining() const { return bytes_.size() - offset_; }

  template <typename T>
  T Read() {
    static_assert(std::is_trivially_copyable_v<T>);
    T value{};
    if (!Need(sizeof(T))) return T{};
    std::memcpy(&value, bytes_.data() + offset_, sizeof(T));
    offset_ += sizeof(T);
    return value;
  }

  Bytes ReadBytes(size_t n) {
    if (!Need(n)) return {};
    Bytes out = bytes_.subspan(offset_, n);
    offset_ += n;
    return out;
  }

  std::string_view ReadString(size_t n) {
    Bytes b = ReadBytes(n);
    return {reinterpret_cast<const char*>(b.data()), b.size()};
  }

  // Reads up to and over a NUL; fails when there is none.
  std::string_view ReadCString() {
    const void* nul =
        remaining() == 0 ? nullptr : std::memchr(bytes_.data() + offset_, 0, remaining());
    if (!ok_ || nul == nullptr) {
      ok_ = false;
      return {};
    }
    const size_t n =
        static_cast<size_t>(static_cast<const uint8_t*>(nul) - (bytes_.data() + offset_));
    std::string_view out = ReadString(n);
    offset_ += 1;
    return out;
  }

  void Skip(size_t n) { (void)ReadBytes(n); }

 private:
  bool Need(size_t n) {
    if (!ok_ || n > remaining()) {
      ok_ = false;
      return false;
    }
    return true;
  }

  Bytes bytes_;
  size_t offset_ = 0;
  bool ok_ = true;
};

}  // namespace weft

#endif  // WEFT_LIB_BASE_BYTES_H_
