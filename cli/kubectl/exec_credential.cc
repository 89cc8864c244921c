// SPDX-License-Identifier: Apache-2.0
// See exec_credential.h.
#include "cli/kubectl/exec_credential.h"

#include <fcntl.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <chrono>
#include <csignal>

#include "lib/base/unique_fd.h"
#include "lib/kube/base64.h"
#include "lib/kube/json.h"

extern char** environ;

namespace weft::kubectl {
namespace {

using kube::Json;

constexpr std::size_t kMaxAnswer = std::size_t{1} << 20;  // a token and a chain of certificates
// Credentials are renewed this long before they expire: a request takes time, and clocks differ.
constexpr std::chrono::seconds kRenewBefore{10};
constexpr std::string_view kGroup = "client.authentication.k8s.io/";

// What the program learns about the request (KUBERNETES_EXEC_INFO).
std::string ExecInfo(const ExecEntry& exec, const ClusterEntry& cluster) {
  Json spec = {{"interactive", isatty(STDIN_FILENO) == 1}};
  if (exec.provide_cluster_info) {
    spec["cluster"] = {{"server", cluster.server}};
    if (!cluster.tls_server_name.empty())
      spec["cluster"]["tls-server-name"] = cluster.tls_server_name;
    if (cluster.insecure_skip_tls_verify) spec["cluster"]["insecure-skip-tls-verify"] = true;
    if (!cluster.certificate_authority_data.empty())
      spec["cluster"]["certificate-authority-data"] =
          EncodeBase64(cluster.certificate_authority_data);
    if (!cluster.proxy_url.empty()) spec["cluster"]["proxy-url"] = cluster.proxy_url;
  }
  return Json({{"apiVersion", exec.api_version}, {"kind", "ExecCredential"}, {"spec", spec}})
      .dump(-1, ' ', false, Json::error_handler_t::replace);
}

// The environment of the program: this one's, the entry's variables, KUBERNETES_EXEC_INFO.
std::vector<std::string> Environment(const ExecEntry& exec, const ClusterEntry& cluster) {
  std::vector<std::string> out;
  const auto set = [&out](const std::string& name, const std::string& value) {
    std::erase_if(out, [&](const std::string& one) { return one.starts_with(name + "="); });
    out.push_back(name + "=" + value);
  };
  for (char** one = environ; *one != nullptr; ++one) out.emplace_back(*one);
  for (const auto& [name, value] : exec.env) set(name, value);
  set("KUBERNETES_EXEC_INFO", ExecInfo(exec, cluster));
  return out;
}

std::vector<char*> Pointers(std::vector<std::string>& texts) {
  std::vector<char*> out;
  out.reserve(texts.size() + 1);
  for (std::string& text : texts) out.push_back(text.data());
  out.push_back(nullptr);
  return out;
}

Result<std::string> ReadAll(int fd) {
  std::string text;
  std::array<char, 4096> part;
  for (;;) {
    const ssize_t n = read(fd, part.data(), part.size());
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) return FailErrno("read");
    if (n == 0) return text;
    text.append(part.data(), static_cast<std::size_t>(n));
    if (text.size() > kMaxAnswer) return Fail(ErrorCode::kLimit, "it printed more than 1 MiB");
  }
}

// What the program prints. Its standard input and error are this process's, so that it can ask.
Result<std::string> Output(std::vector<std::string> words, std::vector<std::string> environment) {
  int ends[2];
  if (pipe2(ends, O_CLOEXEC) != 0) return FailErrno("pipe2");
  UniqueFd out(ends[0]);
  UniqueFd in(ends[1]);
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_adddup2(&actions, in.get(), STDOUT_FILENO);
  // ^C shall end the program, also where this process holds its signals.
  posix_spawnattr_t attributes;
  posix_spawnattr_init(&attributes);
  sigset_t none;
  sigemptyset(&none);
  posix_spawnattr_setsigmask(&attributes, &none);
  posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETSIGMASK);
  pid_t pid = 0;
  const int failed = posix_spawnp(&pid, words[0].c_str(), &actions, &attributes,
                                  Pointers(words).data(), Pointers(environment).data());
  posix_spawnattr_destroy(&attributes);
  posix_spawn_file_actions_destroy(&actions);
  if (failed != 0) return Fail(ErrorCode::kNotFound, std::strerror(failed));
  in.reset();
  Result<std::string> text = ReadAll(out.get());
  out.reset();
  int status = 0;
  while (waitpid(pid, &status, 0) < 0 && errno == EINTR) {
  }
  if (!text) return text;
  if (WIFSIGNALED(status))
    return Fail(ErrorCode::kClosed, "signal " + std::to_string(WTERMSIG(status)) + " ended it");
  if (WEXITSTATUS(status) != 0)
    return Fail(ErrorCode::kPermission,
                "it ended with status " + std::to_string(WEXITSTATUS(status)));
  return text;
}

}  // namespace

Result<ExecAnswer> ParseExecCredential(std::string_view text) {
  const Json object = Json::parse(text, nullptr, false);
  if (kube::TextAt(object, {"kind"}) != "ExecCredential" ||
      !kube::TextAt(object, {"apiVersion"}).starts_with(kGroup))
    return Fail(ErrorCode::kCorrupt, "it printed no ExecCredential");
  ExecAnswer answer;
  answer.credentials = {.token = kube::TextAt(object, {"status", "token"}),
                        .certificate = kube::TextAt(object, {"status", "clientCertificateData"}),
                        .key = kube::TextAt(object, {"status", "clientKeyData"})};
  const kube::Credentials& got = answer.credentials;
  if (got.token.empty() && got.certificate.empty())
    return Fail(ErrorCode::kCorrupt, "its ExecCredential has neither token nor certificate");
  if (got.certificate.empty() != got.key.empty())
    return Fail(ErrorCode::kCorrupt, "its ExecCredential has a certificate or a key, not both");
  answer.expires = kube::ParseTime(kube::TextAt(object, {"status", "expirationTimestamp"}));
  return answer;
}

Result<ExecAnswer> ExecCredentials::Run() const {
  std::vector<std::string> words = {exec_.command};
  words.insert(words.end(), exec_.args.begin(), exec_.args.end());
  WEFT_ASSIGN(const std::string text, Output(std::move(words), Environment(exec_, cluster_)));
  return ParseExecCredential(text);
}

kube::Credentials ExecCredentials::Get() {
  const std::lock_guard lock(mutex_);
  if (last_ &&
      (!last_->expires || std::chrono::system_clock::now() + kRenewBefore < *last_->expires))
    return last_->credentials;
  Result<ExecAnswer> answer = Run();
  if (!answer) {
    std::string problem = "the kubeconfig's program for credentials, " + exec_.command +
                          ", failed: " + answer.error().message;
    if (answer.error().code == ErrorCode::kNotFound && !exec_.install_hint.empty())
      problem += "; " + exec_.install_hint;
    return {.problem = std::move(problem)};
  }
  last_ = std::move(*answer);
  return last_->credentials;
}

}  // namespace weft::kubectl
