// SPDX-License-Identifier: Apache-2.0
// See unpack_symbols.h. The .xz file format 1.1.0.
#include "node-agent/hooks/unpack_symbols.h"

#include <lzma.h>
#include <unistd.h>

#include <memory>

#include "lib/elf/elf_image.h"
#include "node-agent/hooks/limits.h"

namespace weft::hooks {
namespace {

constexpr size_t kPiece = size_t{64} << 10;

Status Unpack(Bytes packed, int to) {
  lzma_stream stream = LZMA_STREAM_INIT;
  const std::unique_ptr<lzma_stream, void (*)(lzma_stream*)> end(&stream, lzma_end);
  if (lzma_stream_decoder(&stream, kMaxUnpackedBytes, 0) != LZMA_OK)
    return Fail(ErrorCode::kLimit, "there is no memory for its symbols");
  stream.next_in = packed.data();
  stream.avail_in = packed.size();
  const auto piece = std::make_unique<uint8_t[]>(kPiece);
  for (lzma_ret result = LZMA_OK; result == LZMA_OK;) {
    stream.next_out = piece.get();
    stream.avail_out = kPiece;
    result = lzma_code(&stream, LZMA_FINISH);
    if (result == LZMA_MEMLIMIT_ERROR || stream.total_out > kMaxUnpackedBytes)
      return Fail(ErrorCode::kLimit, "its packed symbols are too large");
    if (result != LZMA_OK && result != LZMA_STREAM_END)
      return Fail(ErrorCode::kInvalid, "its packed symbols are damaged");
    const size_t bytes = kPiece - stream.avail_out;
    if (write(to, piece.get(), bytes) != static_cast<ssize_t>(bytes)) return FailErrno("symbols");
  }
  return {};
}

}  // namespace

Status UnpackSymbols(int file, int to) {
  WEFT_ASSIGN(const ElfImage image, ElfImage::Read(file));
  Status status = Fail(ErrorCode::kNotFound, "it has no packed symbols");
  image.EachSection([&](const ElfSection& section) {
    if (section.name != kPackedSymbols) return true;
    const auto bytes = section.header.sh_size <= kMaxUnpackedBytes ? section.bytes() : std::nullopt;
    status =
        bytes ? Unpack(*bytes, to) : Fail(ErrorCode::kInvalid, "its packed symbols are damaged");
    return false;
  });
  return status;
}

}  // namespace weft::hooks
