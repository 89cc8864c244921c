// SPDX-License-Identifier: Apache-2.0
// See kubeconfig.h.
#include "cli/kubectl/kubeconfig.h"

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>

#include "lib/api/document.h"
#include "lib/kube/base64.h"

namespace weft::kubectl {
namespace {

using api::Value;

// Larger than any that is made by people: a hundred clusters with their certificates.
constexpr std::size_t kMaxBytes = std::size_t{1} << 20;

std::string Place(const std::string& file, api::Mark mark) {
  std::string place = "kubeconfig " + file;
  if (mark.line > 0) place += ":" + std::to_string(mark.line) + ":" + std::to_string(mark.column);
  return place;
}

// Reads the members of one map. The first mistake stays; later calls change nothing.
class Fields {
 public:
  // `value` nullptr or null: a map without members.
  Fields(const std::string& file, const Value* value, Status& status)
      : file_(file), value_(value), status_(status) {
    if (value_ == nullptr || value_->kind == Value::Kind::kMap) return;
    if (value_->kind != Value::Kind::kNull) Refuse(value_->mark, "is " + What() + ", not a map");
    value_ = nullptr;
  }

  void Text(std::string_view key, std::string& out) {
    const Value* found = Find(key);
    if (found == nullptr) return;
    if (found->kind == Value::Kind::kList || found->kind == Value::Kind::kMap)
      return Refuse(found->mark, Quoted(key) + " must be a string");
    out = found->text;
  }

  // The name of a file.
  void Path(std::string_view key, std::string& out) {
    Text(key, out);
    if (out.empty() || out.starts_with('/')) return;
    out = (std::filesystem::path(file_).parent_path() / out).string();
  }

  void Base64(std::string_view key, std::string& out) {
    std::string text;
    Text(key, text);
    std::erase_if(text, [](char c) { return c == '\n' || c == '\r' || c == ' '; });
    auto bytes = DecodeBase64(text);
    if (!bytes) return Refuse(Find(key)->mark, Quoted(key) + " is not base64");
    out = std::move(*bytes);
  }

  void Flag(std::string_view key, bool& out) {
    const Value* found = Find(key);
    if (found == nullptr) return;
    if (found->kind != Value::Kind::kBool)
      return Refuse(found->mark, Quoted(key) + " must be true or false");
    out = found->text == "true";
  }

  void Texts(std::string_view key, std::vector<std::string>& out) {
    for (const Value* item : List(key)) {
      if (item->kind == Value::Kind::kList || item->kind == Value::Kind::kMap)
        return Refuse(item->mark, Quoted(key) + " must be a list of strings");
      out.push_back(item->text);
    }
  }

  std::vector<const Value*> List(std::string_view key) {
    std::vector<const Value*> items;
    const Value* found = Find(key);
    if (found == nullptr) return items;
    if (found->kind != Value::Kind::kList) {
      Refuse(found->mark, Quoted(key) + " must be a list");
      return items;
    }
    for (const Value& item : found->list) items.push_back(&item);
    return items;
  }

  [[nodiscard]] Fields Below(std::string_view key) { return {file_, Find(key), status_}; }

  // nullptr where there is no value, or null.
  [[nodiscard]] const Value* Find(std::string_view key) const {
    const Value* found = value_ == nullptr ? nullptr : value_->Find(key);
    return found == nullptr || found->kind == Value::Kind::kNull ? nullptr : found;
  }

 private:
  static std::string Quoted(std::string_view key) { return "\"" + std::string(key) + "\""; }
  [[nodiscard]] std::string What() const { return std::string(api::Describe(value_->kind)); }
  void Refuse(api::Mark mark, const std::string& what) {
    if (status_) status_ = Fail(ErrorCode::kInvalid, Place(file_, mark) + ": " + what);
  }

