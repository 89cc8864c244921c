// SPDX-License-Identifier: Apache-2.0
// weft: the command line. Parses flags, then runs one command.
#include <CLI/CLI.hpp>
#include <cstring>

#include "cli/exit_status.h"
#include "cli/export/export.h"
#include "cli/list.h"
#include "cli/number.h"
#include "cli/record.h"
#include "cli/report/report.h"
#include "cli/status.h"
#include "cli/view.h"

#ifndef WEFT_VERSION
#error "the build says the version"
#endif

namespace {

using namespace weft::cli;

// Where the trace and the counts go.
void AddOutput(CLI::App& record, RecordOptions& options) {
  record.add_option("-o,--output", options.output,
                    "folder to create; default: NAME-DATE-TIME in the current folder");
  record
      .add_option("--relay", options.relay,
                  "send the trace to a weft-relay instead of a folder: HOST[:PORT[:DATA-PORT]]; "
                  "default ports: 4460 and the next one")
      ->excludes("--output");
  record.add_option("--ctf", options.ctf_version, "version of the CTF format: 1.8 (default) or 2")
      ->check(CLI::IsMember({"1.8", "2"}));
  record.add_option("--summary", options.summary_file,
                    "also write the counts as JSON to this file");
}

// --mode is LTTng's spelling of --overwrite.
void AddRecord(CLI::App& app, RecordOptions& options) {
  CLI::App* record = app.add_subcommand("record",
                                        "Record a program: weft record ... -- PROGRAM ARGS; or a "
                                        "running process: --pid PID, --process NAME");
  auto& form = options.short_form;
  const std::vector<CLI::Option*> short_form = {
      record->add_option(
          "-e,--event", form.events,
          "tracepoints to record, \"provider:event\"; * matches any characters; separate several "
          "with commas, or repeat the option"),
      record->add_option("-x,--exclude", form.exclude, "tracepoints not to record"),
      record->add_option("--loglevel,--log-level", form.log_level,
                         "log levels to record: LEVEL and more severe, =LEVEL, or FROM..TO"),
      record->add_option(
          "-k,--kernel", form.kernel,
          "kernel tracepoints to record, \"sched_*\", for PROGRAM and its children; needs "
          "root and weft.ko"),
      record->add_option("--syscall,--syscalls", form.syscalls,
                         "system calls to record: \"openat\", \"*\", \"257\""),
      record->add_option("--syscall-buffer", form.syscall_buffer,
                         "bytes to record of each buffer that a system call transfers; default: 0"),
      record->add_option("--function", form.functions,
                         "functions to record, NAME or LIBRARY:NAME, \"libssl.so*:SSL_*\"; "
                         "/PATH:SYMBOL: through the kernel, which needs root and weft.ko"),
      record->add_option("--function-set", form.function_sets,
                         "calls of known functions to record: malloc, pthread, dl, io, ssl"),
      record->add_option("--usdt", form.usdt,
                         "USDT probe to record, \"PATH:PROVIDER:NAME\"; needs root and weft.ko"),
      record->add_option("--filter", form.filter,
                         "record only events that match: \"a > 3 && b == \\\"x\\\"\"; with "
                         "functions alone: calls whose arguments match"),
      record->add_option("-c,--context", form.context,
                         "values to record with every event: vpid,vtid,procname, ...; default: "
                         "vpid,vtid with --function NAME or --function-set, else none"),
      record
          ->add_option_function<std::string>(
              "--mode", [&form](const std::string& mode) { form.overwrite = mode == "overwrite"; },
              "when buffers are full: discard new events (default) or overwrite old ones")
          ->check(CLI::IsMember({"discard", "overwrite"})),
      record->add_flag("--overwrite", form.overwrite, "short for --mode overwrite"),
      record->add_flag("--snapshot", form.snapshot,
                       "write only what the buffers hold at the end; implies --overwrite"),
      record->add_option("--subbuf-size,--buffer-size", form.buffer_size,
                         "size of one sub-buffer: 512Ki"),
      record->add_option("--subbufs,--buffer-count", form.buffer_count,
                         "number of sub-buffers per CPU"),
      record->add_option("--duration", form.duration, "stop recording after this time: 90s, 5m"),
      record->add_option("--name", form.name, "name of the trace"),
  };
  auto* file = record->add_option("-f,--file", options.file, "file with Traces, YAML or JSON");
  for (CLI::Option* option : short_form) file->excludes(option);
  record
      ->add_option(
          "-p,--pid", options.pids,
          "record a running process and its children instead of PROGRAM; needs root; libweft.so is "
          "loaded into the process if it is not there")
      ->check([](const std::string& text) {
        const auto pid = Number<int32_t>(text);
        return pid && *pid > 0
                   ? std::string()
                   : "'" + text + "' is no process id: it is a number from 1 to 2147483647";
      });
  record->add_option("--process", options.processes,
                     "record all running processes with this name, or whose program's file has it");
  AddOutput(*record, options);
  record->add_flag("-q,--quiet", options.quiet, "print neither progress nor summary");
  record->add_flag("--allow-missing", options.allow_missing,
                   "go on even if PROGRAM offers no event of a given name, or none with a filter's "
                   "field; it is no error if no function is hooked");
  record->footer(kExitStatusHelp);
}

void AddView(CLI::App& app, ViewOptions& options) {
  CLI::App* view = app.add_subcommand("view", "Print a trace");
  view->add_option("FOLDER", options.folder)->required();
  view->add_flag("--json", options.json, "print one JSON object per line");
  view->add_flag("--indent", options.indent,
                 "show events of functions further to the right the deeper their calls are");
  view->add_option("-n,--limit", options.limit, "print at most this many events")
      ->check([](const std::string& text) {
        return Number<uint64_t>(text)
                   ? std::string()
                   : "'" + text + "' is no number of events: it is 0 or a larger number";
      });
  view->add_option_function<std::string>(
          "--color",
          [&options](const std::string& when) {
            options.color = when == "always"  ? ViewColor::kAlways
                            : when == "never" ? ViewColor::kNever
                                              : ViewColor::kAuto;
          },
          "when to use colours: auto, always, never")
      ->check(CLI::IsMember({"auto", "always", "never"}));
  view->footer(kExitStatusHelp);
}

void AddReport(CLI::App& app, ReportOptions& options) {
  CLI::App* report = app.add_subcommand(
      "report", "Show how often functions were called, how long they took, and their call tree");
  report->add_option("FOLDER", options.folder)->required();
  report
      ->add_option("--to", options.format,
                   "text; json; folded: a line per stack, for flame graphs; default: text")
      ->check(CLI::IsMember(kReportFormats));
  report->footer(kExitStatusHelp);
}

void AddExport(CLI::App& app, ExportOptions& options) {
  CLI::App* command = app.add_subcommand("export", "Write a trace in a format of other programs");
  command->add_option("FOLDER", options.folder)->required();
  command
      ->add_option(
          "--to", options.format,
          "perfetto: for ui.perfetto.dev; chrome-json: for Chrome's viewer and Speedscope; "
          "csv; jsonl: a JSON object per line")
      ->required()
      ->check(CLI::IsMember(kExportFormats));
  command->add_option("-o,--output", options.output, "file to create; default: standard output");
  command->add_option("--counter", options.counters,
                      "show a field of an event as a counter in a timeline: shop:order.total");
  command->footer(kExitStatusHelp);
}

void AddList(CLI::App& app, ListOptions& options) {
  CLI::App* list =
      app.add_subcommand("list", "Show the tracepoints that a program or process offers");
  list->add_option("PROGRAM|PID", options.target)->required();
  list->add_flag("--fields", options.fields, "show the fields of each tracepoint");
  list->add_flag("--json", options.json, "print JSON");
  list->footer(kExitStatusHelp);
}

// "record, view, list, ..."
std::string Commands(const CLI::App& app) {
  std::string names;
  for (const CLI::App* command : app.get_subcommands([](const CLI::App*) { return true; }))
    names += (names.empty() ? "" : ", ") + command->get_name();
  return names;
}

// Refuses a first word that is no command, before CLI11 takes the words behind it for one.
void RefuseUnknownCommand(const CLI::App& app, const std::string& word) {
  const auto commands =
      app.get_subcommands([&word](const CLI::App* c) { return c->get_name() == word; });
  if (word.starts_with('-') || !commands.empty()) return;
  throw CLI::ParseError("'" + word + "' is no command; the commands are: " + Commands(app),
                        CLI::ExitCodes::ExtrasError);
}

// Refuses options that were given an empty text: an option that is left out means something else.
void RefuseEmptyTexts(const CLI::App& app) {
  for (const CLI::App* command : app.get_subcommands())
    for (const CLI::Option* option : command->get_options())
      for (const std::string& text : option->results())
        if (text.empty())
          throw CLI::ValidationError(option->get_name(),
                                     option->get_required()
                                         ? "must not be empty"
                                         : "must not be empty; leave it out instead");
}

}  // namespace

