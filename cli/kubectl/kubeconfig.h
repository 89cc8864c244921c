// SPDX-License-Identifier: Apache-2.0
// Reads kubeconfig files as kubectl does, and chooses a context of them. The text is foreign: it is
// bounded, and any mistake is one line with its place. Thread-safety: pure functions and plain
// values.
#ifndef WEFT_CLI_KUBECTL_KUBECONFIG_H_
#define WEFT_CLI_KUBECTL_KUBECONFIG_H_

#include <map>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "lib/base/result.h"

namespace weft::kubectl {

// In all of these, "" means that the file does not have the field. Names of files are absolute, or
// relative to the working folder.
struct ClusterEntry {
  std::string server;
  std::string tls_server_name;
  bool insecure_skip_tls_verify = false;
  std::string certificate_authority;       // file
  std::string certificate_authority_data;  // PEM
  std::string proxy_url;
};

// A program that prints an ExecCredential.
struct ExecEntry {
  std::string api_version;
  std::string command;  // "": none
  std::vector<std::string> args;
  std::vector<std::pair<std::string, std::string>> env;
  std::string install_hint;
  bool provide_cluster_info = false;
};

struct UserEntry {
  std::string token;
  std::string token_file;
  std::string client_certificate;       // file
  std::string client_certificate_data;  // PEM
  std::string client_key;               // file
  std::string client_key_data;          // PEM
  std::string username;
  std::string password;
  std::string as;
  std::string as_uid;
  std::vector<std::string> as_groups;
  ExecEntry exec;
  bool has_auth_provider = false;  // a kind of credentials that kubectl dropped in version 1.26
};

struct ContextEntry {
  std::string cluster;
  std::string user;
  std::string name_space;
};

struct Kubeconfig {
  std::map<std::string, ClusterEntry> clusters;
  std::map<std::string, UserEntry> users;
  std::map<std::string, ContextEntry> contexts;
  std::string current_context;
};

// `file` is named in errors; names of files in it are relative to its folder.
Result<Kubeconfig> ParseKubeconfig(const std::string& file, std::string_view text);

// Adds what `into` does not have: the first file wins.
void Merge(Kubeconfig& into, Kubeconfig from);

// Where kubectl looks: the flag's file, else those of KUBECONFIG, else ~/.kube/config.
struct KubeconfigFiles {
  std::vector<std::string> files;
  bool may_be_missing = true;  // not of the flag
};
KubeconfigFiles FindKubeconfigFiles(const std::string& flag);

// Reads and merges them. An empty result: there is none of them.
Result<Kubeconfig> LoadKubeconfig(const KubeconfigFiles& files);

struct ChosenContext {
  ClusterEntry cluster;
  UserEntry user;
  std::string name_space;  // "": none is given
};

// `context` "": the current one. kNotFound: there is no such context, cluster or user.
Result<ChosenContext> ChooseContext(const Kubeconfig& config, const std::string& context);

}  // namespace weft::kubectl

#endif  // WEFT_CLI_KUBECTL_KUBECONFIG_H_
