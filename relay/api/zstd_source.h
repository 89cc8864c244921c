// SPDX-License-Identifier: Apache-2.0
// A streamed body, compressed by zstd (RFC 8878) in one frame. One thread at a time calls it.
#ifndef WEFT_RELAY_API_ZSTD_SOURCE_H_
#define WEFT_RELAY_API_ZSTD_SOURCE_H_

#include <zstd.h>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "lib/http/server.h"

namespace weft::relay_api {

class ZstdSource : public http::BodySource {
 public:
  // `plain` has a length. `place` is held as long as this lives.
  ZstdSource(std::shared_ptr<http::BodySource> plain, std::shared_ptr<void> place);

  [[nodiscard]] std::optional<uint64_t> bytes() const override { return std::nullopt; }
  // Errors are those of `plain`. kCorrupt: it ended early. kLimit: there is no memory.
  Result<size_t> Read(std::span<char> block) override;

 private:
  struct Free {
    void operator()(ZSTD_CCtx* context) const { ZSTD_freeCCtx(context); }
  };

  Status Fill();

  const std::shared_ptr<void> place_;
  const std::shared_ptr<http::BodySource> plain_;
  const std::unique_ptr<ZSTD_CCtx, Free> context_;
  std::vector<char> buffer_;
  ZSTD_inBuffer in_{};  // of buffer_
  uint64_t left_;       // of plain_
  bool has_ended_ = false;
};

}  // namespace weft::relay_api

#endif  // WEFT_RELAY_API_ZSTD_SOURCE_H_
