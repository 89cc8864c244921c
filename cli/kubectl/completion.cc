// SPDX-License-Identifier: Apache-2.0
// See completion.h.
#include "cli/kubectl/completion.h"

#include <CLI/CLI.hpp>
#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <mutex>
#include <stop_token>
#include <thread>

#include "cli/kubectl/connection.h"
#include "cli/kubectl/connection_flags.h"
#include "cli/kubectl/trace_objects.h"

namespace weft::kubectl {
namespace {

constexpr const char* kNoFiles = ":4\n";
constexpr const char* kFiles = ":0\n";
// A shell waits for no longer than this for names.
constexpr std::chrono::seconds kPatience{3};

constexpr const char* kBash = R"(# kubectl weft completion bash
_kubectl_weft() {
  local line
  COMPREPLY=()
  while IFS= read -r line; do
    case $line in
      :0) compopt -o default ;;
      :*) ;;
      *) COMPREPLY+=("${line%%$'\t'*}") ;;
    esac
  done < <(kubectl-weft __complete "${COMP_WORDS[@]:1:COMP_CWORD}" 2>/dev/null)
}
complete -F _kubectl_weft kubectl-weft
)";

constexpr const char* kZsh = R"(#compdef kubectl-weft
_kubectl_weft() {
  local line
  local -a found
  while IFS= read -r line; do
    case $line in
      :0) _files ;;
      :*) ;;
      *) found+=("${${line%%$'\t'*}//:/\\:}:${line#*$'\t'}") ;;
    esac
  done < <(kubectl-weft __complete "${(@)words[2,CURRENT]}" 2>/dev/null)
  _describe 'kubectl weft' found
}
compdef _kubectl_weft kubectl-weft
)";

constexpr const char* kFish = R"(function __kubectl_weft
  set -l words (commandline -opc)
  kubectl-weft __complete $words[2..-1] (commandline -ct) 2>/dev/null | string match -v ':*'
end
complete -c kubectl-weft -f -a '(__kubectl_weft)'
)";

// What of the words before the last one matters.
struct Position {
  CLI::App* command = nullptr;
  std::size_t arguments = 0;            // of the command, that are there already
  CLI::Option* awaits_value = nullptr;  // the last word is its value
  std::vector<std::string> connection;  // flags of the connection, with their values
};

bool TakesValue(const CLI::Option& option) { return option.get_items_expected_max() > 0; }

// Whether the option is one of the connection's, which belong to the whole program.
bool IsOfConnection(CLI::App& app, const CLI::Option* option) {
  const auto options = app.get_options();
  return TakesValue(*option) && std::ranges::find(options, option) != options.end();
}

CLI::Option* FindOption(CLI::App& app, CLI::App* command, const std::string& name) {
  CLI::Option* found = command->get_option_no_throw(name);
  return found != nullptr ? found : app.get_option_no_throw(name);
}

Position Walk(CLI::App& app, const std::vector<std::string>& words) {
  Position at{.command = &app};
  for (std::size_t i = 0; i + 1 < words.size(); ++i) {
    const std::string& word = words[i];
    if (at.awaits_value != nullptr) {
      if (IsOfConnection(app, at.awaits_value)) at.connection.push_back(word);
      at.awaits_value = nullptr;
    } else if (word.starts_with('-') && word.size() > 1) {
      const std::size_t equals = word.find('=');
      CLI::Option* option = FindOption(app, at.command, word.substr(0, equals));
      if (option == nullptr) continue;
      if (IsOfConnection(app, option)) at.connection.push_back(word);
      if (equals == std::string::npos && TakesValue(*option)) at.awaits_value = option;
    } else if (at.command == &app) {
      for (CLI::App* command : app.get_subcommands(nullptr)) {
        if (command->get_name() == word) at.command = command;
      }
    } else {
      ++at.arguments;
    }
  }
  return at;
}

class Candidates {
 public:
  explicit Candidates(std::string typed) : typed_(std::move(typed)) {}

