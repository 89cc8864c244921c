// SPDX-License-Identifier: Apache-2.0
// A small shop as a multi-threaded example: customers place orders, clerks pack them, the till
// takes the money. Each role has its own threads. Each step is a tracepoint (shop_tp.h), and is
// counted.
#ifndef WEFT_DEPLOY_EXAMPLES_SHOP_SHOP_H_
#define WEFT_DEPLOY_EXAMPLES_SHOP_SHOP_H_

#include <atomic>
#include <chrono>
#include <cstdint>
#include <vector>

#include "deploy/examples/shop/queue.h"

namespace shop {

struct Options {
  std::uint64_t orders = 0;         // how many in all; 0: as many as fit into the time
  std::chrono::seconds seconds{0};  // how long; 0: until all orders are placed
  unsigned threads = 2;             // of each role
};

struct Counts {
  std::atomic<std::uint64_t> customer_arrived{0};
  std::atomic<std::uint64_t> order_placed{0};
  std::atomic<std::uint64_t> order_packed{0};
  std::atomic<std::uint64_t> payment_received{0};
  std::atomic<std::uint64_t> payment_refused{0};
  std::atomic<std::uint64_t> closed{0};
};

class Shop {
 public:
  explicit Shop(Options options) : options_(options) {}

  // Opens, serves, closes. Every order placed is packed and paid (or refused) when it returns.
  void Run();

  const Counts& counts() const { return counts_; }

 private:
  struct Order {
    std::uint64_t number;
    std::uint32_t customer;
    std::vector<std::uint32_t> items;
    double total;
  };

  void Customer(std::uint32_t number);
  void Clerk(std::uint32_t number);
  void Till(std::uint32_t number);
  bool TakeOrderNumber(std::uint64_t& number);

  const Options options_;
  std::chrono::steady_clock::time_point closing_time_;
  std::atomic<std::uint64_t> next_order_{0};
  Queue<Order> to_pack_;
  Queue<Order> to_pay_;
  Counts counts_;
};

}  // namespace shop

#endif  // WEFT_DEPLOY_EXAMPLES_SHOP_SHOP_H_
