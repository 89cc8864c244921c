// SPDX-License-Identifier: Apache-2.0
// A kubeconfig, and what a program for credentials prints, are foreign text.
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "cli/kubectl/exec_credential.h"
#include "cli/kubectl/kubeconfig.h"
#include "cli/kubectl/transport_config.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  auto config = weft::kubectl::ParseKubeconfig("config", text);
  if (config) {
    weft::kubectl::Kubeconfig merged = *config;
    weft::kubectl::Merge(merged, *config);
    const auto chosen = weft::kubectl::ChooseContext(merged, "");
    // Files that a text names are not to be opened here.
    if (chosen && chosen->user.client_certificate.empty() && chosen->user.client_key.empty())
      (void)weft::kubectl::MakeTransportConfig(*chosen, {});
  }
  (void)weft::kubectl::ParseExecCredential(text);
  return 0;
}
