// SPDX-License-Identifier: Apache-2.0
// See definitions.h.
#include "controller/definitions.h"

#include "controller/view_definition.h"
#include "lib/api/crd.h"
#include "lib/api/document.h"

namespace weft::controller {
namespace {

using kube::Json;

Json ReadDefinition(const std::string& yaml) {
  const api::Documents documents = api::ReadYaml(yaml);
  return documents && !documents->empty() ? Json::parse(api::WriteJson(documents->front(), -1))
                                          : Json::object();
}

const Json* SchemaOf(const Json& definition) {
  const Json* versions = kube::At(definition, {"spec", "versions"});
  if (versions == nullptr || !versions->is_array() || versions->empty()) return nullptr;
  return kube::At(versions->front(), {"schema", "openAPIV3Schema"});
}

// `path`: of the schemas, ended with a dot unless it is empty.
std::string FindMissing(const Json& ours, const Json* theirs, const std::string& path) {
  if (const Json* items = kube::At(ours, {"items"}))
    return FindMissing(*items, theirs == nullptr ? nullptr : kube::At(*theirs, {"items"}), path);
  const Json* properties = kube::At(ours, {"properties"});
  if (properties == nullptr) return "";
  for (const auto& [name, schema] : properties->items()) {
    const Json* other = theirs == nullptr ? nullptr : kube::At(*theirs, {"properties", name});
    if (other == nullptr) return path + name;
    if (std::string missing = FindMissing(schema, other, path + name + "."); !missing.empty())
      return missing;
  }
  return "";
}

}  // namespace

std::string MissingField(const Json& ours, const Json& theirs) {
  const Json* schema = SchemaOf(ours);
  return schema == nullptr ? "" : FindMissing(*schema, SchemaOf(theirs), "");
}

Result<std::chrono::milliseconds> Definitions::Reconcile() {
  static const Json kOurs[] = {
      ReadDefinition(api::TraceCrdYaml()), ReadDefinition(api::ClusterTraceCrdYaml()),
      ReadDefinition(api::SessionCrdYaml()), ReadDefinition(std::string(ViewDefinitionYaml()))};
  constexpr const char* kRemedy = "; helm upgrade writes it, unless crds.install is false";
  std::string problem;
  for (const Json& ours : kOurs) {
    const std::string name = kube::TextAt(ours, {"metadata", "name"});
    const auto theirs = client_.Get({.resource = kube::kDefinitions, .name = name});
    if (!theirs && theirs.error().code != ErrorCode::kNotFound)
      return std::unexpected(theirs.error());
    if (!theirs) {
      problem = "there is no definition " + name;
    } else if (const std::string field = MissingField(ours, *theirs); !field.empty()) {
      problem = "the definition " + name + " is an older one: it has no field ";
      problem += field;
    }
    if (!problem.empty()) break;
  }
  if (!problem.empty()) problem += kRemedy;
  {
    const std::lock_guard lock(mutex_);
    problem_ = problem;
  }
  if (!problem.empty()) return Fail(ErrorCode::kUnsupported, problem);
  return kInterval;
}

std::string Definitions::Problem() const {
  const std::lock_guard lock(mutex_);
  return problem_;
}

}  // namespace weft::controller
