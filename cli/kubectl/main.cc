// SPDX-License-Identifier: Apache-2.0
// kubectl-weft, which kubectl runs as `kubectl weft`. Parses flags, then runs one command.
#include <unistd.h>
#include <CLI/CLI.hpp>

#include <csignal>
#include <cstdio>
#include <memory>

#include "cli/exit_status.h"
#include "cli/kubectl/commands.h"
#include "cli/kubectl/completion.h"
#include "cli/kubectl/connection_flags.h"
#include "cli/kubectl/explain.h"
#include "cli/kubectl/trace_objects.h"
#include "lib/api/names.h"

#ifndef WEFT_VERSION
#error "the build says the version"
#endif

namespace {

using namespace weft::kubectl;

constexpr const char* kExitStatusHelp = R"(Exit status:
  0    done; also when ^C ended run, live or top
  1    doctor: something is wrong
  120  wrong usage
  121  wrong input: kubeconfig, a Trace that does not exist, a filter; or a missing right
  122  the output could not be written
  123  the API server or the relay failed, or cannot be reached
  130  ^C ended download, or came again)";

CLI::App* AddCommand(CLI::App& app, const char* name, const char* what) {
  CLI::App* command = app.add_subcommand(name, what);
  command->fallthrough();  // the connection's flags may stand behind the command
  return command;
}

struct LiveOptions {
  CLI::Option *json, *indent;
};

LiveOptions AddFormat(CLI::App& command, LiveFormat& format) {
  LiveOptions options{};
  options.json = command.add_flag("--json", format.json, "print one JSON object per line");
  options.indent =
      command.add_flag("--indent", format.indent,
                       "show events of functions further to the right the deeper their calls are");
  options.indent->excludes(options.json);
  return options;
}

void AddTrace(CLI::App& command, std::string& name) {
  command.add_option("TRACE", name)->required()->check([](const std::string& given) {
    return given.empty() ? "a name" : "";
  });
}

// --json, and kubectl's way to say it.
void AddJson(CLI::App& command, bool& json) {
  command.add_flag("--json", json, "print JSON");
  command
      .add_option_function<std::string>(
          "-o,--output", [&json](const std::string&) { json = true; }, "json: as --json")
      ->check(CLI::IsMember({"json"}));
}

void AddRun(CLI::App& app, RunCommand& run) {
  CLI::App* command =
      AddCommand(app, "run", "Make a Trace, show its events live, and end and delete it at ^C");
  auto& form = run.form;
  form.name = "";
  command->add_option("-l,--selector", run.labels, "labels of the pods to trace: app=shop,tier=web")
      ->required();
  command->add_option("-e,--event", form.events,
                      "tracepoints to record, \"provider:event\"; * matches any characters");
  command->add_option("-x,--exclude", form.exclude, "tracepoints not to record");
  command->add_option("-k,--kernel", form.kernel, "kernel tracepoints to record, \"sched_*\"");
  command->add_option("--syscall,--syscalls", form.syscalls, "system calls to record: \"openat\"");
  command->add_option(
      "--function", form.functions,
      "functions to record, NAME or LIBRARY:NAME, \"libssl.so*:SSL_*\"; through the "
      "kernel: /PATH:SYMBOL");
  command->add_option("--function-set", form.function_sets,
                      "calls of known functions to record: malloc, pthread, dl, io, ssl");
  command->add_option("--usdt", form.usdt,
                      "USDT probes to record through the kernel, \"/PATH:PROVIDER:NAME\"");
  command->add_option("--loglevel,--log-level", form.log_level,
                      "log levels to record: LEVEL and more severe, =LEVEL, or FROM..TO");
  command->add_option("--filter", form.filter, "record only events that match: \"a > 3\"");
  command->add_option("-c,--context", form.context,
                      "values to record with every event: vpid,vtid,procname, ...; default: "
                      "vpid,vtid with --function or --function-set, else none");
  command->add_option("--duration", form.duration, "stop recording after this time: 90s, 5m");
  command->add_option("--name", form.name, "name of the Trace; default: run- and some characters");
  AddFormat(*command, run.format);
  command->add_flag("--attach", run.attach,
                    "record also programs of pods without weft's library, if the installation "
                    "allows it");
  command->add_flag("--keep", run.keep, "do not delete the Trace at the end");
}

struct Commands {
  ListCommand list;
  std::string status_of;
  bool status_json = false;
  DownloadCommand download;
  LiveCommand live;
  RunCommand run;
  TopCommand top;
  std::string examined;
  std::string shell;
};

