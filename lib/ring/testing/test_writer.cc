// SPDX-License-Identifier: Apache-2.0
// See test_writer.h.
#include "lib/ring/testing/test_writer.h"

#include <fcntl.h>
#include <sys/mman.h>

#include <cstdlib>
#include <cstring>

namespace weft::ring::testing {
namespace {

uint64_t RoundUp(uint64_t n, uint64_t to) { return (n + to - 1) / to * to; }

// seq_cst everywhere: this writer is for correctness, not speed.
void StoreWord(void* at, uint64_t value) {
  __atomic_store_n(static_cast<uint64_t*>(at), value, __ATOMIC_SEQ_CST);
}
// seq_cst: the same
uint64_t LoadWord(void* at) {
  // seq_cst: one thread of a test; the strongest is the simplest
  return __atomic_load_n(static_cast<uint64_t*>(at), __ATOMIC_SEQ_CST);
}

}  // namespace

TestWriter::TestWriter(const WriterOptions& options)
    : options_(options), committed_(options.slots), discarded_(options.slots) {
  weft_ring_header& h = made_;
  h.magic = WEFT_RING_MAGIC;
  h.major = WEFT_RING_MAJOR;
  h.minor = WEFT_RING_MINOR;
  h.header_size = sizeof(h);
  h.slots_offset = RoundUp(sizeof(h), 64);
  h.descriptions_offset = h.slots_offset + uint64_t{options.slots} * sizeof(weft_slot);
  h.descriptions_size = options.descriptions_size;
  h.data_offset = RoundUp(h.descriptions_offset + h.descriptions_size, 4096);
  h.slot_count = options.slots;
  h.slot_size = sizeof(weft_slot);
  h.subbuf_shift = options.subbuf_shift;
  h.slot_shift = options.subbuf_shift + options.subbufs_shift;
  h.total_size = h.data_offset + (uint64_t{options.slots} << h.slot_shift);
  h.mode = options.mode;
  h.clock = options.clock;
  h.channel_id = options.channel_id;
  h.instance = options.instance;
  h.pid = 1;
  bytes_ = h.total_size;
  fd_.reset(memfd_create(WEFT_RING_MEMFD_NAME, MFD_ALLOW_SEALING | MFD_CLOEXEC));
  if (!fd_ || ::ftruncate(fd_.get(), static_cast<off_t>(bytes_)) != 0) std::abort();
  const int seals = options.seals >= 0 ? options.seals : F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL;
  if (seals != 0 && ::fcntl(fd_.get(), F_ADD_SEALS, seals) != 0) std::abort();
  void* map = ::mmap(nullptr, bytes_, PROT_READ | PROT_WRITE, MAP_SHARED, fd_.get(), 0);
  if (map == MAP_FAILED) std::abort();
  map_ = static_cast<uint8_t*>(map);
  std::memcpy(map_, &h, sizeof(h));
  for (uint32_t i = 0; i < options.slots; i++) StoreWord(&slot(i)->head, WEFT_HEAD_INITIAL);
}

TestWriter::~TestWriter() { ::munmap(map_, bytes_); }

UniqueFd TestWriter::Fd() const { return UniqueFd(::fcntl(fd_.get(), F_DUPFD_CLOEXEC, 0)); }

weft_slot* TestWriter::slot(uint32_t index) {
  return reinterpret_cast<weft_slot*>(map_ + made_.slots_offset) + index;
}

uint8_t* TestWriter::ring(uint32_t index) {
  const uint32_t shift = options_.subbuf_shift + options_.subbufs_shift;
  return map_ + bytes_ - (uint64_t{options_.slots - index} << shift);
}

void TestWriter::Describe(uint16_t event, std::span<const uint8_t> description, bool commit) {
  const uint64_t used = LoadWord(&header()->descriptions_used);
  weft_description_entry entry{};
  entry.size = static_cast<uint32_t>(sizeof(entry) + description.size());
  entry.event = event;
  if (used + RoundUp(entry.size, 8) > options_.descriptions_size) std::abort();
  uint8_t* at = map_ + made_.descriptions_offset + used;
  std::memcpy(at, &entry, sizeof(entry));
  std::memcpy(at + sizeof(entry), description.data(), description.size());
  if (commit) StoreWord(&header()->descriptions_used, used + RoundUp(entry.size, 8));
}

bool TestWriter::Write(uint32_t index, uint16_t event, uint16_t cpu, uint64_t time,
                       std::span<const uint8_t> body) {
  weft_slot* s = slot(index);
  if (__atomic_load_n(&s->closed, __ATOMIC_SEQ_CST) != 0) return false;  // strongest: a test
  const uint64_t subbuf = uint64_t{1} << options_.subbuf_shift;
  const auto size = static_cast<uint32_t>(sizeof(weft_record) + body.size());
  const uint64_t rounded = RoundUp(size, 8);
  uint64_t head = LoadWord(&s->head);
  if ((head & (subbuf - 1)) + rounded >= subbuf) {
    const Result result = Switch(index);
    if (result == Result::kKilled) return false;
    if (result == Result::kFull) {
      if (!Store()) return false;
      StoreWord(&s->discarded[WEFT_DISCARD_FULL], LoadWord(&s->discarded[WEFT_DISCARD_FULL]) + 1);
      discarded_[index]++;
      return false;
    }
    head = LoadWord(&s->head);
  }
  uint8_t* at = ring(index) + (head & 0xffffffff);
  const weft_record record{size, event, cpu, time};
  if (!Store()) return false;
  std::memcpy(at, &record, sizeof(record));
  if (!Store()) return false;
  if (!body.empty()) std::memcpy(at + sizeof(record), body.data(), body.size());
  if (!Store()) return false;
  StoreWord(&s->head, head + rounded + (uint64_t{1} << 32));
  committed_[index]++;
  return true;
}

TestWriter::Result TestWriter::Switch(uint32_t index) {
  weft_slot* s = slot(index);
  const uint64_t head = LoadWord(&s->head);
  const uint64_t subbufs = uint64_t{1} << options_.subbufs_shift;
  const uint64_t offset = head & 0xffffffff;
  const uint64_t current = offset >> options_.subbuf_shift;
  uint8_t* base = ring(index);
  weft_subbuf_header now;
  std::memcpy(&now, base + (current << options_.subbuf_shift), sizeof(now));
  if (now.sequence + 2 > subbufs) {
    const uint64_t limit = (now.sequence + 2 - subbufs) << options_.subbuf_shift;
    if (options_.mode == WEFT_RING_DISCARD && LoadWord(&s->tail) < limit) return Result::kFull;
    if (options_.mode == WEFT_RING_OVERWRITE) {
      if (!Store()) return Result::kKilled;
      StoreWord(&s->frontier, limit);
    }
  }
  if (!Store()) return Result::kKilled;
  StoreWord(base + offset, 0);
  const uint64_t next = (now.sequence + 1) & (subbufs - 1);
  const weft_subbuf_header header{now.sequence + 1, now.records_before + (head >> 32), {0, 0}};
  if (!Store()) return Result::kKilled;
  std::memcpy(base + (next << options_.subbuf_shift), &header, sizeof(header));
  if (!Store()) return Result::kKilled;
  StoreWord(&s->head, (next << options_.subbuf_shift) + sizeof(header));
  return Result::kDone;
}

std::vector<uint8_t> MakeDescription(const std::string& name,
                                     const std::vector<std::string>& u64_fields) {
  std::vector<uint8_t> out(sizeof(weft_event_desc));
  const auto put = [&out](const void* data, size_t size) {
    const auto* p = static_cast<const uint8_t*>(data);
    out.insert(out.end(), p, p + size);
  };
  put(name.c_str(), name.size() + 1);
  for (const std::string& field : u64_fields) {
    weft_field_desc f{};
    f.size = static_cast<uint32_t>(sizeof(f) + field.size() + 1);
    f.kind = WEFT_FIELD_KIND_INTEGER;
    f.elem_size = 8;
    f.base = 10;
    f.name_size = static_cast<uint16_t>(field.size() + 1);
    put(&f, sizeof(f));
    put(field.c_str(), field.size() + 1);
  }
  weft_event_desc d{};
  d.size = static_cast<uint32_t>(out.size());
  d.version = WEFT_EVENT_DESC_VERSION;
  d.field_count = static_cast<uint16_t>(u64_fields.size());
  d.loglevel = 13;
  d.name_size = static_cast<uint16_t>(name.size() + 1);
  std::memcpy(out.data(), &d, sizeof(d));
  return out;
}

}  // namespace weft::ring::testing
