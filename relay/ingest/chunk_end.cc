// SPDX-License-Identifier: Apache-2.0
// See chunk_end.h.
#include "relay/ingest/chunk_end.h"

#include <sys/stat.h>
#include <unistd.h>

#include "lib/ctf/stream_reader.h"
#include "lib/ctf/trace_class.h"

namespace weft::ingest {
namespace {

Result<std::string> ReadAll(int fd, const std::string& name) {
  std::string text;
  for (;;) {
    const size_t before = text.size();
    text.resize(before + size_t{256} * 1024);
    const ssize_t got =
        ::pread(fd, text.data() + before, text.size() - before, static_cast<off_t>(before));
    text.resize(before + static_cast<size_t>(std::max<ssize_t>(got, 0)));
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return FailErrno(name);
    if (got == 0) return text;
    if (text.size() > ctf::kMaxMetadataBytes) return Fail(ErrorCode::kLimit, name + ": too large");
  }
}

uint64_t CountEvents(const std::string& metadata, const std::string& file, UniqueFd fd) {
  const auto trace = ctf::ParseMetadata(metadata);
  if (!trace) return 0;
  ctf::StreamReader reader(*trace, file, std::move(fd));
  std::vector<std::string> problems;
  uint64_t events = 0;
  while (reader.Next(problems)) {
    events += reader.item().kind == ctf::ItemKind::kEvent ? 1 : 0;
    problems.clear();
  }
  return events;
}

}  // namespace

Result<store::ChunkName> FindChunkEnd(store::ChunkFolder& folder, const std::string& trace,
                                      const store::ChunkName& name) {
  store::StreamState state{.file = trace + "/" + store::FormatChunkName(name)};
  WEFT_ASSIGN(UniqueFd fd, folder.OpenFile(state.file));
  struct stat st{};
  if (::fstat(fd.get(), &st) != 0) return FailErrno(state.file);
  WEFT_TRY(store::FindPackets(fd.get(), static_cast<uint64_t>(st.st_size), UINT64_MAX, state));
  store::ChunkName end = name;
  if (!state.has_packets) return end;
  WEFT_ASSIGN(const UniqueFd metadata, folder.OpenFile(trace + "/metadata"));
  WEFT_ASSIGN(const std::string text, ReadAll(metadata.get(), trace + "/metadata"));
  end.sequence = state.last_sequence + 1;
  end.events += CountEvents(text, state.file, std::move(fd));
  return end;
}

}  // namespace weft::ingest
