// SPDX-License-Identifier: Apache-2.0
// See ring_mover.h.
#include "node-agent/consumer/ring_mover.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <string>

#include "lib/base/kill_point.h"
#include "node-agent/consumer/limits.h"
#include "node-agent/consumer/ring_input.h"
#include "node-agent/consumer/write_at.h"

namespace weft::consumer {
namespace {

constexpr uint64_t kPage = uint64_t{1} << WEFT_RING_PAGE_SHIFT;

uint64_t PageBelow(uint64_t at) { return at & -kPage; }
uint64_t PageAbove(uint64_t at) { return (at + kPage - 1) & -kPage; }

Status Free(int fd, uint64_t begin, uint64_t end) {
  if (begin >= end) return {};
  const int done = ::fallocate(fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE,
                               static_cast<off_t>(begin), static_cast<off_t>(end - begin));
  return done == 0 ? Status{} : FailErrno("ring: fallocate");
}

ChunkName NameOf(const ring::RingSet& set, uint64_t offset) {
  return {.device = set.key().device, .inode = set.key().inode, .offset = offset};
}

void KeepSlot(const RingInput& input, const Cursor& cursor, bool records,
              std::vector<FileRange>& keep) {
  const ring::Geometry& g = input.set().geometry();
  const uint64_t base = g.data_offset + cursor.reader.slot() * g.slot_bytes();
  const uint64_t last = cursor.reader.end() >> g.subbuf_shift;
  uint64_t first = cursor.acknowledged >> g.subbuf_shift;
  // A writer overtakes the reader of such a ring: what is where is known only by its headers.
  if (records && g.overwrite()) return keep.push_back({base, base + g.slot_bytes()});
  if (!records) first = last;
  if (last - first >= g.subbufs()) first = last + 1 - g.subbufs();
  for (uint64_t sequence = first; sequence <= last; ++sequence) {
    const uint64_t begin = base + (sequence % g.subbufs() << g.subbuf_shift);
    const uint64_t bytes = sequence < last ? g.subbuf_bytes()
                           : records       ? cursor.reader.end() & (g.subbuf_bytes() - 1)
                                           : sizeof(weft_subbuf_header);
    // The page behind may be another's: all rings begin at a page, and sub-buffers are whole ones.
    keep.push_back({PageBelow(begin), PageAbove(begin + std::max<uint64_t>(bytes, 1))});
  }
}

}  // namespace

std::vector<FileRange> RangesToKeep(const RingInput& input, bool records) {
  const ring::RingSet& set = input.set();
  const ring::Geometry& g = set.geometry();
  const uint64_t used = std::min(set.LoadDescriptionsUsed(), g.descriptions_size);
  std::vector<FileRange> keep{{0, PageAbove(g.descriptions_offset + used)}};
  for (const auto& cursor : input.cursors())
    if (cursor != nullptr) KeepSlot(input, *cursor, records, keep);
  std::ranges::sort(keep, {}, &FileRange::begin);
  std::vector<FileRange> joined;
  for (const FileRange& range : keep) {
    const FileRange part{range.begin, std::min(range.end, g.total_size)};
    if (!joined.empty() && part.begin <= joined.back().end)
      joined.back().end = std::max(joined.back().end, part.end);
    else
      joined.push_back(part);
  }
  return joined;
}

uint64_t BytesIn(const std::vector<FileRange>& ranges) {
  uint64_t sum = 0;
  for (const FileRange& range : ranges) sum += range.end - range.begin;
  return sum;
}

Status RingMover::Complete(int fd) {
  const auto chunk = journal_->ReadChunk();
  struct stat st{};
  if (!chunk || ::fstat(fd, &st) != 0 || st.st_dev != chunk->name.device ||
      st.st_ino != chunk->name.inode)
    return {};
  WEFT_TRY(WriteAt("ring", fd, chunk->name.offset, chunk->bytes));
  return journal_->ClearChunk();
}

Status RingMover::Move(const ring::RingSet& set, const std::vector<FileRange>& keep) {
  uint64_t at = 0;
  std::vector<uint8_t> bytes;
  for (const FileRange& range : keep) {
    WEFT_TRY(Free(set.fd(), at, range.begin));
    for (at = range.begin; at < range.end; at += bytes.size()) {
      bytes.resize(std::min<uint64_t>(range.end - at, kMoveChunkBytes));
      WEFT_TRY(set.ReadAt(at, bytes));
      WEFT_TRY(journal_->SaveChunk(NameOf(set, at), bytes));
      KillPoint("chunk_saved");
      WEFT_TRY(Free(set.fd(), at, at + bytes.size()));
      KillPoint("chunk_freed");
      WEFT_TRY(WriteAt("ring", set.fd(), at, bytes));
      KillPoint("chunk_moved");
      WEFT_TRY(journal_->ClearChunk());
    }
  }
  return Free(set.fd(), at, PageAbove(set.geometry().total_size));
}

}  // namespace weft::consumer
