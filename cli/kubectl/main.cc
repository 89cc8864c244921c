// SPDX-License-Identifier: Apache-2.0
// kubectl-weft, which kubectl runs as `kubectl weft`. Parses flags, then runs one command.
#include <CLI/CLI.hpp>
#include <cstdio>

#include "cli/exit_status.h"
#include "cli/kubectl/commands.h"
#include "cli/kubectl/explain.h"

#ifndef WEFT_VERSION
#error "the build says the version"
#endif

namespace {

using namespace weft::kubectl;

constexpr const char* kExitStatusHelp = R"(Exit status:
  0    done; also when ^C ended run or live
  120  wrong usage
  121  wrong input: kubeconfig, a Trace that does not exist, a filter; or a missing right
  122  the output could not be written
  123  the API server or the relay failed, or cannot be reached)";

void AddConnection(CLI::App& app, ConnectionOptions& options) {
  app.add_option("--kubeconfig", options.kubeconfig,
                 "kubeconfig file; default: those of KUBECONFIG, else ~/.kube/config");
  app.add_option("--context", options.context, "context of the kubeconfig");
  app.add_option("-n,--namespace", options.name_space, "namespace; default: the context's");
  app.add_option("--as", options.as, "user to act as");
  app.add_option("--as-group", options.as_groups, "group to act as; may be repeated");
  app.add_option("--weft-namespace", options.weft_namespace, "namespace in which weft is installed")
      ->capture_default_str();
}

CLI::App* AddCommand(CLI::App& app, const char* name, const char* what) {
  CLI::App* command = app.add_subcommand(name, what);
  command->fallthrough();  // the connection's flags may stand behind the command
  return command;
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
  command->add_option("--loglevel,--log-level", form.log_level,
                      "log levels to record: LEVEL and more severe, =LEVEL, or FROM..TO");
  command->add_option("--filter", form.filter, "record only events that match: \"a > 3\"");
  command->add_option("-c,--context", form.context,
                      "values to record with every event: vpid, vtid, procname, ...");
  command->add_option("--duration", form.duration, "stop recording after this time: 90s, 5m");
  command->add_option("--name", form.name, "name of the Trace; default: run- and some characters");
  command->add_flag("--json", run.json, "print one JSON object per line");
  command->add_flag("--keep", run.keep, "do not delete the Trace at the end");
}

struct Commands {
  ListCommand list;
  std::string status_of;
  bool status_json = false;
  DownloadCommand download;
  LiveCommand live;
  RunCommand run;
};

void AddCommands(CLI::App& app, Commands& commands) {
  CLI::App* list = AddCommand(app, "list", "Show the Traces of the namespace");
  list->add_flag("-A,--all-namespaces", commands.list.all_namespaces, "of all namespaces");
  list->add_flag("--json", commands.list.json, "print JSON");
  CLI::App* status = AddCommand(app, "status", "Show the state of a Trace, and what to do next");
  status->add_option("TRACE", commands.status_of)->required();
  status->add_flag("--json", commands.status_json, "print JSON");
  CLI::App* download = AddCommand(app, "download", "Fetch the events of a Trace as CTF");
  download->add_option("TRACE", commands.download.trace)->required();
  download->add_option(
      "-o,--output", commands.download.output,
      "folder; default: the Trace's name. What is in it already is not fetched again");
  download->add_option("--pod", commands.download.pods, "of this pod only; may be repeated");
  download->add_flag("-q,--quiet", commands.download.quiet, "print no progress");
  CLI::App* live = AddCommand(app, "live", "Show the events of a Trace as they come");
  live->add_option("TRACE", commands.live.trace)->required();
  live->add_flag("--json", commands.live.json, "print one JSON object per line");
  AddRun(app, commands.run);
}

int RunCommandOf(const CLI::App& app, const Connection& connection, const Commands& commands,
                 Interrupts& interrupts) {
  if (app.got_subcommand("list")) return List(connection, commands.list);
  if (app.got_subcommand("status"))
    return ShowStatus(connection, commands.status_of, commands.status_json);
  if (app.got_subcommand("download")) return Download(connection, commands.download, interrupts);
  if (app.got_subcommand("live")) return Live(connection, commands.live, interrupts);
  return Run(connection, commands.run, interrupts);
}

}  // namespace

int main(int argc, char** argv) {
  ConnectionOptions options;
  Commands commands;
  CLI::App app("Records what the pods of a namespace do, and shows it.", "kubectl weft");
  app.set_version_flag("--version", std::string("kubectl-weft ") + WEFT_VERSION);
  app.require_subcommand(1);
  app.footer(kExitStatusHelp);
  AddConnection(app, options);
  AddCommands(app, commands);
  try {
    app.parse(argc, argv);
  } catch (const CLI::Success& success) {
    return app.exit(success);
  } catch (const CLI::ParseError& error) {
    std::fprintf(stderr, "kubectl weft: %s (see: kubectl weft --help)\n", error.what());
    return weft::cli::kExitUsage;
  }
  Interrupts interrupts;
  const auto connection = Connect(options);
  if (!connection) return Complain(connection.error());
  return RunCommandOf(app, *connection, commands, interrupts);
}
