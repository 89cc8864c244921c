// SPDX-License-Identifier: Apache-2.0
// The side of `weft record` in a session: its folder, its keeper, and the agent's answers. If this
// object (or its process) ends without Destroy, the keeper drains and stops the session by itself.
// Used by one thread.
#ifndef WEFT_CLI_SESSION_CLIENT_H_
#define WEFT_CLI_SESSION_CLIENT_H_

#include <chrono>
#include <functional>
#include <string>
#include <vector>

#include "cli/install_tree.h"
#include "cli/session_folder.h"
#include "lib/base/result.h"
#include "lib/ipc/child.h"
#include "lib/ipc/connection.h"
#include "lib/ipc/messages.h"

namespace weft::cli {

class SessionClient {
 public:
  // Makes the folder and starts the keeper; ends when the agent answers. Clears what killed
  // recordings left, first.
  static Result<SessionClient> Begin(const InstallTree& tree);

  // Connects to the agent of a session that another process started; for `weft status`.
  static Result<SessionClient> Attach(const std::string& folder);

  // WEFT_DIR for the program.
  [[nodiscard]] const std::string& folder() const { return folder_.path(); }

  // After Start: the cgroup that the program belongs into, its folder; "": any.
  [[nodiscard]] const std::string& cgroup() const { return cgroup_; }

  // kInvalid: what is wrong with the Traces, for people, maybe several lines. kPermission: the
  // output folder cannot be used. Others: weft failed.
  Status Create(ipc::CreateSession command);
  // Until everything is ready. Errors as above.
  Status Start();
  // Tells the agent; then poll Poll until it gives a stopped session.
  Status RequestStop();
  // Asks the agent to record the kernel's state dump now, if a Trace wants one. Reports no error.
  void DumpState();
  // Asks for the session's state, across restarts of the agent, without waiting for one.
  Status Query();
  // The next answer within `timeout`, across restarts of the agent. kTimeout: none yet. kClosed:
  // the keeper is gone, the session with it.
  Result<ipc::SessionState> Poll(std::chrono::milliseconds timeout);
  // The keeper ended before its time, and with it the others: what they left is for Destroy to
  // remove.
  [[nodiscard]] bool lost() const { return keeper_.pid > 0 && !keeper_.connection.valid(); }
  // Ends all processes and waits for the keeper, which removes the folder. Where it does not end in
  // time it is killed; where it was killed, this removes what is left.
  void Destroy();

  // What the keeper had to say meanwhile, for people.
  std::vector<std::string> TakeNotices();

 private:
  Status Connect(std::chrono::milliseconds timeout);
  Status Reconnect(std::chrono::milliseconds timeout);
  Status WaitFor(const std::function<bool(const ipc::SessionState&)>& reached);
  Status Ask(const std::function<ipc::Message()>& make);
  void ReadKeeper();
  Status WaitForKeeper(std::chrono::milliseconds timeout);
  void RemoveWhatIsLeft();

  SessionFolder folder_;  // none, after Attach
  std::string attached_;  // the folder, after Attach
  std::string cgroup_;
  ipc::Child keeper_;
  ipc::Connection agent_;
  std::vector<std::string> notices_;
  std::function<ipc::Message()> asked_;  // asked again of the next agent
  bool greeted_ = false;
};

}  // namespace weft::cli

#endif  // WEFT_CLI_SESSION_CLIENT_H_
