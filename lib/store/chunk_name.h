// SPDX-License-Identifier: Apache-2.0
// Names of a stream's files. A relay writes a stream into chunks, one file each, in the folder of
// its trace (docs/adr/0053):
//
//   user_0               the first chunk of the stream of channel "user" and CPU 0
//   user_0.1024.55555    a later one: its first packet has at least the number 1024, and the
//                        packets before it have 55555 events
//
// The difference of two chunks' events is what the first one of them holds, so a relay knows what
// it removes without reading it. Pure functions.
#ifndef WEFT_LIB_STORE_CHUNK_NAME_H_
#define WEFT_LIB_STORE_CHUNK_NAME_H_

#include <cstdint>
#include <string>
#include <string_view>

namespace weft::store {

struct ChunkName {
  std::string stream;
  uint64_t sequence = 0;
  uint64_t events = 0;

  bool operator==(const ChunkName&) const = default;
};

// A name that is none of a later chunk is that of a first one.
ChunkName ParseChunkName(std::string_view file);
std::string FormatChunkName(const ChunkName& name);

}  // namespace weft::store

#endif  // WEFT_LIB_STORE_CHUNK_NAME_H_
