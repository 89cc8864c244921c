// SPDX-License-Identifier: Apache-2.0
// For tests: runs a fetch program over this process's own memory, as lib/abi/fetch.h specifies,
// slowly and without faults except WITHIN's. Addresses are this process's; every task is in the
// scope.
#ifndef WEFT_NODE_AGENT_KERNEL_FETCH_REFERENCE_H_
#define WEFT_NODE_AGENT_KERNEL_FETCH_REFERENCE_H_

#include <sys/socket.h>

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <string>
#include <vector>

#include "node-agent/kernel/fetch_step.h"

namespace weft::kernel::testing {

// Run returns, for each field, the bytes of its value (STRING: the text; SEQUENCE: the elements).
class FetchReference {
 public:
  static std::vector<std::string> Run(const std::vector<FetchStep>& ops,
                                      const std::vector<uint64_t>& arguments) {
    FetchReference run(arguments);
    for (const FetchStep& op : ops) run.Take(op);
    return run.fields_;
  }

 private:
  explicit FetchReference(const std::vector<uint64_t>& arguments) : arguments_(arguments) {}

  static uint64_t Cut(uint64_t value, uint32_t bits, bool is_signed) {
    if (bits == 64) return value;
    value &= (1ull << bits) - 1;
    if (is_signed && (value >> (bits - 1)) != 0) value |= ~0ull << bits;
    return value;
  }

  [[nodiscard]] const char* At(int32_t offset) const {
    return reinterpret_cast<const char*>(a_ + static_cast<uint64_t>(int64_t{offset}));
  }

  void Take(const FetchStep& op) {
    const bool is_signed = (op.flags & kFetchSigned) != 0;
    switch (op.code) {
      case FetchCode::kArgument:
        fault_ = false;
        a_ = Cut(arguments_.at(op.arg), op.size * 8u, is_signed);
        break;
      case FetchCode::kLoad: {
        uint64_t value = 0;
        if (!fault_) std::memcpy(&value, At(op.offset), op.size);
        a_ = Cut(value, op.size * 8u, is_signed);
        break;
      }
      case FetchCode::kAdd:
        a_ += static_cast<uint64_t>(int64_t{op.offset});
        break;
      case FetchCode::kBits:
        a_ = Cut(a_ >> op.offset, op.size, is_signed);
        break;
      case FetchCode::kCount:
        n_ = static_cast<int64_t>(a_) < 0 ? 0 : std::min<uint64_t>(a_, UINT32_MAX);
        break;
      case FetchCode::kWithin:
        if (n_ >= static_cast<uint64_t>(op.offset)) break;
        fault_ = true;
        a_ = 0;
        break;
      case FetchCode::kStore:
        if ((op.flags & kFetchUser) != 0 && a_ >> 47 != 0) a_ = 0;
        fields_.emplace_back(reinterpret_cast<const char*>(&a_), op.size);
        break;
      case FetchCode::kBytes:
        fields_.push_back(fault_ ? std::string(op.size, '\0')
                                 : std::string(At(op.offset), op.size));
        break;
      case FetchCode::kString:
        fields_.emplace_back(At(op.offset), strnlen(At(op.offset), op.limit));
        break;
      case FetchCode::kSequence:
        if (op.arg != 0)
          Each(op);
        else
          fields_.emplace_back(At(op.offset), std::min<uint64_t>(n_ * op.size, op.limit));
        break;
      case FetchCode::kGather:
        Gather(op);
        break;
      case FetchCode::kUnixPath:
        UnixPath(op);
        break;
      default:
        break;
    }
  }

  void UnixPath(const FetchStep& op) {
    std::string& made = fields_.emplace_back();
    uint16_t family = 0;
    const auto begin = static_cast<uint64_t>(op.offset);
    if (n_ <= begin || n_ < sizeof(family)) return;
    std::memcpy(&family, At(0), sizeof(family));
    if (family != AF_UNIX) return;
    made.assign(At(op.offset), std::min<uint64_t>(n_ - begin, op.limit));
    if (made.front() == '\0')
      std::ranges::replace(made, '\0', '@');
    else
      made.resize(strnlen(made.data(), made.size()));
  }

  void Each(const FetchStep& op) {
    std::string& made = fields_.emplace_back();
    for (uint64_t i = 0; i < n_ && made.size() < op.limit; ++i)
      made.append(At(op.offset) + i * op.arg, op.size);
  }

  void Gather(const FetchStep& op) {
    std::string& made = fields_.emplace_back();
    const int64_t total =
        op.arg == WEFT_FETCH_NO_ARG ? INT64_MAX : static_cast<int64_t>(arguments_.at(op.arg));
    uint64_t left =
        std::min<uint64_t>(static_cast<uint64_t>(std::max<int64_t>(total, 0)), op.limit);
    for (uint64_t i = 0; i < std::min<uint64_t>(n_, WEFT_FETCH_MAX_PARTS); ++i) {
      uint64_t address = 0, length = 0;
      std::memcpy(&address, At(op.offset) + 2 * i * op.size, op.size);
      std::memcpy(&length, At(op.offset) + (2 * i + 1) * op.size, op.size);
      length = std::min(length, left);
      made.append(reinterpret_cast<const char*>(address), length);
      left -= length;
    }
  }

  const std::vector<uint64_t>& arguments_;
  uint64_t a_ = 0;
  uint64_t n_ = 0;
  bool fault_ = false;
  std::vector<std::string> fields_;
};

}  // namespace weft::kernel::testing

#endif  // WEFT_NODE_AGENT_KERNEL_FETCH_REFERENCE_H_
