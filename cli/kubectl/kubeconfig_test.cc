// SPDX-License-Identifier: Apache-2.0
// Kubeconfig files as kubectl takes them: fields, merging, contexts, credentials, proxies,
// mistakes.
#include "cli/kubectl/kubeconfig.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>

#include "cli/kubectl/exec_credential.h"
#include "cli/kubectl/transport_config.h"

namespace weft::kubectl {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Pair;

constexpr const char* kFull = R"(
apiVersion: v1
kind: Config
preferences: {}
current-context: dev
clusters:
- name: c
  cluster:
    server: https://10.0.0.1:6443
    certificate-authority: pki/ca.crt
    tls-server-name: kubernetes
    proxy-url: http://proxy:3128
contexts:
- name: dev
  context: {cluster: c, user: u, namespace: shop}
- name: other
  context: {cluster: gone}
users:
- name: u
  user:
    token: abc
    tokenFile: /run/token
    as: me
    as-groups: [a, b]
)";

Kubeconfig Parse(const std::string& text) {
  auto config = ParseKubeconfig("/home/me/.kube/config", text);
  EXPECT_TRUE(config.has_value()) << config.error().message;
  return config.value_or(Kubeconfig{});
}

std::string Refusal(const std::string& text) {
  const auto config = ParseKubeconfig("file", text);
  return config ? "" : config.error().message;
}

TEST(Kubeconfig, ReadsWhatKubectlReads) {
  const Kubeconfig config = Parse(kFull);
  EXPECT_EQ(config.current_context, "dev");
  const ClusterEntry& cluster = config.clusters.at("c");
  EXPECT_EQ(cluster.server, "https://10.0.0.1:6443");
  EXPECT_EQ(cluster.certificate_authority, "/home/me/.kube/pki/ca.crt");
  EXPECT_EQ(cluster.tls_server_name, "kubernetes");
  EXPECT_EQ(cluster.proxy_url, "http://proxy:3128");
  const UserEntry& user = config.users.at("u");
  EXPECT_EQ(user.token, "abc");
  EXPECT_EQ(user.token_file, "/run/token");
  EXPECT_THAT(user.as_groups, ElementsAre("a", "b"));
  EXPECT_EQ(config.contexts.at("dev").name_space, "shop");
}

