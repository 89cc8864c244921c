// SPDX-License-Identifier: Apache-2.0
// The store: the only writer of CTF folders. One TraceStore is one CTF trace: a folder with
// `metadata` and one file per stream, or several, its chunks (chunk_name.h). The local consumer and
// the relay use it, each from one thread.
//
// Invariants, at any moment, also after a full disk or the end of the process:
//   1. files hold whole packets and whole metadata fragments, except perhaps a last partial one,
//      which is cut off at once when a write fails, and when the folder is opened again;
//   2. metadata is written before the packets that need it (the caller appends it first);
//   3. a packet is there once: a sequence number that is not above the stream's last one is
//      ignored;
//   4. only the newest chunk of a stream is written, or cut. A stream that has chunks has a newest
//      one, perhaps empty, whose name says where the stream goes on: chunks may be removed, the
//      oldest first, but not the newest one.
// Large packets go to the disk directly where it keeps up, small ones through the page cache;
// there, files are written to disk behind the writer and leave it, but for their newest
// kCachedBytes: a long trace neither pushes what others need out of memory nor grows a heap of
// dirty pages until the kernel stops the writer for it (docs/adr/0008, 0011, 0023). The store never
// opens a file itself: it asks a FileMaker, so that a process without the right to call open can
// use it.
#ifndef WEFT_RELAY_STORE_STORE_H_
#define WEFT_RELAY_STORE_STORE_H_

#include <chrono>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "lib/base/page_buffer.h"
#include "lib/base/result.h"
#include "lib/base/unique_fd.h"
#include "lib/store/chunk_name.h"
#include "lib/store/direct_pace.h"
#include "lib/store/list_folder.h"

namespace weft::store {

// Makes or opens (read, write, never truncating) a file by its name relative to the output folder,
// with the folders on the way to it. Names hold no "..", no empty part and no leading slash.
class FileMaker {
 public:
  virtual ~FileMaker() = default;
  virtual Result<UniqueFd> OpenFile(std::string_view relative_name) = 0;
};

// Can list and remove files, too, as chunks need it.
class ChunkFolder : public FileMaker {
 public:
  using Entry = FolderEntry;
  // Lists files and folders in a folder, "": the output folder. kNotFound: there is none.
  virtual Result<std::vector<Entry>> List(std::string_view folder) = 0;
  // Removes a file. It succeeds if there is none.
  virtual Status Remove(std::string_view file) = 0;
};

// openat relative to a folder; follows no symbolic link below it.
class DirectoryFileMaker : public ChunkFolder {
 public:
  explicit DirectoryFileMaker(UniqueFd directory) : directory_(std::move(directory)) {}
  Result<UniqueFd> OpenFile(std::string_view relative_name) override;
  Result<std::vector<Entry>> List(std::string_view folder) override;
  Status Remove(std::string_view file) override;

