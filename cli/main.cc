// SPDX-License-Identifier: Apache-2.0
// weft: the command line. Parses flags, then runs one command.
#include <CLI/CLI.hpp>
#include <cstring>

#include "cli/exit_status.h"
#include "cli/list.h"
#include "cli/record.h"
#include "cli/status.h"
#include "cli/view.h"

#ifndef WEFT_VERSION
#error "the build says the version"
#endif

namespace {

using namespace weft::cli;

// --mode is LTTng's spelling of --overwrite.
void AddRecord(CLI::App& app, RecordOptions& options) {
  CLI::App* record = app.add_subcommand(
      "record", "Record a program: weft record ... -- PROGRAM ARGS; or what runs: --pid PID");
  auto& form = options.short_form;
  const std::vector<CLI::Option*> short_form = {
      record->add_option(
          "-e,--event", form.events,
          "tracepoints, \"provider:event\", * matches any; several: with commas, or again"),
      record->add_option("-x,--exclude", form.exclude, "not these"),
      record->add_option("--loglevel,--log-level", form.log_level,
                         "LEVEL and more severe, =LEVEL, FROM..TO"),
      record->add_option(
          "-k,--kernel", form.kernel,
          "tracepoints of the kernel, \"sched_*\": of PROGRAM and what it starts; needs "
          "root and weft.ko"),
      record->add_option("--syscall,--syscalls", form.syscalls,
                         "system calls: \"openat\", \"*\", \"257\""),
      record->add_option("--syscall-buffer", form.syscall_buffer,
                         "bytes to record of what each of them reads or writes; default: 0"),
      record->add_option("--function", form.functions,
                         "a function of a program or library, \"PATH:SYMBOL\", through the kernel: "
                         "entry and return; needs root and weft.ko"),
      record->add_option("--usdt", form.usdt, "the same of a USDT probe: \"PATH:PROVIDER:NAME\""),
      record->add_option("--filter", form.filter,
                         "only events for which this is true: \"a > 3 && b == \\\"x\\\"\""),
      record->add_option("-c,--context", form.context,
                         "record beside every event: vpid, vtid, procname, ..."),
      record
          ->add_option_function<std::string>(
              "--mode", [&form](const std::string& mode) { form.overwrite = mode == "overwrite"; },
              "when buffers are full: discard (new events; default) or overwrite (old ones)")
          ->check(CLI::IsMember({"discard", "overwrite"})),
      record->add_flag("--overwrite", form.overwrite, "the same as --mode overwrite"),
      record->add_flag("--snapshot", form.snapshot,
                       "keep what the buffers hold at the end; overwrites"),
      record->add_option("--subbuf-size,--buffer-size", form.buffer_size,
                         "of one sub-buffer: 512Ki"),
      record->add_option("--subbufs,--buffer-count", form.buffer_count, "sub-buffers per CPU"),
      record->add_option("--duration", form.duration, "stop recording after: 90s, 5m"),
      record->add_option("--name", form.name, "of the trace"),
  };
  auto* file = record->add_option("-f,--file", options.file, "Trace resources, YAML or JSON");
  for (CLI::Option* option : short_form) file->excludes(option);
  record
      ->add_option(
          "-p,--pid", options.pids,
          "a process that runs already, with its children, instead of PROGRAM; needs root, and "
          "libweft.so in LD_PRELOAD and WEFT_DIR from the process's start")
      ->check(CLI::PositiveNumber);
  record->add_option("-o,--output", options.output, "folder to make; default: NAME-DATE-TIME here");
  record
      ->add_option("--relay", options.relay,
                   "send to weft-relay instead: HOST[:PORT[:DATA-PORT]], 4460 and the next one")
      ->excludes("--output");
  record->add_option("--ctf", options.ctf_version, "version of the format: 1.8 (default) or 2")
      ->check(CLI::IsMember({"1.8", "2"}));
  record->add_option("--summary", options.summary_file,
                     "write the counts as JSON to this file, too");
  record->add_flag("-q,--quiet", options.quiet, "no progress, no summary");
  record->add_flag(
      "--allow-missing", options.allow_missing,
      "go on when PROGRAM offers no event of a given name, or none with a field of a filter");
  record->footer(kExitStatusHelp);
}

void AddView(CLI::App& app, ViewOptions& options) {
  CLI::App* view = app.add_subcommand("view", "Print a trace");
  view->add_option("FOLDER", options.folder)->required();
  view->add_flag("--json", options.json, "one JSON object per line");
  view->add_option("-n,--limit", options.limit, "events at most")
      ->check([](const std::string& number) {
        return number.starts_with('-') ? "a number of events is 0 or more" : std::string();
      });
  view->add_option_function<std::string>(
          "--color",
          [&options](const std::string& when) {
            options.color = when == "always"  ? ViewColor::kAlways
                            : when == "never" ? ViewColor::kNever
                                              : ViewColor::kAuto;
          },
          "auto, always, never")
      ->check(CLI::IsMember({"auto", "always", "never"}));
  view->footer(kExitStatusHelp);
}

void AddList(CLI::App& app, ListOptions& options) {
  CLI::App* list =
      app.add_subcommand("list", "Show the tracepoints that a program or process offers");
  list->add_option("PROGRAM|PID", options.target)->required();
  list->add_flag("--fields", options.fields, "with the fields of each");
  list->add_flag("--json", options.json);
  list->footer(kExitStatusHelp);
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
  // What stands behind "--" is the program's, whatever it looks like.
  int own = argc;
  for (int i = 1; i < argc; ++i) {
    if (std::strcmp(argv[i], "--") != 0) continue;
    own = i;
    break;
  }
  RecordOptions record;
  for (int i = own + 1; i < argc; ++i) record.program.emplace_back(argv[i]);
  ViewOptions view;
  ListOptions list;
  bool status_json = false;

  CLI::App app("Records what programs do, at the cost of about one timestamp per event.", "weft");
  app.set_version_flag("--version", std::string("weft ") + WEFT_VERSION);
  app.require_subcommand(1);
  app.footer(kExitStatusHelp);
  AddRecord(app, record);
  AddView(app, view);
  AddList(app, list);
  app.add_subcommand("status", "Show what is being recorded")
      ->add_flag("--json", status_json)
      ->group("Options");
  app.add_subcommand("statedump",
                     "Record once more what the kernel has: processes, files, sockets");
  try {
    app.parse(own, argv);
    RefuseEmptyTexts(app);
    if (app.got_subcommand("record")) {
      const auto& form = record.short_form;
      if (record.file.empty() && form.events.empty() && form.kernel.empty() &&
          form.syscalls.empty() && form.functions.empty() && form.usdt.empty())
        throw CLI::RequiredError(
            "-f FILE, --event EVENT, --kernel, --syscall, --function or --usdt");
      if (record.program.empty() == record.pids.empty())
        throw CLI::RequiredError("either -- PROGRAM or --pid PID");
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
  if (app.got_subcommand("list")) return RunList(list);
  if (app.got_subcommand("statedump")) return RunStatedump();
  return RunStatus(status_json);
}
