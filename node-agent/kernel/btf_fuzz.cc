// SPDX-License-Identifier: Apache-2.0
// Any bytes as BTF, and, after the first, as a module's on top of it: every type is walked in every
// way.
#include <memory>

#include "node-agent/kernel/btf.h"

namespace {

void Walk(const weft::kernel::Btf& btf) {
  for (uint32_t id = 0; id <= btf.end() && id < 200; ++id) {
    const weft::kernel::BtfType type = btf.Type(id);
    (void)btf.Resolve(id);
    (void)btf.SizeOf(id);
    (void)btf.IntOf(type);
    (void)btf.ArrayOf(type);
    (void)btf.Parameters(type);
    (void)btf.Enumerators(type);
    for (const auto& member : btf.Members(type)) (void)btf.FindMember(type, member.name);
    (void)btf.FindMember(type, "nothing");
    (void)btf.Find(type.kind, type.name);
    (void)btf.FindPrefix(type.kind, type.name.substr(0, 1));
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  if (size < 2) return 0;
  const size_t wanted = data[0] | data[1] << 8;
  data += 2;
  size -= 2;
  const size_t first = wanted < size ? wanted : size;
  auto kernel = weft::kernel::Btf::Parse({data, data + first});
  if (!kernel) return 0;
  auto base = std::make_shared<const weft::kernel::Btf>(std::move(*kernel));
  Walk(*base);
  const auto module = weft::kernel::Btf::Parse({data + first, data + size}, base);
  if (module) Walk(*module);
  return 0;
}