 private:
  UniqueFd directory_;
};

// kInvalid: FileMaker would not take the name.
Status CheckRelativeName(std::string_view name);

// Returns the folder of a Trace at a relay, relative to its data folder: NAMESPACE/TRACE/UID. Local
// mode has no uid: NAMESPACE/TRACE.
std::string TraceFolder(const std::string& kubernetes_namespace, const std::string& trace,
                        const std::string& uid);

// Returns "ust/uid/1000/64-bit", "kernel": the path of a trace of a domain, as readers of LTTng
// expect.
std::string UserTracePath(uint32_t uid);
std::string KernelTracePath();

// A packet of at least this size is written directly, page-aligned in memory and in the file.
inline constexpr size_t kDirectBytes = 128 * 1024;
// At most this many small packets in a row, after a large one, are also written directly. After a
// packet that ends within a page, the next large one would have to go through the page cache, which
// can take 30 times as long.
inline constexpr uint32_t kSmallDirect = 16;
inline constexpr size_t kDirectAlignment = PageBuffer::kPageBytes;
// Pages of a padded packet that are copied: the first, the one with its last bytes, and the one
// with the padding's last bytes.
inline constexpr size_t kEdgePages = 3;
// Bytes of the page cache that are written to disk at a time. Smaller pieces cost more, larger
// ones take longer.
inline constexpr uint64_t kWriteBehindBytes = 1024 * 1024;
// Newest bytes of a stream that stay in the page cache, where live readers read them.
inline constexpr uint64_t kCachedBytes = 16 * 1024 * 1024;
// If a write to disk takes longer than this, the next try comes later: each time twice as many
// bytes are left to the kernel's own writing, up to kMaxLeftToKernel.
inline constexpr uint64_t kSlowDiskNs = 2'000'000;
inline constexpr uint64_t kMaxLeftToKernel = 256 * 1024 * 1024;

// A file of a stream, the newest one if it has several.
struct StreamState {
  std::string file;
  uint64_t bytes = 0;
  uint64_t packets = 0;
  bool has_packets = false;
  uint64_t last_begin = 0;  // where the last packet begins; valid if has_packets, as the others
  uint64_t last_sequence = 0;
  uint64_t last_time = 0;       // end of the last packet
  uint64_t last_discarded = 0;  // its count
  bool last_is_moment = false;  // it begins when it ends
};

// For readers of what a store wrote, perhaps while it writes on. `name` is for errors.
//
// Where the last complete fragment of the first `size` bytes of metadata ends: at an empty line, of
// which it has no other.
Result<uint64_t> CompleteMetadata(int fd, uint64_t size, const std::string& name);
// Walks over whole packets of a stream's first `size` bytes, from state.bytes on; stops at what is
// none, and at the sequence number `before`.
Status FindPackets(int fd, uint64_t size, uint64_t before, StreamState& state);

class TraceStore {
 public:
  // Opens the trace `path` (relative, see UserTracePath). Keeps its files, and at most
  // `most_metadata` bytes of its metadata. `maker` must outlive the store. Stores of one thread may
  // share a `pace`; null: it has its own.
  static Result<TraceStore> Open(FileMaker& maker, std::string path,
                                 uint64_t most_metadata = UINT64_MAX,
                                 std::shared_ptr<DirectPace> pace = nullptr);

  // Appends one fragment (lib/ctf/metadata_writer.h). kIo with ENOSPC and the like: none of it is
  // in the file.
  Status AppendMetadata(std::string_view fragment);
  [[nodiscard]] uint64_t metadata_bytes() const { return metadata_bytes_; }
  // Read bytes of it, or replace them by equally many others (lib/ctf/vpid_range.h).
  // kInvalid: they are not within it. A concurrent reader may see a part of both.
  Result<std::string> ReadMetadata(uint64_t offset, size_t size) const;
  Status OverwriteMetadata(uint64_t offset, std::string_view bytes);

  // Adds the file of a stream. Its name is `channel` and a number, "channel0_3". It keeps what an
  // earlier process wrote, but cuts off a partial packet, everything behind its first `most` bytes,
  // and packets from the sequence number `before` on. state() then says where the stream ended. The
  // result is the handle for the functions below.
  Result<size_t> AddStream(std::string_view channel, uint32_t number, uint64_t most = UINT64_MAX,
                           uint64_t before = UINT64_MAX);

  struct Chunk {
    ChunkName name;
    uint64_t bytes = 0;
  };
  struct AddedChunks {
    size_t stream = 0;          // the handle
    std::vector<Chunk> chunks;  // the oldest first; packets go into the last one
  };
  // Adds a stream whose chunks are in `folder`, the FileMaker of Open. Cuts off the packets from
  // the number `before` on, with the chunks that begin there or later, and takes `events` for the
  // number of events that are left. Chunks before the one that is cut are not read.
  Result<AddedChunks> AddChunks(ChunkFolder& folder, std::string_view channel, uint32_t number,
                                uint64_t before, uint64_t events);
  // Ends the newest chunk of such a stream, which holds packets, and makes an empty one. If more
  // packets are to come, MayEndChunk must be true. The result is the new one's name. An error: the
  // stream goes on in the old one.
  Result<ChunkName> BeginChunk(size_t stream);
  // Does the newest chunk hold packets, and will later ones have a later begin than its last one?
  // Readers order chunks by the times when packets begin, and babeltrace2 leaves ties to chance.
  [[nodiscard]] bool MayEndChunk(size_t stream) const {
    const StreamState& state = streams_[stream].state;
    return state.has_packets && !state.last_is_moment;
  }

