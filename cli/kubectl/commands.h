// SPDX-License-Identifier: Apache-2.0
// The commands of kubectl weft. Each returns the exit status of the process (cli/exit_status.h) and
// has said on standard error what went wrong. Called by main.cc, on the first thread.
#ifndef WEFT_CLI_KUBECTL_COMMANDS_H_
#define WEFT_CLI_KUBECTL_COMMANDS_H_

#include <string>
#include <vector>

#include "cli/kubectl/connection.h"
#include "cli/kubectl/interrupts.h"
#include "cli/kubectl/live_format.h"
#include "lib/api/builder.h"

namespace weft::kubectl {

struct ListCommand {
  bool all_namespaces = false;
  bool json = false;
};

struct DownloadCommand {
  std::string trace;
  std::string output;             // "": a folder of the Trace's name
  std::vector<std::string> pods;  // empty: all
  std::string since;              // a time, or how long ago; "": from the beginning
  std::string until;              // as well; "": to the end
  bool quiet = false;
};

struct LiveCommand {
  std::string trace;
  LiveFormat format;
  bool serve = false;      // to viewers of lttng-live, instead of showing
  std::uint16_t port = 0;  // 0: any
};

struct TopCommand {
  std::string trace;  // "": all of the namespace
  bool once = false;
  std::string output;  // "json", or ""
};

struct RunCommand {
  std::string labels;
  api::ShortForm form;
  LiveFormat format;
  bool attach = false;  // to programs that run without the library
  bool keep = false;
};

int List(const Connection& connection, const ListCommand& command);
int ShowStatus(const Connection& connection, const std::string& trace, bool json);
int Download(const Connection& connection, const DownloadCommand& command, Interrupts& interrupts);
int Live(const Connection& connection, const LiveCommand& command, Interrupts& interrupts);
int Top(const Connection& connection, const TopCommand& command, Interrupts& interrupts);
// The exit status of Examine where something is wrong.
inline constexpr int kExitWrong = 1;
// kubectl weft doctor. `trace` "": all of the namespace.
int Examine(const Connection& connection, const std::string& trace);
int Run(const Connection& connection, const RunCommand& command, Interrupts& interrupts);

}  // namespace weft::kubectl

#endif  // WEFT_CLI_KUBECTL_COMMANDS_H_
