// SPDX-License-Identifier: Apache-2.0
// Any bytes on a control connection, to either side, are refused or obeyed; what is a message comes
// back from its bytes as it was.
#include <cstdlib>

#include "lib/stream/sender.h"
#include "lib/stream/testing/memory_archive.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace weft::stream;
  const weft::Bytes bytes(data, size);
  auto message = Decode({reinterpret_cast<const char*>(data), size});
  std::string wire;
  if (message && Append(*message, wire) && !Decode(std::string_view(wire).substr(4))) std::abort();

  testing::MemoryArchive archive;
  Receiver receiver(archive, 1, Receiver::Data::kDatagrams);
  (void)receiver.ReceiveControl(bytes);
  receiver.Flush();

  Sender sender(
      {.node = "n", .kubernetes_namespace = "ns", .trace = "t", .trace_uid = "", .ticket = ""});
  const uint32_t trace = sender.AddTrace(
      {.pod = "p", .pod_uid = "", .container = "c", .uuid = "id", .path = "ust"}, 0);
  const uint32_t stream = sender.AddStream(trace, "user", 0, 0, 0);
  const std::vector<uint8_t> packet(10, 1);
  sender.WriteMetadata(trace, 0, "m\n\n");
  sender.Put(stream, 1, packet);
  sender.Connected();
  (void)sender.ReceiveControl(bytes);
  return 0;
}
