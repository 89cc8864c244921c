// SPDX-License-Identifier: Apache-2.0
// Exit statuses of weft, as `weft --help` documents them. `weft record` passes the program's own
// status through. Its own statuses therefore lie where programs have none, as env(1) and the shells
// do with 126, 127 and 128 + signal.
#ifndef WEFT_CLI_EXIT_STATUS_H_
#define WEFT_CLI_EXIT_STATUS_H_

namespace weft::cli {

inline constexpr int kExitOk = 0;
inline constexpr int kExitUsage = 120;     // options that weft does not know, or too few
inline constexpr int kExitBadInput = 121;  // a Trace, event name, filter or program that is wrong
inline constexpr int kExitOutput = 122;    // the trace could not be written, or not all of it
inline constexpr int kExitTracing = 123;   // weft itself failed, or not all processes were taken in
inline constexpr int kExitNotExecutable = 126;
inline constexpr int kExitNotFound = 127;
inline constexpr int kExitSignalBase = 128;

inline constexpr const char* kExitStatusHelp = R"(Exit status:
  weft record passes PROGRAM's own exit status through, 128+N if signal N killed it, even if weft
  itself failed too (stderr reports that). Its own are:
    120  wrong usage
    121  wrong input: a Trace, an event's name, a filter or its field, a file that is no program;
         functions alone were to be recorded, and none of these was hooked
    122  the trace could not be written completely: folder, permissions, full disk, relay
    123  weft itself failed, or could not take in all processes; what was recorded is readable;
         functions alone were to be recorded, and no process was ready to be hooked
    126  PROGRAM cannot be executed
    127  PROGRAM was not found
  weft view, weft report, weft export: 0; 1 cannot write; 3 no trace found; 4 parts of it are
    damaged; 120; export also 122: the file cannot be made
  weft list: 0; 120; 121 no such program or process
  weft status: 0, also when nothing is being recorded; 120
  weft statedump: 0; 120; 121 no kernel events are being recorded)";

}  // namespace weft::cli

#endif  // WEFT_CLI_EXIT_STATUS_H_
