// SPDX-License-Identifier: Apache-2.0
// See transport_config.h.
#include "cli/kubectl/transport_config.h"

#include <algorithm>
#include <cstdlib>
#include <fstream>
#include <iterator>

#include "cli/kubectl/exec_credential.h"

namespace weft::kubectl {
namespace {

std::string Environment(std::initializer_list<const char*> names) {
  for (const char* name : names) {
    const char* value = std::getenv(name);
    if (value != nullptr && *value != '\0') return value;
  }
  return "";
}

// "host" of "https://host:port/path", without the brackets of an IPv6 address.
std::string HostOf(std::string_view url) {
  if (const auto scheme = url.find("://"); scheme != std::string_view::npos)
    url.remove_prefix(scheme + 3);
  url = url.substr(0, url.find('/'));
  if (url.starts_with('[')) return std::string(url.substr(1, url.find(']') - 1));
  return std::string(url.substr(0, url.rfind(':')));
}

// Whether an entry of NO_PROXY means this host: the host itself, or a domain that it is in.
bool IsMeant(std::string_view entry, std::string_view host) {
  if (entry == "*" || entry == host) return true;
  if (entry.starts_with('*')) entry.remove_prefix(1);
  if (entry.starts_with('.')) entry.remove_prefix(1);
  return !entry.empty() && host.size() > entry.size() && host.ends_with(entry) &&
         host[host.size() - entry.size() - 1] == '.';
}

Result<std::string> ReadPem(const std::string& file) {
  errno = 0;
  std::ifstream in(file, std::ios::binary);
  if (!in) return FailErrno(file);
  return std::string(std::istreambuf_iterator<char>(in), std::istreambuf_iterator<char>());
}

// Certificate and key may come from files or from the kubeconfig; the data win, as with kubectl.
Status TakeCertificate(const UserEntry& user, kube::Credentials& out) {
  out.certificate = user.client_certificate_data;
  out.key = user.client_key_data;
  if (out.certificate.empty() && !user.client_certificate.empty()) {
    WEFT_ASSIGN(out.certificate, ReadPem(user.client_certificate));
  }
  if (out.key.empty() && !user.client_key.empty()) {
    WEFT_ASSIGN(out.key, ReadPem(user.client_key));
  }
  if (out.certificate.empty() != out.key.empty())
    return Fail(ErrorCode::kInvalid,
                "the kubeconfig's user has a client certificate or a client key, but not both");
  return {};
}

Status TakeCredentials(const ChosenContext& chosen, kube::TransportConfig& config) {
  const UserEntry& user = chosen.user;
  if (!user.exec.command.empty()) {
    if (!user.exec.api_version.starts_with("client.authentication.k8s.io/v1"))
      return Fail(ErrorCode::kUnsupported,
                  "the kubeconfig's exec needs apiVersion: client.authentication.k8s.io/v1");
    config.credentials = [exec = std::make_shared<ExecCredentials>(user.exec, chosen.cluster)] {
      return exec->Get();
    };
    return {};
  }
  if (user.has_auth_provider)
    return Fail(ErrorCode::kUnsupported,
                "the kubeconfig's user has an auth-provider, which kubectl dropped, too: use exec");
  if (!user.username.empty() || !user.password.empty())
    return Fail(ErrorCode::kUnsupported,
                "the kubeconfig's user has a name and a password, which API servers have not "
                "accepted since Kubernetes 1.19: use a token, a certificate or exec");
  kube::Credentials credentials;
  WEFT_TRY(TakeCertificate(user, credentials));
  // A token's file wins over a token, as with kubectl: it is read again for each request.
  config.token_file = user.token_file;
  if (user.token_file.empty()) credentials.token = user.token;
  config.credentials = [credentials] { return credentials; };
  return {};
}

}  // namespace

kube::Headers ImpersonationHeaders(const UserEntry& user, const ConnectionOptions& options) {
  kube::Headers headers;
  const std::string& as = options.as.empty() ? user.as : options.as;
  const auto& groups = options.as_groups.empty() ? user.as_groups : options.as_groups;
  if (!as.empty()) headers.emplace_back("Impersonate-User", as);
  if (!user.as_uid.empty()) headers.emplace_back("Impersonate-Uid", user.as_uid);
  for (const std::string& group : groups) headers.emplace_back("Impersonate-Group", group);
  return headers;
}

std::string ProxyOfEnvironment(const std::string& server) {
  std::string proxy = server.starts_with("http://") ? Environment({"HTTP_PROXY", "http_proxy"})
                                                    : Environment({"HTTPS_PROXY", "https_proxy"});
  if (proxy.empty()) return "";
  const std::string host = HostOf(server);
  if (host == "localhost" || host == "::1" || host.starts_with("127.")) return "";
  const std::string listed = Environment({"NO_PROXY", "no_proxy"});
  std::string_view rest = listed;
  while (!rest.empty()) {
    std::string_view entry = rest.substr(0, rest.find(','));
    rest.remove_prefix(std::min(rest.size(), entry.size() + 1));
    while (entry.starts_with(' ')) entry.remove_prefix(1);
    while (entry.ends_with(' ')) entry.remove_suffix(1);
    if (IsMeant(entry, host)) return "";
  }
  return proxy.contains("://") ? proxy : "http://" + proxy;
}

Result<kube::TransportConfig> MakeTransportConfig(const ChosenContext& chosen,
                                                  const ConnectionOptions& options) {
  const ClusterEntry& cluster = chosen.cluster;
  if (cluster.server.empty())
    return Fail(ErrorCode::kInvalid, "the kubeconfig's cluster has no server");
  kube::TransportConfig config;
  config.server = cluster.server.contains("://") ? cluster.server : "https://" + cluster.server;
  config.ca = cluster.certificate_authority_data;
  if (config.ca.empty()) config.ca_file = cluster.certificate_authority;
  config.trusts_any_server = cluster.insecure_skip_tls_verify;
  config.server_name = cluster.tls_server_name;
  config.proxy = cluster.proxy_url.empty() ? ProxyOfEnvironment(config.server) : cluster.proxy_url;
  if (!config.proxy.empty() && !config.proxy.starts_with("http://"))
    return Fail(ErrorCode::kUnsupported,
                "the proxy " + config.proxy + " cannot be used: only http:// proxies can");
  config.headers = ImpersonationHeaders(chosen.user, options);
  WEFT_TRY(TakeCredentials(chosen, config));
  return config;
}

}  // namespace weft::kubectl