  const std::string& file_;
  const Value* value_;
  Status& status_;
};

void ReadCluster(Fields fields, ClusterEntry& out) {
  fields.Text("server", out.server);
  fields.Text("tls-server-name", out.tls_server_name);
  fields.Flag("insecure-skip-tls-verify", out.insecure_skip_tls_verify);
  fields.Path("certificate-authority", out.certificate_authority);
  fields.Base64("certificate-authority-data", out.certificate_authority_data);
  fields.Text("proxy-url", out.proxy_url);
}

void ReadExec(const std::string& file, Fields fields, Status& status, ExecEntry& out) {
  fields.Text("apiVersion", out.api_version);
  fields.Text("command", out.command);
  // A name with a slash is a file; other names are looked for in PATH.
  if (out.command.contains('/')) fields.Path("command", out.command);
  fields.Texts("args", out.args);
  for (const Value* item : fields.List("env")) {
    auto& [name, value] = out.env.emplace_back();
    Fields variable(file, item, status);
    variable.Text("name", name);
    variable.Text("value", value);
  }
  fields.Text("installHint", out.install_hint);
  fields.Flag("provideClusterInfo", out.provide_cluster_info);
}

void ReadUser(const std::string& file, Fields fields, Status& status, UserEntry& out) {
  fields.Text("token", out.token);
  fields.Path("tokenFile", out.token_file);
  fields.Path("client-certificate", out.client_certificate);
  fields.Base64("client-certificate-data", out.client_certificate_data);
  fields.Path("client-key", out.client_key);
  fields.Base64("client-key-data", out.client_key_data);
  fields.Text("username", out.username);
  fields.Text("password", out.password);
  fields.Text("as", out.as);
  fields.Text("as-uid", out.as_uid);
  fields.Texts("as-groups", out.as_groups);
  out.has_auth_provider = fields.Find("auth-provider") != nullptr;
  ReadExec(file, fields.Below("exec"), status, out.exec);
}

void ReadContext(Fields fields, ContextEntry& out) {
  fields.Text("cluster", out.cluster);
  fields.Text("user", out.user);
  fields.Text("namespace", out.name_space);
}

Result<std::string> ReadFile(const std::string& path) {
  errno = 0;
  std::ifstream in(path, std::ios::binary);
  if (!in) {
    const int saved = errno;
    return Fail(ErrorCode::kNotFound, "kubeconfig " + path + ": " + std::strerror(saved) +
                                          "; name another file with --kubeconfig");
  }
  std::string text(kMaxBytes + 1, '\0');
  in.read(text.data(), static_cast<std::streamsize>(text.size()));
  if (in.bad()) return FailErrno("kubeconfig " + path);
  text.resize(static_cast<std::size_t>(in.gcount()));
  if (text.size() > kMaxBytes)
    return Fail(ErrorCode::kLimit, "kubeconfig " + path + " is larger than 1 MiB");
  return text;
}

template <typename T>
std::string Names(const std::map<std::string, T>& map) {
  std::string names;
  for (const auto& [name, entry] : map) names += (names.empty() ? "" : ", ") + name;
  return names.empty() ? "none" : names;
}

}  // namespace

Result<Kubeconfig> ParseKubeconfig(const std::string& file, std::string_view text) {
  const auto documents = api::ReadYaml(text);
  if (!documents) {
    const api::Diagnostic& error = documents.error();
    return Fail(ErrorCode::kInvalid,
                Place(file, {error.line, error.column}) + ": " + error.message);
  }
  Kubeconfig config;
  if (documents->empty()) return config;
  if (documents->size() > 1)
    return Fail(ErrorCode::kInvalid, Place(file, {}) + ": has more than one YAML document");
  Status status;
  Fields top(file, &documents->front(), status);
  std::string kind;
  top.Text("kind", kind);
  if (!kind.empty() && kind != "Config")
    return Fail(ErrorCode::kInvalid, Place(file, {}) + ": its kind is " + api::Quote(kind) +
                                         ", not \"Config\": this is no kubeconfig");
  top.Text("current-context", config.current_context);
  const auto each = [&](std::string_view list, std::string_view member, auto& map, auto read) {
    for (const Value* item : top.List(list)) {
      Fields fields(file, item, status);
      std::string name;
      fields.Text("name", name);
      typename std::remove_reference_t<decltype(map)>::mapped_type entry;
      read(fields.Below(member), entry);
      map.try_emplace(name, std::move(entry));
    }
  };
  each("clusters", "cluster", config.clusters, ReadCluster);
  each("users", "user", config.users,
       [&](Fields fields, UserEntry& out) { ReadUser(file, fields, status, out); });
  each("contexts", "context", config.contexts, ReadContext);
  if (!status) return std::unexpected(status.error());
  return config;
}

void Merge(Kubeconfig& into, Kubeconfig from) {
  into.clusters.merge(from.clusters);
  into.users.merge(from.users);
  into.contexts.merge(from.contexts);
  if (into.current_context.empty()) into.current_context = std::move(from.current_context);
}

KubeconfigFiles FindKubeconfigFiles(const std::string& flag) {
  if (!flag.empty()) return {.files = {flag}, .may_be_missing = false};
  KubeconfigFiles out;
  if (const char* listed = std::getenv("KUBECONFIG"); listed != nullptr && *listed != '\0') {
    std::string_view rest = listed;
    while (!rest.empty()) {
      const std::string_view one = rest.substr(0, rest.find(':'));
      if (!one.empty()) out.files.emplace_back(one);
      rest.remove_prefix(std::min(rest.size(), one.size() + 1));
    }
    return out;
  }
  if (const char* home = std::getenv("HOME"); home != nullptr && *home != '\0')
    out.files.push_back(std::string(home) + "/.kube/config");
  return out;
}

Result<Kubeconfig> LoadKubeconfig(const KubeconfigFiles& files) {
  Kubeconfig config;
  for (const std::string& file : files.files) {
    std::error_code error;
    if (files.may_be_missing && !std::filesystem::exists(file, error)) continue;
    WEFT_ASSIGN(const std::string text, ReadFile(file));
    WEFT_ASSIGN(Kubeconfig one, ParseKubeconfig(file, text));
    Merge(config, std::move(one));
  }
  return config;
}

Result<ChosenContext> ChooseContext(const Kubeconfig& config, const std::string& context) {
  const std::string& name = context.empty() ? config.current_context : context;
  if (name.empty())
    return Fail(ErrorCode::kNotFound,
                "the kubeconfig has no current context: name one with --context, or run kubectl "
                "config use-context NAME; there are: " +
                    Names(config.contexts));
  const auto found = config.contexts.find(name);
  if (found == config.contexts.end())
    return Fail(ErrorCode::kNotFound, "the kubeconfig has no context " + api::Quote(name) +
                                          "; there are: " + Names(config.contexts));
  ChosenContext out;
  out.name_space = found->second.name_space;
  const auto cluster = config.clusters.find(found->second.cluster);
  if (cluster == config.clusters.end())
    return Fail(ErrorCode::kNotFound, "context " + api::Quote(name) + " names the cluster " +
                                          api::Quote(found->second.cluster) +
                                          ", which the kubeconfig does not have");
  out.cluster = cluster->second;
  if (found->second.user.empty()) return out;
  const auto user = config.users.find(found->second.user);
  if (user == config.users.end())
    return Fail(ErrorCode::kNotFound, "context " + api::Quote(name) + " names the user " +
                                          api::Quote(found->second.user) +
                                          ", which the kubeconfig does not have");
  out.user = user->second;
  return out;
}

}  // namespace weft::kubectl
