// SPDX-License-Identifier: Apache-2.0
// One session with a relay: a Sender (lib/stream), and the two connections that the agent opens
// for it. When one of them ends, the link opens both again, with longer and longer pauses, and
// sends again what was not acknowledged. Nothing here blocks. Used by the service's thread.
#ifndef WEFT_NODE_AGENT_CONSUMER_RELAY_LINK_H_
#define WEFT_NODE_AGENT_CONSUMER_RELAY_LINK_H_

#include <poll.h>

#include <functional>
#include <string>
#include <vector>

#include "lib/base/unique_fd.h"
#include "lib/stream/sender.h"
#include "node-agent/consumer/relay_connection.h"

namespace weft::consumer {

// What a link asks the agent for.
struct RelayRequest {
  bool data = false;         // the data connection
  bool was_refused = false;  // the relay refused the last session, perhaps for its ticket
};

// What the agent made of it.
struct RelayAnswer {
  UniqueFd socket;
  std::string error;  // why there is no socket; else ""
  bool late = false;  // there is none since the relay did not answer in time
  RelayTrust trust;
  std::string ticket;  // for the session's hello; "": none is needed
};

class RelayLink {
 public:
  struct Hooks {
    // Asks the agent for a connection; Answer has what became of it. An error: there is no agent
    // now.
    std::function<Status(RelayRequest)> ask;
    std::function<void(const std::string&)> notice;  // for people
    // Why the relay refuses the link's sessions; "": it takes everything again.
    std::function<void(const std::string&)> refused;
  };
  // `name`: "relay HOST:PORT", for messages.
  RelayLink(stream::Hello hello, std::string name, Hooks hooks)
      : sender_(std::move(hello)),
        name_(std::move(name)),
        hooks_(std::move(hooks)),
        problem_(name_ + ": no answer yet") {}
  RelayLink(const RelayLink&) = delete;
  RelayLink& operator=(const RelayLink&) = delete;

  [[nodiscard]] stream::Sender& sender() { return sender_; }

  // Does all that can be done now. Returns true if something arrived.
  bool Pump(uint64_t now_ns);
  // Adds the descriptors that Pump waits for.
  void AddPolls(std::vector<pollfd>& polls);
  void Answer(bool data, RelayAnswer answer, uint64_t now_ns);
  // Forgets requests to the agent before, which will not be answered.
  void NewAgent();

  // Returns why there is no session, and for how long; "": there is one.
  [[nodiscard]] const std::string& problem() const { return problem_; }
  [[nodiscard]] uint64_t problem_since_ns() const { return problem_since_ns_; }
  // Returns true if the last try failed for good: there is no relay at this address, or it refused
  // the session. False: it did not answer in time, or closed the connection, and may be busy.
  [[nodiscard]] bool refused() const { return refused_; }

 private:
  enum class Phase : uint8_t { kDown, kAsked, kUp };

  void Connect(uint64_t now_ns);
  Result<bool> Receive();
  Status ReceiveData();
  Status SendControl();
  Status SendData();
  void Drop(const Error& why, uint64_t now_ns);
  void TellRefusal(const std::string& why);

  stream::Sender sender_;
  std::string name_;
  Hooks hooks_;
  Phase phase_ = Phase::kDown;
  RelayConnection control_;
  RelayConnection data_;
  bool was_refused_ = false;  // by the relay, perhaps for its ticket
  bool refused_ = false;      // as refused() returns it
  std::string refusal_;       // as the agent was told
  bool data_asked_ = false;
  bool data_blocked_ = false;  // it takes no more bytes now
  uint64_t since_ns_ = 0;      // of the phase
  uint64_t retry_ns_ = 0;      // when kDown ends
  uint64_t backoff_ns_ = 0;
  uint64_t beacon_ns_ = 0;
  std::string problem_;
  uint64_t problem_since_ns_ = 0;
  std::vector<uint8_t> buffer_;
};

}  // namespace weft::consumer

#endif  // WEFT_NODE_AGENT_CONSUMER_RELAY_LINK_H_