  void Add(const std::string& word, const std::string& description = "") {
    if (!word.starts_with(typed_)) return;
    text_ += Printable(word);
    if (!description.empty()) text_ += "\t" + Printable(description);
    text_ += "\n";
  }
  void Add(const std::vector<std::string>& words) {
    for (const std::string& word : words) Add(word);
  }
  void AddOptions(const CLI::App& app) {
    for (const CLI::Option* option : app.get_options()) {
      for (const std::string& name : option->get_lnames())
        Add("--" + name, option->get_description());
    }
  }
  [[nodiscard]] const std::string& text() const { return text_; }

 private:
  const std::string typed_;
  std::string text_;
};

std::string CompleteValue(const CLI::Option& option, const Position& at, Candidates candidates,
                          const Names& names) {
  const bool is_top = at.command->get_name() == "top";
  if (option.check_lname("namespace") || option.check_lname("weft-namespace")) {
    candidates.Add(names.namespaces(at.connection));
  } else if (option.check_lname("output") && is_top) {
    candidates.Add("json");
  } else if (option.check_lname("output") || option.check_lname("kubeconfig")) {
    return kFiles;
  }
  return candidates.text() + kNoFiles;
}

// Calls `ask` with a stop token that stops after kPatience.
template <typename Ask>
auto InTime(Ask ask) {
  std::stop_source stop;
  std::mutex mutex;
  std::condition_variable_any changed;
  const std::jthread limit([&](const std::stop_token& done) {
    std::unique_lock lock(mutex);
    if (!changed.wait_for(lock, done, kPatience, [] { return false; }) && !done.stop_requested())
      stop.request_stop();
  });
  return ask(stop.get_token());
}

std::vector<std::string> List(const std::vector<std::string>& flags,
                              const kube::Resource& resource) {
  std::vector<std::string> found;
  ConnectionOptions options;
  CLI::App app;
  AddConnectionFlags(app, options);
  try {
    app.parse(std::vector<std::string>(flags.rbegin(), flags.rend()));
  } catch (const CLI::ParseError&) {
    return found;
  }
  const auto connection = Connect(options);
  if (!connection) return found;
  const std::string name_space =
      resource.plural == kube::kNamespaces.plural ? "" : connection->name_space;
  const auto objects = InTime([&](const std::stop_token& stop) {
    return connection->client->List({.resource = resource, .name_space = name_space}, {}, stop);
  });
  if (!objects) return found;
  for (const kube::Json& object : objects->items)
    found.push_back(kube::TextAt(object, {"metadata", "name"}));
  return found;
}

}  // namespace

std::string Complete(CLI::App& app, const std::vector<std::string>& words, const Names& names) {
  std::string typed = words.empty() ? "" : words.back();
  const Position at = Walk(app, words);
  if (at.awaits_value != nullptr)
    return CompleteValue(*at.awaits_value, at, Candidates(typed), names);
  if (const std::size_t equals = typed.find('='); typed.starts_with("--") && equals != typed.npos) {
    const CLI::Option* option = FindOption(app, at.command, typed.substr(0, equals));
    if (option == nullptr || !TakesValue(*option)) return kNoFiles;
    return CompleteValue(*option, at, Candidates(typed.substr(equals + 1)), names);
  }
  Candidates candidates(typed);
  if (typed.starts_with('-')) {
    candidates.AddOptions(*at.command);
    if (at.command != &app) candidates.AddOptions(app);
  } else if (at.command == &app) {
    for (const CLI::App* command : app.get_subcommands(nullptr))
      candidates.Add(command->get_name(), command->get_description());
  } else if (at.arguments == 0 && at.command->get_option_no_throw("TRACE") != nullptr) {
    candidates.Add(names.traces(at.connection));
  } else if (at.arguments == 0 && at.command->get_option_no_throw("SHELL") != nullptr) {
    candidates.Add(Shells());
  }
  return candidates.text() + kNoFiles;
}

Names NamesInCluster() {
  return {.traces = [](const auto& flags) { return List(flags, kube::kTraces); },
          .namespaces = [](const auto& flags) { return List(flags, kube::kNamespaces); }};
}

const char* CompletionScript(const std::string& shell) {
  if (shell == "bash") return kBash;
  return shell == "zsh" ? kZsh : kFish;
}

}  // namespace weft::kubectl
