// SPDX-License-Identifier: Apache-2.0
// Limits what the connections of one server hold together: places and bytes. When either runs out,
// the budget closes a connection that waits for its peer, so that a peer that only holds
// connections cannot keep others out.
//
// It chooses the peer address that holds most (places, or bytes if these ran out), and of that
// address the connection that has waited longest. An address with one connection, such as the
// kubelet's, therefore keeps it while another address floods the port. A connection whose request
// is being answered is never closed.
//
// Thread-safety: all functions may be called from any thread. Guest::Evict is called with the
// budget's lock held and must not call the budget; what it returns is called, and destroyed,
// without the lock.
#ifndef WEFT_LIB_HTTP_CONNECTION_BUDGET_H_
#define WEFT_LIB_HTTP_CONNECTION_BUDGET_H_

#include <cstddef>
#include <cstdint>
#include <functional>
#include <list>
#include <map>
#include <mutex>
#include <string>
#include <vector>

namespace weft::http {

class ConnectionBudget {
 public:
  // A connection. It stays where it is from Admit to Leave.
  class Guest {
   public:
    Guest() = default;
    Guest(const Guest&) = delete;
    Guest& operator=(const Guest&) = delete;
    virtual ~Guest() = default;
    // Returns what asks the connection to close itself. Its place and bytes are free already. The
    // result must keep the connection alive, or be empty where it is about to go anyway.
    virtual std::function<void()> Evict() = 0;

   private:
    friend class ConnectionBudget;
    std::list<Guest*>::iterator at_;  // in order of waiting; valid while it holds a place
    std::string peer_;
    std::size_t bytes_ = 0;
    bool has_place_ = false;
    bool is_busy_ = false;
  };

  ConnectionBudget(std::size_t places, std::size_t bytes) : places_(places), bytes_(bytes) {}
  ConnectionBudget(const ConnectionBudget&) = delete;
  ConnectionBudget& operator=(const ConnectionBudget&) = delete;

  // Gives a new connection from `peer` a place and `bytes`, and closes others where none are left.
  // False: nothing can be closed, since all connections are being answered.
  [[nodiscard]] bool Admit(Guest& guest, const std::string& peer, std::size_t bytes);
  // Takes `bytes` more. False: the guest has no place any more, or nothing is left for it.
  [[nodiscard]] bool Reserve(Guest& guest, std::size_t bytes);
  // Gives back all bytes but `kept`, and counts the guest's waiting from now on.
  void Rest(Guest& guest, std::size_t kept);
  // From BeginAnswer to EndAnswer the guest is not closed. False: it has no place any more.
  [[nodiscard]] bool BeginAnswer(Guest& guest);
  void EndAnswer(Guest& guest);
  // Gives everything back; also for a guest without a place.
  void Leave(Guest& guest);

  [[nodiscard]] std::size_t used_places() const;
  [[nodiscard]] std::size_t used_bytes() const;

 private:
  struct Share {
    std::size_t places = 0;
    std::size_t bytes = 0;
  };

  // What is to be called once the lock is free.
  struct Evictions {
    Evictions() = default;
    Evictions(const Evictions&) = delete;
    Evictions& operator=(const Evictions&) = delete;
    ~Evictions() {
      for (const auto& evict : list) evict();
    }
    std::vector<std::function<void()>> list;
  };

  bool MakeRoom(const Guest& guest, std::size_t places, std::size_t bytes, Evictions& evictions);
  void Take(Guest& guest, std::size_t bytes);
  void GiveBack(Guest& guest, std::size_t bytes);
  void Remove(Guest& guest);

  const std::size_t places_;
  const std::size_t bytes_;
  mutable std::mutex mutex_;
  std::list<Guest*> guests_;  // the longest waiting first
  std::map<std::string, Share> shares_;
  std::size_t used_bytes_ = 0;
};

}  // namespace weft::http

#endif  // WEFT_LIB_HTTP_CONNECTION_BUDGET_H_
