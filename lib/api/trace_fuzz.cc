// SPDX-License-Identifier: Apache-2.0
// Any bytes as YAML and JSON: no crash, no exception, diagnostics where there is no Trace; and a
// Trace that was read is written and read back as the same.
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <string_view>

#include "lib/api/document.h"
#include "lib/api/parse.h"
#include "lib/api/write.h"

namespace {

[[noreturn]] void Broken(const char* what, const std::string& text) {
  std::fprintf(stderr, "%s:\n%s\n", what, text.c_str());
  std::abort();
}

void CheckRoundTrip(const weft::api::Trace& trace) {
  using namespace weft::api;
  for (const std::string& text : {ToYaml(trace), ToJson(trace)}) {
    const Traces again = ParseTraces("again", text);
    if (!again) Broken("what was written cannot be read", ToString(again.error()) + text);
    if (again->size() != 1 || !(again->front() == trace)) Broken("changed by a round trip", text);
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace weft::api;
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  // Tries both readers, whatever the first byte says.
  for (const Documents& documents : {ReadYaml(text), ReadJson(text)}) {
    if (!documents && documents.error().message.empty())
      Broken("refused without a reason", std::string(text));
  }
  const Traces traces = ParseTraces("fuzz", text);
  if (!traces) {
    if (traces.error().empty()) Broken("refused without a reason", std::string(text));
    for (const Diagnostic& diagnostic : traces.error()) (void)diagnostic.ToString();
    return 0;
  }
  for (const Trace& trace : *traces) CheckRoundTrip(trace);
  return 0;
}
