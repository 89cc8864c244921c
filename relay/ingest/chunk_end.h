// SPDX-License-Identifier: Apache-2.0
// Where a chunk ends that an earlier relay wrote last, before it was killed: nothing but the chunk
// itself says how many events it has. It decodes the whole chunk, in the caller's thread.
#ifndef WEFT_RELAY_INGEST_CHUNK_END_H_
#define WEFT_RELAY_INGEST_CHUNK_END_H_

#include <string>

#include "lib/base/result.h"
#include "lib/store/store.h"

namespace weft::ingest {

// Returns the name of the chunk that follows chunk `name` in the folder of a CTF trace. What cannot
// be decoded counts as no event.
Result<store::ChunkName> FindChunkEnd(store::ChunkFolder& folder, const std::string& trace,
                                      const store::ChunkName& name);

}  // namespace weft::ingest

#endif  // WEFT_RELAY_INGEST_CHUNK_END_H_
