// SPDX-License-Identifier: Apache-2.0
// Any bytes on a data connection: packets come out whole, and in the order of their numbers. The
// checksum is repaired, so that what is behind it is reached.
#include <algorithm>
#include <cstring>

#include "lib/stream/packet.h"
#include "lib/stream/testing/memory_archive.h"

namespace {

using namespace weft::stream;

void OpenAStream(Receiver& receiver) {
  std::string wire;
  (void)Append(Offer{.versions = {1}}, wire);
  (void)Append(
      Hello{.node = "n", .kubernetes_namespace = "ns", .trace = "t", .trace_uid = "", .ticket = ""},
      wire);
  (void)Append(OpenTrace{.trace = 1,
                         .pod = "p",
                         .pod_uid = "",
                         .container = "c",
                         .uuid = "id",
                         .path = "ust",
                         .metadata = 0},
               wire);
  (void)Append(OpenStream{.trace = 1, .stream = 1, .channel = "user"}, wire);
  (void)receiver.ReceiveControl({reinterpret_cast<const uint8_t*>(wire.data()), wire.size()});
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  testing::MemoryArchive archive;
  Receiver receiver(archive, 1, Receiver::Data::kDatagrams);
  OpenAStream(receiver);
  weft::Bytes bytes(data, size);

  // As they are.
  PacketReader reader(sizeof(weft_stream_packet));
  for (weft::Bytes left = bytes; !left.empty();) {
    const auto room = reader.Room();
    const size_t n = std::min(room.size(), left.size());
    std::memcpy(room.data(), left.data(), n);
    left = left.subspan(n);
    if (!reader.Received(n)) break;
  }

  // As packets of one stream, two bytes each: number, and distance to the one before.
  for (; bytes.size() >= 2; bytes = bytes.subspan(2)) {
    const uint64_t seq = bytes[0];
    const uint64_t back = bytes[1];
    const weft_stream_packet header{.stream_handle = 2,
                                    .seq = seq,
                                    .prev_seq = back == 0 ? WEFT_STREAM_NO_SEQ : seq - back,
                                    .length = 2};
    if (!receiver.ReceivePacket(header, bytes.first(2))) break;
    receiver.Flush();
  }
  return 0;
}
