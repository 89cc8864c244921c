// SPDX-License-Identifier: Apache-2.0
// `kubectl weft list`: the Traces of a namespace, or of all. Objects are read leniently, so that
// one that this version does not understand is listed, too.
#include <cstdio>

#include "cli/exit_status.h"
#include "cli/kubectl/commands.h"
#include "cli/kubectl/explain.h"
#include "cli/kubectl/table.h"
#include "cli/kubectl/trace_objects.h"

namespace weft::kubectl {
namespace {

using kube::Json;

std::string NumberAt(const Json& object, kube::JsonPath path) {
  const Json* found = kube::At(object, path);
  return found != nullptr && found->is_number_integer() ? std::to_string(found->get<std::int64_t>())
                                                        : "0";
}

Row ToRow(const Json& trace, bool with_namespace) {
  Row row;
  if (with_namespace) row.push_back(kube::TextAt(trace, {"metadata", "namespace"}));
  const std::string phase = kube::TextAt(trace, {"status", "phase"});
  row.insert(row.end(),
             {kube::TextAt(trace, {"metadata", "name"}), phase.empty() ? "Pending" : phase,
              NumberAt(trace, {"status", "pods", "traced"}) + "/" +
                  NumberAt(trace, {"status", "pods", "matched"}),
              NumberAt(trace, {"status", "events", "delivered"}),
              NumberAt(trace, {"status", "events", "missing"}),
              Age(kube::TextAt(trace, {"metadata", "creationTimestamp"}))});
  for (std::string& cell : row) cell = Printable(cell);
  return row;
}

}  // namespace

int List(const Connection& connection, const ListCommand& command) {
  const std::string name_space = command.all_namespaces ? "" : connection.name_space;
  const auto traces =
      connection.client->List({.resource = kube::kTraces, .name_space = name_space});
  if (!traces) return Complain(traces.error());
  if (command.json) {
    std::printf("%s\n",
                Json(traces->items).dump(2, ' ', true, Json::error_handler_t::replace).c_str());
    return cli::kExitOk;
  }
  if (traces->items.empty()) {
    std::fprintf(stderr,
                 "no Traces in %s; make one: kubectl weft run -l app=NAME -e 'PROVIDER:*'\n",
                 name_space.empty() ? "any namespace" : ("the namespace " + name_space).c_str());
    return cli::kExitOk;
  }
  std::vector<Row> rows = {{"NAME", "PHASE", "PODS", "EVENTS", "LOST", "AGE"}};
  if (command.all_namespaces) rows.front().insert(rows.front().begin(), "NAMESPACE");
  for (const Json& trace : traces->items) rows.push_back(ToRow(trace, command.all_namespaces));
  std::fputs(Table(rows).c_str(), stdout);
  return cli::kExitOk;
}

}  // namespace weft::kubectl
