// SPDX-License-Identifier: Apache-2.0
// For tests: a node and a relay with a bad network between them, all from one seed. Sender,
// Receiver and their surroundings run in a loop of small random steps. A seed that fails replays
// exactly.
//
// The node is a small consumer. Numbered events arrive. A commit puts the events since the last
// commit into packets, waits until all are stored, and is then written to a journal, which
// survives the node. A node that starts again knows only its journal, and makes other packets of
// the events behind it.
#ifndef WEFT_LIB_STREAM_TESTING_SIMULATION_H_
#define WEFT_LIB_STREAM_TESTING_SIMULATION_H_

#include <deque>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include "lib/stream/sender.h"
#include "lib/stream/testing/memory_archive.h"

namespace weft::stream::testing {

class Simulation {
 public:
  struct Network {
    // Packets one by one, lost, twice, out of order; else a stream of bytes.
    bool datagrams = false;
    double loss = 0;
    double again = 0;       // comes twice
    double disconnect = 0;  // of every step
    double relay_death = 0;
    double node_death = 0;
  };

  Simulation(uint64_t seed, const Network& network);
  // Steps with faults, then without until everything is stored. False: it never was.
  bool Run(int steps);
  // Returns what is wrong; "": nothing is.
  [[nodiscard]] std::string Check() const;

  // How often each situation occurred:
  uint64_t connections = 0;
  uint64_t node_deaths = 0;
  uint64_t relay_deaths = 0;
  uint64_t duplicates = 0;  // packets that came again
  uint64_t events = 0;

 private:
  static constexpr int kStreams = 3;
  struct Journal {
    uint64_t metadata = 0;
    uint64_t next[kStreams] = {};
    uint64_t events[kStreams] = {};
  };
  struct Pipe {
    std::string bytes;
  };
  struct Datagram {
    weft_stream_packet header;
    std::vector<uint8_t> packet;
  };
  // One side's end of a session, and what is on its way to it.
  struct Session {
    std::unique_ptr<Receiver> receiver;
    std::unique_ptr<PacketReader> reader;
    Pipe to_relay, to_node, data;
    std::deque<Datagram> datagrams;
    bool has_data = false;
    bool broken = false;
  };

  void StartNode();
  void Connect();
  void Disconnect(bool old_lives_on);
  void NodeWork();
  void TryCommit();
  void SendData();
  void RelayWork(Session& session);
  void RelayData(Session& session);
  void RelayDatagram(Session& session);
  void Faults();
  bool Chance(double p) { return std::uniform_real_distribution<>(0, 1)(random_) < p; }
  size_t Some(size_t most) { return most == 0 ? 0 : 1 + random_() % most; }

  std::mt19937_64 random_;
  Network network_;
  MemoryArchive archive_;
  uint64_t sessions_ = 0;
  Session session_;
  std::vector<Session> old_;  // the relay has not noticed yet that they ended

  std::unique_ptr<Sender> sender_;
  uint32_t trace_ = 0;
  uint32_t streams_[kStreams] = {};
  std::deque<std::vector<uint8_t>> packets_;  // of the commit that is on its way
  bool committing_ = false;
  Journal journal_, next_;
  uint64_t emitted_[kStreams] = {};
  bool connected_ = false;
  bool faults_ = true;
};

}  // namespace weft::stream::testing

#endif  // WEFT_LIB_STREAM_TESTING_SIMULATION_H_
