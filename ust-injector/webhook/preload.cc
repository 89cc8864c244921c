// SPDX-License-Identifier: Apache-2.0
// LD_PRELOAD and WEFT_CONTAINER of a container.
#include "ust-injector/webhook/preload.h"

#include <utility>

#include "lib/kube/json.h"

namespace weft::webhook {
namespace {

using kube::At;
using kube::TextAt;

using kube::kPreloadVariable;

Json Operation(const char* op, const std::string& path, Json value) {
  return {{"op", op}, {"path", path}, {"value", std::move(value)}};
}

Json Variable(std::string_view name, std::string value) {
  return {{"name", name}, {"value", std::move(value)}};
}

// Returns the index of the last variable of that name, which is the one that counts; -1: none.
int FindVariable(const Json& env, std::string_view name) {
  for (int i = static_cast<int>(env.size()) - 1; i >= 0; --i) {
    if (TextAt(env[static_cast<std::size_t>(i)], {"name"}) == name) return i;
  }
  return -1;
}

// Does the list contain weft's library? ld.so reads it with colons or blanks between the entries.
bool HasLibrary(std::string_view list) {
  while (!list.empty()) {
    const std::size_t end = list.find_first_of(": ");
    if (list.substr(0, end) == kLibraryPath) return true;
    if (end == std::string_view::npos) break;
    list.remove_prefix(end + 1);
  }
  return false;
}

bool IsOptionalReference(const Json& from) {
  for (const char* kind : {"configMapKeyRef", "secretKeyRef", "fileKeyRef"}) {
    const Json* optional = At(from, {kind, "optional"});
    if (optional != nullptr && optional->is_boolean() && optional->get<bool>()) return true;
  }
  return false;
}

std::string InFrontOf(std::string_view variable) {
  return std::string(kLibraryPath) + ":$(" + std::string(variable) + ")";
}

// Returns the place in an existing env where a variable is added.
std::string End(const std::string& path) { return path + "/env/-"; }
std::string Entry(const std::string& path, int index) {
  return path + "/env/" + std::to_string(index);
}

bool HasEnvFrom(const Json& container) {
  const Json* from = At(container, {"envFrom"});
  return from != nullptr && from->is_array() && !from->empty();
}

// Returns the operations that rewrite an existing variable.
std::expected<Json, LeftAlone> Rewrite(const Json& env, int index, const std::string& path) {
  const Json& variable = env[static_cast<std::size_t>(index)];
  const Json* from = At(variable, {"valueFrom"});
  if (from == nullptr || from->is_null()) {
    const std::string value = TextAt(variable, {"value"});
    if (HasLibrary(value)) return Json::array();
    const std::string all =
        value.empty() ? std::string(kLibraryPath) : value + ":" + std::string(kLibraryPath);
    return Json::array({Operation("replace", Entry(path, index), Variable(kPreloadVariable, all))});
  }
  if (IsOptionalReference(*from))
    return std::unexpected(
        LeftAlone{"OptionalPreload", "LD_PRELOAD is an optional reference, which may be missing"});
  if (FindVariable(env, kOriginalPreload) >= 0)
    return std::unexpected(LeftAlone{
        "PreloadConflict", "LD_PRELOAD is a reference, and WEFT_ORIG_LD_PRELOAD exists already"});
  return Json::array(
      {Operation("replace", Entry(path, index) + "/name", kOriginalPreload),
       Operation("add", End(path), Variable(kPreloadVariable, InFrontOf(kOriginalPreload)))});
}

// Operations for a container without the variable. The image's may still have it, which no program
// would see any more.
Json Add(const Json& container, const std::string& path, const PreloadOptions& options) {
  Json out = Json::array();
  std::string value(kLibraryPath);
  if (HasEnvFrom(container) && (options.from_env || !options.default_source.empty())) {
    value = InFrontOf(kPreloadVariable);
    if (!options.default_source.empty())
      out.push_back(
          Operation("add", path + "/envFrom/0",
                    {{"configMapRef", {{"name", options.default_source}, {"optional", true}}}}));
  }
  if (!options.of_image.empty()) value += ":" + options.of_image;
  out.push_back(Operation("add", End(path), Variable(kPreloadVariable, value)));
  return out;
}

}  // namespace

std::expected<Json, LeftAlone> PatchEnvironment(const Json& container, const std::string& path,
                                                const PreloadOptions& options) {
  const Json* given = At(container, {"env"});
  const bool has_env = given != nullptr && given->is_array();
  const Json none = Json::array();
  const Json& env = has_env ? *given : none;

  Json out = Json::array();
  if (!has_env) out.push_back(Operation("add", path + "/env", Json::array()));
  const int preload = FindVariable(env, kPreloadVariable);
  if (preload >= 0) {
    auto rewritten = Rewrite(env, preload, path);
    if (!rewritten) return std::unexpected(std::move(rewritten.error()));
    for (Json& operation : *rewritten) out.push_back(std::move(operation));
  } else {
    for (Json& operation : Add(container, path, options)) out.push_back(std::move(operation));
  }

  const Json name = Variable(kContainerVariable, TextAt(container, {"name"}));
  const int own = FindVariable(env, kContainerVariable);
  if (own < 0) {
    out.push_back(Operation("add", End(path), name));
  } else if (env[static_cast<std::size_t>(own)] != name) {
    out.push_back(Operation("replace", Entry(path, own), name));
  }
  return out;
}

}  // namespace weft::webhook
