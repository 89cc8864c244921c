// SPDX-License-Identifier: Apache-2.0
#include "lib/ctf/schema.h"

namespace weft::ctf {

std::vector<EnvEntry> MakeEnv(const TraceIdentity& identity) {
  std::vector<EnvEntry> env = {{"tracer_name", "weft"},
                               {"tracer_major", int64_t{0}},
                               {"tracer_minor", int64_t{1}},
                               {"tracer_patch", int64_t{0}}};
  const auto add = [&env](const char* name, const std::string& value) {
    if (!value.empty()) env.push_back({name, value});
  };
  add("domain", identity.domain);
  add("hostname", identity.hostname);
  add("trace_name", identity.trace_name);
  add("trace_creation_datetime", identity.created);
  add("procnames", identity.procnames);
  add("node", identity.node);
  add("namespace", identity.kubernetes_namespace);
  add("pod", identity.pod);
  add("pod_uid", identity.pod_uid);
  add("container", identity.container);
  return env;
}

}  // namespace weft::ctf
