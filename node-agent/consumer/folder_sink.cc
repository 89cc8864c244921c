// SPDX-License-Identifier: Apache-2.0
// See folder_sink.h.
#include "node-agent/consumer/folder_sink.h"

namespace weft::consumer {

Result<size_t> FolderSink::AddStream(const std::string& channel, const StreamRecord& record) {
  WEFT_ASSIGN(const size_t handle, store_.AddStream(channel, record.cpu, record.bytes));
  const store::StreamState& state = store_.state(handle);
  if (state.bytes != record.bytes) {
    return Fail(ErrorCode::kCorrupt, state.file + ": its length is not what the journal says");
  }
  return handle;
}

Result<std::unique_ptr<TraceSink>> FolderSinks::Open(const ipc::ChannelDefinition& definition,
                                                     uint64_t metadata) {
  const std::string& path = definition.trace_path;
  WEFT_ASSIGN(store::TraceStore store, store::TraceStore::Open(*maker_, path, metadata));
  if (store.metadata_bytes() != metadata) {
    return Fail(ErrorCode::kCorrupt, path + "/metadata: its length is not what the journal says");
  }
  return std::make_unique<FolderSink>(std::move(store), *writer_);
}

}  // namespace weft::consumer