  [[nodiscard]] const StreamState& state(size_t stream) const { return streams_[stream].state; }
  // The number that the stream's next packet has if none is missing, and the events before it.
  [[nodiscard]] uint64_t next_sequence(size_t stream) const { return streams_[stream].next; }
  [[nodiscard]] uint64_t events(size_t stream) const { return streams_[stream].events; }
  // "channel0_3", below the trace's path.
  [[nodiscard]] const std::string& name(size_t stream) const { return streams_[stream].name; }
  [[nodiscard]] size_t streams() const { return streams_.size(); }

  // Returns the best size in bytes for a packet with so much content in this stream: perhaps a few
  // more, of padding.
  [[nodiscard]] size_t PacketBytes(size_t stream, size_t content) const;

  // Appends a whole packet as lib/ctf/packet_writer.h makes it. The names of chunks need `events`.
  // kCorrupt: the bytes are no packet. kIo: nothing of it is in the file; the caller may try again
  // or count its events as lost.
  Status WritePacket(size_t stream, std::span<const uint8_t> packet, uint64_t events = 0);
  // Does the same, but makes the packet PacketBytes long: for packets that were made elsewhere.
  Status WritePadded(size_t stream, std::span<const uint8_t> packet, uint64_t events = 0);
  // Packets come faster than WritePacket takes them.
  void FallBehind() { pace_->FallBehind(); }

  // Calls fsync for all files.
  Status Sync();

  // Bytes of metadata and of each stream's newest file.
  [[nodiscard]] uint64_t total_bytes() const;

 private:
  struct Stream {
    UniqueFd fd;
    UniqueFd ended;  // the chunk before, until it is on the disk for certain
    StreamState state;
    std::string name;
    uint64_t next = 0;
    uint64_t events = 0;
    uint64_t behind = 0;        // so much was handed to the disk
    uint64_t dropped = 0;       // so much of it left the page cache
    bool direct = false;        // the descriptor's O_DIRECT
    uint32_t small_direct = 0;  // packets of less than kDirectBytes that stay on pages
  };

  // Opens a file of the stream, and cuts off what is behind its packets before `before`.
  Status OpenFile(Stream& stream, const std::string& name, uint64_t most, uint64_t before);
  // Should a packet with so much content lie on pages?
  [[nodiscard]] bool WantsPages(const Stream& stream, size_t content) const;
  Status Write(size_t stream, std::span<const uint8_t> packet, uint64_t events, size_t bytes);
  // Writes directly if that is possible and the disk keeps up. Like Append, makes the packet
  // `bytes` long.
  Status WriteBytes(Stream& stream, std::span<const uint8_t> packet, size_t bytes);
  Status Append(const Stream& stream, std::span<const uint8_t> packet, size_t bytes);
  bool SetDirect(Stream& stream, bool direct);
  void WriteBehind(Stream& stream);

  TraceStore(FileMaker& maker, std::string path, std::shared_ptr<DirectPace> pace)
      : maker_(&maker), path_(std::move(path)), pace_(std::move(pace)) {}

  FileMaker* maker_;
  std::string path_;
  UniqueFd metadata_;
  uint64_t metadata_bytes_ = 0;
  std::vector<Stream> streams_;
  uint64_t write_behind_ = kWriteBehindBytes;  // grows while the disk is slow
  std::shared_ptr<DirectPace> pace_;
  bool no_direct_ = false;  // the file system has none
  PageBuffer edges_;        // the pages of a padded packet that are not as they came
};

}  // namespace weft::store

#endif  // WEFT_RELAY_STORE_STORE_H_