TEST(Kubeconfig, TakesJsonAndEmptyFiles) {
  EXPECT_EQ(Parse(R"({"clusters":[{"name":"c","cluster":{"server":"https://h"}}]})")
                .clusters.at("c")
                .server,
            "https://h");
  EXPECT_TRUE(Parse("").contexts.empty());
  EXPECT_TRUE(Parse("clusters: null\nusers:\ncontexts: []\n").contexts.empty());
}

TEST(Kubeconfig, DecodesCertificates) {
  const Kubeconfig config =
      Parse("users: [{name: u, user: {client-certificate-data: Y2VydA==, client-key-data: a2V5}}]");
  EXPECT_EQ(config.users.at("u").client_certificate_data, "cert");
  EXPECT_EQ(config.users.at("u").client_key_data, "key");
}

TEST(Kubeconfig, RefusesWithPlaceAndReason) {
  EXPECT_THAT(Refusal("a: [1\n"), HasSubstr("kubeconfig file:"));
  EXPECT_THAT(Refusal("clusters: 3\n"), HasSubstr("file:1:11: \"clusters\" must be a list"));
  EXPECT_THAT(Refusal("clusters:\n- name: c\n  cluster: {server: [a]}\n"),
              HasSubstr("file:3:21: \"server\" must be a string"));
  EXPECT_THAT(Refusal("users: [{name: u, user: {client-key-data: '%%'}}]"),
              HasSubstr("\"client-key-data\" is not base64"));
  EXPECT_THAT(Refusal("clusters: [{name: c, cluster: {insecure-skip-tls-verify: 1}}]"),
              HasSubstr("must be true or false"));
  EXPECT_THAT(Refusal("kind: Pod\n"), HasSubstr("this is no kubeconfig"));
  EXPECT_THAT(Refusal("- a\n"), HasSubstr("not a map"));
}

TEST(Kubeconfig, TheFirstFileWins) {
  Kubeconfig config = Parse("current-context: a\nclusters: [{name: c, cluster: {server: one}}]");
  Merge(config, Parse("current-context: b\nclusters: [{name: c, cluster: {server: two}}, "
                      "{name: d, cluster: {server: three}}]"));
  EXPECT_EQ(config.current_context, "a");
  EXPECT_EQ(config.clusters.at("c").server, "one");
  EXPECT_EQ(config.clusters.at("d").server, "three");
}

TEST(Kubeconfig, ChoosesTheContextOrSaysWhichThereAre) {
  const Kubeconfig config = Parse(kFull);
  const auto current = ChooseContext(config, "");
  ASSERT_TRUE(current.has_value()) << current.error().message;
  EXPECT_EQ(current->name_space, "shop");
  EXPECT_EQ(current->user.token, "abc");
  EXPECT_THAT(ChooseContext(config, "none").error().message, HasSubstr("there are: dev, other"));
  EXPECT_THAT(ChooseContext(config, "other").error().message, HasSubstr("\"gone\""));
  EXPECT_THAT(ChooseContext({}, "").error().message, HasSubstr("--context"));
}

TEST(Kubeconfig, LooksWhereKubectlLooks) {
  setenv("KUBECONFIG", "/a::/b", 1);
  EXPECT_THAT(FindKubeconfigFiles("").files, ElementsAre("/a", "/b"));
  EXPECT_THAT(FindKubeconfigFiles("/flag").files, ElementsAre("/flag"));
  unsetenv("KUBECONFIG");
  setenv("HOME", "/home/me", 1);
  EXPECT_THAT(FindKubeconfigFiles("").files, ElementsAre("/home/me/.kube/config"));
  EXPECT_TRUE(LoadKubeconfig({.files = {"/none/here"}}).has_value());
  EXPECT_THAT(LoadKubeconfig({.files = {"/none/here"}, .may_be_missing = false}).error().message,
              HasSubstr("/none/here"));
}

TEST(TransportConfig, UsesCertificateAuthorityNameAndImpersonation) {
  const auto chosen = ChooseContext(Parse(kFull), "");
  const auto config = MakeTransportConfig(*chosen, {});
  ASSERT_TRUE(config.has_value()) << config.error().message;
  EXPECT_EQ(config->server_name, "kubernetes");
  EXPECT_EQ(config->proxy, "http://proxy:3128");
  EXPECT_EQ(config->token_file, "/run/token");
  EXPECT_EQ(config->credentials().token, "") << "a token's file wins";
  EXPECT_THAT(config->headers,
              ElementsAre(Pair("Impersonate-User", "me"), Pair("Impersonate-Group", "a"),
                          Pair("Impersonate-Group", "b")));
}

TEST(TransportConfig, RefusesCredentialsThatNoServerTakes) {
  ChosenContext chosen{.cluster = {.server = "https://h"}};
  chosen.user.password = "x";
  EXPECT_EQ(MakeTransportConfig(chosen, {}).error().code, ErrorCode::kUnsupported);
  chosen.user = {.has_auth_provider = true};
  EXPECT_EQ(MakeTransportConfig(chosen, {}).error().code, ErrorCode::kUnsupported);
  chosen.user = {.client_key_data = "key"};
  EXPECT_EQ(MakeTransportConfig(chosen, {}).error().code, ErrorCode::kInvalid);
}

TEST(TransportConfig, TakesTheProxyOfTheEnvironment) {
  unsetenv("https_proxy");
  setenv("HTTPS_PROXY", "proxy:3128", 1);
  setenv("NO_PROXY", "example.com, .svc,10.0.0.1", 1);
  EXPECT_EQ(ProxyOfEnvironment("https://api.other.com:6443"), "http://proxy:3128");
  EXPECT_EQ(ProxyOfEnvironment("https://api.example.com:6443"), "");
  EXPECT_EQ(ProxyOfEnvironment("https://example.com:6443/path"), "");
  EXPECT_EQ(ProxyOfEnvironment("https://badexample.com:6443"), "http://proxy:3128");
  EXPECT_EQ(ProxyOfEnvironment("https://10.0.0.1:6443"), "");
  EXPECT_EQ(ProxyOfEnvironment("https://127.0.0.1:6443"), "");
  unsetenv("HTTPS_PROXY");
  unsetenv("NO_PROXY");
}

TEST(ExecCredential, ParsesTokensAndCertificates) {
  const auto token = ParseExecCredential(
      R"({"apiVersion":"client.authentication.k8s.io/v1","kind":"ExecCredential",)"
      R"("status":{"token":"t","expirationTimestamp":"2026-01-02T03:04:05Z"}})");
  ASSERT_TRUE(token.has_value()) << token.error().message;
  EXPECT_EQ(token->credentials.token, "t");
  EXPECT_TRUE(token->expires.has_value());
  for (const char* bad : {"", "[]", R"({"kind":"ExecCredential"})",
                          R"({"apiVersion":"client.authentication.k8s.io/v1",)"
                          R"("kind":"ExecCredential","status":{"clientKeyData":"k","token":""}})"})
    EXPECT_EQ(ParseExecCredential(bad).error().code, ErrorCode::kCorrupt) << bad;
}

// A shell script of the test, and how often it ran.
class ExecProgram : public ::testing::Test {
 protected:
  void SetUp() override {
    std::string name = (std::filesystem::temp_directory_path() / "weft-exec-XXXXXX").string();
    folder_ = mkdtemp(name.data());
  }
  void TearDown() override { std::filesystem::remove_all(folder_); }

  ExecEntry Program(const std::string& script) {
    std::ofstream(folder_ + "/get") << "#!/bin/sh\n" << script;
    chmod((folder_ + "/get").c_str(), 0755);
    return {.api_version = "client.authentication.k8s.io/v1",
            .command = folder_ + "/get",
            .args = {"argument"},
            .env = {{"FROM_ENTRY", "value"}}};
  }
  int Runs() {
    std::ifstream in(folder_ + "/runs");
    return static_cast<int>(std::count(std::istreambuf_iterator<char>(in), {}, '\n'));
  }

  std::string folder_;
};

TEST_F(ExecProgram, GetsArgumentsAndEnvironmentAndRunsOnce) {
  ExecCredentials credentials(
      Program("echo run >>$(dirname $0)/runs\n"
              "echo \"$KUBERNETES_EXEC_INFO\" | grep -q '\"kind\":\"ExecCredential\"' || exit 1\n"
              "printf '{\"apiVersion\":\"client.authentication.k8s.io/v1\",\"kind\":"
              "\"ExecCredential\",\"status\":{\"token\":\"%s-%s\"}}' $1 $FROM_ENTRY\n"),
      {});
  EXPECT_EQ(credentials.Get().token, "argument-value");
  EXPECT_EQ(credentials.Get().token, "argument-value");
  EXPECT_EQ(Runs(), 1);
}

TEST_F(ExecProgram, RunsAgainWhenItsCredentialsHaveExpired) {
  ExecCredentials credentials(
      Program("echo run >>$(dirname $0)/runs\n"
              "echo '{\"apiVersion\":\"client.authentication.k8s.io/v1\",\"kind\":"
              "\"ExecCredential\",\"status\":{\"token\":\"t\",\"expirationTimestamp\":"
              "\"2020-01-01T00:00:00Z\"}}'\n"),
      {});
  EXPECT_EQ(credentials.Get().token, "t");
  EXPECT_EQ(credentials.Get().token, "t");
  EXPECT_EQ(Runs(), 2);
}

TEST_F(ExecProgram, SaysWhyThereAreNoCredentials) {
  EXPECT_THAT(ExecCredentials(Program("exit 3\n"), {}).Get().problem,
              HasSubstr("it ended with status 3"));
  EXPECT_THAT(ExecCredentials(Program("echo no\n"), {}).Get().problem,
              HasSubstr("no ExecCredential"));
  EXPECT_THAT(ExecCredentials({.command = folder_ + "/none", .install_hint = "install it"}, {})
                  .Get()
                  .problem,
              HasSubstr("install it"));
}

}  // namespace
}  // namespace weft::kubectl
