// SPDX-License-Identifier: Apache-2.0
// Any bytes as a kernel's types: whatever tracepoints, system calls and functions they claim, what
// is made of them passes weft_fetch_validate (an event without a valid program would be kInvalid,
// our own bug).
#include <cstdio>
#include <cstdlib>

#include "node-agent/kernel/probes.h"
#include "node-agent/kernel/syscalls.h"
#include "node-agent/kernel/tracepoint.h"

namespace {

using weft::kernel::Catalogue;

void Check(const weft::Result<weft::kernel::Resolved>& resolved) {
  if (resolved || resolved.error().code != weft::ErrorCode::kInvalid) return;
  std::fprintf(stderr, "%s\n", resolved.error().message.c_str());
  std::abort();
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  static const auto symbols =
      weft::kernel::KernelSymbols::Parse("ffffffff81000000 T vfs_read\n").value();
  const auto btf = weft::kernel::Btf::Parse({data, data + size});
  if (!btf) return 0;
  const Catalogue& catalogue = Catalogue::BuiltIn();
  for (const std::string& name : weft::kernel::TracepointNames(*btf))
    for (const bool wide : {false, true})
      Check(ResolveTracepoint(*btf, catalogue, name, {.cluster_wide = wide}));
  const auto calls = weft::kernel::Syscalls::Load(*btf, catalogue, "");
  if (calls) {
    for (const weft::kernel::Syscall& call : calls->all()) {
      Check(calls->ResolveEntry(call, 64));
      Check(calls->ResolveExit(call, 64));
    }
  }
  const weft::kernel::ProbePlace place{.event = "probe", .function = "vfs_read"};
  Check(ResolveKprobe(*btf, catalogue, symbols, place, {.cluster_wide = true}));
  Check(ResolveKretprobe(*btf, catalogue, symbols, place, {.cluster_wide = true}));
  return 0;
}