int main(int argc, char** argv) {
  // Arguments after "--" belong to the program, even if they look like options.
  int own = argc;
  for (int i = 1; i < argc; ++i) {
    if (std::strcmp(argv[i], "--") != 0) continue;
    own = i;
    break;
  }
  RecordOptions record;
  for (int i = own + 1; i < argc; ++i) record.program.emplace_back(argv[i]);
  ViewOptions view;
  ReportOptions report;
  ExportOptions exported;
  ListOptions list;
  bool status_json = false;

  CLI::App app("Records what programs do, at a cost of about one timestamp read per event.",
               "weft");
  app.set_version_flag("--version", std::string("weft ") + WEFT_VERSION);
  app.require_subcommand(0, 1);  // none is refused below, with the commands' names
  app.footer(kExitStatusHelp);
  AddRecord(app, record);
  AddView(app, view);
  AddReport(app, report);
  AddExport(app, exported);
  AddList(app, list);
  app.add_subcommand("status", "Show what is being recorded")
      ->add_flag("--json", status_json, "print JSON")
      ->group("Options");
  app.add_subcommand("statedump",
                     "Record the kernel's state dump again: processes, files, sockets");
  try {
    if (own > 1) RefuseUnknownCommand(app, argv[1]);
    app.parse(own, argv);
    if (app.get_subcommands().empty())
      throw CLI::RequiredError("a command (" + Commands(app) + ")");
    RefuseEmptyTexts(app);
    if (app.got_subcommand("record")) {
      const auto& form = record.short_form;
      if (record.file.empty() && form.events.empty() && form.kernel.empty() &&
          form.syscalls.empty() && form.functions.empty() && form.function_sets.empty() &&
          form.usdt.empty())
        throw CLI::RequiredError(
            "-f FILE, --event EVENT, --kernel, --syscall, --function, --function-set or --usdt");
      if (record.program.empty() == (record.pids.empty() && record.processes.empty()))
        throw CLI::RequiredError("either -- PROGRAM, --pid PID or --process NAME");
      if (!record.program.empty() && record.program.front().empty())
        throw CLI::ValidationError("PROGRAM", "the name behind -- must not be empty");
    } else if (own < argc && app.count("--help") == 0) {
      throw CLI::ExtrasError({"--"});
    }
  } catch (const CLI::Success& success) {
    return app.exit(success);
  } catch (const CLI::ParseError& error) {
    std::fprintf(stderr, "weft: %s (see: weft --help)\n", error.what());
    return kExitUsage;
  }
  if (app.got_subcommand("record")) return RunRecord(record);
  if (app.got_subcommand("view")) return RunView(view);
  if (app.got_subcommand("report")) return RunReport(report);
  if (app.got_subcommand("export")) return RunExport(exported);
  if (app.got_subcommand("list")) return RunList(list);
  if (app.got_subcommand("statedump")) return RunStatedump();
  return RunStatus(status_json);
}
