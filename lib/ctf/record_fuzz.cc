// SPDX-License-Identifier: Apache-2.0
// Any bytes, and good bodies with any bytes changed, as records of random classes: what the packet
// writer takes, the reader reads, event for event, without a complaint; what it refuses leaves no
// trace.
#include <sys/mman.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <string>
#include <vector>

#include "lib/ctf/metadata_writer.h"
#include "lib/ctf/packet_writer.h"
#include "lib/ctf/record_builder.h"
#include "lib/ctf/stream_reader.h"

namespace {

void Check(bool ok, const char* what) {
  if (ok) return;
  std::fprintf(stderr, "%s\n", what);
  std::abort();
}

class TextChecker : public weft::ctf::Visitor {
 public:
  void Text(const weft::ctf::Type&, std::string_view text) override {
    Check(!text.contains('\0'), "a NUL in a text");
  }
};

std::vector<uint8_t> GoodBody(weft::ctf::RandomRecords& random, const weft::EventDescription& event,
                              const weft::ctf::ChannelSchema& channel) {
  weft::ctf::RecordBuilder builder;
  if (!channel.contexts.empty()) {
    builder.Context(uint8_t{WEFT_DYNAMIC_STRING}).Context(uint32_t{3}).ContextBytes("abc");
    builder.ContextBytes("0123456789abcdef");
  }
  random.AddBody(event, builder);
  const auto body = builder.body();
  return {body.begin(), body.end()};
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace weft::ctf;
  if (size < 4) return 0;
  RandomRecords random(data[0] | data[1] << 8);
  const TraceInfo info{.version = (data[2] & 1) != 0 ? Version::k2 : Version::k1_8};
  ChannelSchema schema{.name = "c"};
  if ((data[2] & 2) != 0) {
    schema.contexts = {{WEFT_CONTEXT_APP, "a:b"}, {WEFT_CONTEXT_PROCNAME, ""}};
  }
  const Channel channel = MakeChannel(schema).value();
  const weft::EventDescription description = random.Event("p:e");
  const EventClass event = MakeEventClass(0, channel, description).value();
  PacketWriter writer(StreamConfig{}, kMinPacketCapacity);
  const size_t step = 1 + data[3];
  uint64_t taken = 0;
  for (size_t at = 4; at < size; at += step) {
    const auto bytes = std::span(data, size).subspan(at, std::min(step, size - at));
    std::vector<uint8_t> good = GoodBody(random, description, schema);
    // The record is a good body with some of its bytes changed, or the input's bytes themselves.
    for (size_t i = 0; i + 1 < bytes.size() && !good.empty(); i += 2) {
      good[bytes[i] % good.size()] ^= bytes[i + 1];
    }
    const std::span<const uint8_t> body = bytes[0] % 8 == 7 ? bytes : std::span(good);
    const size_t before = writer.bytes();
    if (writer.Append(at * bytes[0], channel, event, body) == Appended::kOk) {
      taken++;
    } else {
      Check(writer.bytes() == before, "a refused record left something");
    }
  }
  const auto packet = writer.Finish(0, 0);
  weft::UniqueFd fd(::memfd_create("packet", MFD_CLOEXEC));
  Check(::write(fd.get(), packet.data(), packet.size()) == static_cast<ssize_t>(packet.size()),
        "write");
  const auto trace = ParseMetadata(TraceMetadata(info) + ChannelMetadata(info, channel) +
                                   EventMetadata(info, event));
  Check(trace.has_value(), "the metadata is not read");
  StreamReader reader(*trace, "packet", std::move(fd));
  std::vector<std::string> problems;
  TextChecker checker;
  uint64_t read = 0;
  while (reader.Next(problems)) {
    read++;
    (void)reader.Visit(Scope::kStreamContext, checker);
    Check(reader.Visit(Scope::kPayload, checker), "the payload is not read");
  }
  Check(problems.empty() && read == taken, "the reader disagrees");
  return 0;
}