void AddCommands(CLI::App& app, Commands& commands) {
  CLI::App* list = AddCommand(app, "list", "Show the Traces of the namespace");
  list->add_flag("-A,--all-namespaces", commands.list.all_namespaces, "of all namespaces");
  AddJson(*list, commands.list.json);
  CLI::App* status = AddCommand(app, "status", "Show the state of a Trace, and what to do next");
  AddTrace(*status, commands.status_of);
  AddJson(*status, commands.status_json);
  CLI::App* download = AddCommand(app, "download", "Fetch the events of a Trace as CTF");
  AddTrace(*download, commands.download.trace);
  download->add_option(
      "-o,--output", commands.download.output,
      "folder; default: the Trace's name. What is in it already is not fetched again");
  download->add_option("--pod", commands.download.pods, "of this pod only; may be repeated");
  download->add_option("--since", commands.download.since,
                       "events from then on: 2026-01-02T03:04:05Z, or how long ago, 5m");
  download->add_option("--until", commands.download.until, "events up to then");
  download->add_flag("-q,--quiet", commands.download.quiet, "print no progress");
  CLI::App* live = AddCommand(app, "live", "Show the events of a Trace as they come");
  AddTrace(*live, commands.live.trace);
  const LiveOptions format = AddFormat(*live, commands.live.format);
  live->add_option("--serve", commands.live.port,
                   "serve the events to babeltrace2 on this machine, at this or any port")
      ->expected(0, 1)
      ->type_name("[PORT]")
      ->excludes(format.json)
      ->excludes(format.indent);
  AddRun(app, commands.run);
  CLI::App* top = AddCommand(
      app, "top", "Show how much of each Trace and pod arrives, and is discarded or lost");
  top->add_option("TRACE", commands.top.trace, "default: all Traces that record");
  top->add_flag("--once", commands.top.once, "print one table; as where the output is no terminal");
  top->add_option("-o,--output", commands.top.output, "json: print one JSON object")
      ->check(CLI::IsMember({"json"}));
  CLI::App* doctor =
      AddCommand(app, "doctor", "Say what works on each node and pod, what not, and what to do");
  doctor->add_option("TRACE", commands.examined, "default: all of the namespace");
  CLI::App* completion = AddCommand(app, "completion", "Print a script that completes in a shell");
  completion->add_option("SHELL", commands.shell)->required()->check(CLI::IsMember(Shells()));
}

// Returns why the words are not understood, and which --help to read.
std::string UsageProblem(const CLI::App& app, const CLI::ParseError& error, int argc, char** argv) {
  std::string help = "kubectl weft";
  for (const CLI::App* command : app.get_subcommands()) help += " " + command->get_name();
  help = " (see: " + help + " --help)";
  if (dynamic_cast<const CLI::ExtrasError*>(&error) != nullptr) {
    std::string words;
    for (const std::string& word : app.remaining(true)) words += " " + word;
    return "not understood:" + words + help;
  }
  // No command was found: the first word was to be one.
  if (app.get_subcommands().empty() && argc >= 2 && argv[1][0] != '-')
    return "there is no command " + std::string(argv[1]) + help;
  return error.what() + help;
}

// The Trace that the command names; "": none.
const std::string& NamedTrace(const Commands& commands) {
  for (const std::string* name :
       {&commands.status_of, &commands.download.trace, &commands.live.trace, &commands.top.trace}) {
    if (!name->empty()) return *name;
  }
  return commands.examined;
}

// `interrupts`: null for commands that only ask and print.
int RunCommandOf(const CLI::App& app, const Connection& connection, const Commands& commands,
                 Interrupts* interrupts) {
  if (app.got_subcommand("list")) return List(connection, commands.list);
  if (app.got_subcommand("status"))
    return ShowStatus(connection, commands.status_of, commands.status_json);
  if (app.got_subcommand("download")) return Download(connection, commands.download, *interrupts);
  if (app.got_subcommand("top")) return Top(connection, commands.top, *interrupts);
  if (app.got_subcommand("doctor")) return Examine(connection, commands.examined);
  if (app.got_subcommand("live")) {
    LiveCommand live = commands.live;
    live.serve = app.get_subcommand("live")->count("--serve") > 0;
    return Live(connection, live, *interrupts);
  }
  return Run(connection, commands.run, *interrupts);
}

}  // namespace

int main(int argc, char** argv) {
  ConnectionOptions options;
  Commands commands;
  CLI::App app("Records what the pods of a namespace do, and shows it.", "kubectl weft");
  app.set_version_flag("--version", std::string("kubectl-weft ") + WEFT_VERSION);
  app.require_subcommand(1);
  app.footer(kExitStatusHelp);
  AddConnectionFlags(app, options);
  AddCommands(app, commands);
  if (argc >= 2 && std::string_view(argv[1]) == "__complete") {
    const std::vector<std::string> words(argv + 2, argv + argc);
    std::fputs(Complete(app, words, NamesInCluster()).c_str(), stdout);
    return weft::cli::kExitOk;
  }
  try {
    app.parse(argc, argv);
  } catch (const CLI::Success& success) {
    return app.exit(success);
  } catch (const CLI::ParseError& error) {
    std::fprintf(stderr, "kubectl weft: %s\n",
                 Printable(UsageProblem(app, error, argc, argv)).c_str());
    return weft::cli::kExitUsage;
  }
  if (app.got_subcommand("completion")) {
    std::fputs(CompletionScript(commands.shell), stdout);
    return weft::cli::kExitOk;
  }
  std::signal(SIGPIPE, SIG_IGN);  // a peer that went away is an error of one request
  // Commands that only ask and print are ended by ^C at once, as any program.
  const bool only_asks =
      app.got_subcommand("list") || app.got_subcommand("status") || app.got_subcommand("doctor");
  const auto interrupts = only_asks ? nullptr : std::make_unique<Interrupts>();
  const auto connection = Connect(options);
  if (!connection) return Complain(connection.error());
  if (const std::string& name = NamedTrace(commands); !name.empty()) {
    if (const std::string why = weft::api::CheckTraceName(name); !why.empty())
      return Complain(
          {weft::ErrorCode::kInvalid, 0, "\"" + name + "\" is no name of a Trace: " + why});
  }
  const int status = RunCommandOf(app, *connection, commands, interrupts.get());
  // A thread of the HTTP library may still close a connection. The end of main would destroy its
  // objects meanwhile.
  std::fflush(nullptr);
  _exit(status);
}
