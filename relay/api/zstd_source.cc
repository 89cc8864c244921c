// SPDX-License-Identifier: Apache-2.0
// See zstd_source.h.
#include "relay/api/zstd_source.h"

#include <algorithm>
#include <string>
#include <utility>

namespace weft::relay_api {
namespace {

// Events differ little: this makes them several times smaller, and needs the least time and
// memory (about 1 MiB; limits.h counts on that).
constexpr int kLevel = 1;
constexpr size_t kReadBytes = size_t{64} << 10;

}  // namespace

ZstdSource::ZstdSource(std::shared_ptr<http::BodySource> plain, std::shared_ptr<void> place)
    : place_(std::move(place)),
      plain_(std::move(plain)),
      context_(ZSTD_createCCtx()),
      buffer_(kReadBytes),
      left_(plain_->bytes().value_or(0)) {
  (void)ZSTD_CCtx_setParameter(context_.get(), ZSTD_c_compressionLevel, kLevel);
  (void)ZSTD_CCtx_setParameter(context_.get(), ZSTD_c_checksumFlag, 1);
}

Status ZstdSource::Fill() {
  const size_t most = std::min<uint64_t>(left_, buffer_.size());
  WEFT_ASSIGN(const size_t got, plain_->Read(std::span(buffer_).first(most)));
  if (got == 0 || got > most) return Fail(ErrorCode::kCorrupt, "a body ended early");
  left_ -= got;
  in_ = {.src = buffer_.data(), .size = got, .pos = 0};
  return {};
}

Result<size_t> ZstdSource::Read(std::span<char> block) {
  ZSTD_outBuffer out{.dst = block.data(), .size = block.size(), .pos = 0};
  while (out.pos == 0 && !has_ended_) {
    if (in_.pos == in_.size && left_ > 0) WEFT_TRY(Fill());
    const bool is_last = left_ == 0;
    const size_t rest =
        ZSTD_compressStream2(context_.get(), &out, &in_, is_last ? ZSTD_e_end : ZSTD_e_continue);
    if (ZSTD_isError(rest) != 0) {
      return Fail(ErrorCode::kLimit, std::string("zstd: ") + ZSTD_getErrorName(rest));
    }
    has_ended_ = is_last && rest == 0;
  }
  return out.pos;
}

}  // namespace weft::relay_api
