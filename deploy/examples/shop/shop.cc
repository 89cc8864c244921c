// SPDX-License-Identifier: Apache-2.0
#include "deploy/examples/shop/shop.h"

#include <functional>
#include <random>
#include <string>
#include <thread>

#include "deploy/examples/shop/shop_tp.h"

namespace shop {
namespace {

// Runs `work(1)` to `work(count)` in a thread each; the destructor waits for them.
std::vector<std::jthread> Start(unsigned count, const std::function<void(std::uint32_t)>& work) {
  std::vector<std::jthread> threads;
  for (std::uint32_t i = 1; i <= count; ++i) threads.emplace_back(work, i);
  return threads;
}

}  // namespace

void Shop::Run() {
  closing_time_ = std::chrono::steady_clock::now() + options_.seconds;
  {
    auto tills = Start(options_.threads, [this](auto i) { Till(i); });
    {
      auto clerks = Start(options_.threads, [this](auto i) { Clerk(i); });
      Start(options_.threads, [this](auto i) { Customer(i); }).clear();
      to_pack_.Close();
    }
    to_pay_.Close();
  }
  tracepoint(shop, closed);
  ++counts_.closed;
}

bool Shop::TakeOrderNumber(std::uint64_t& number) {
  if (options_.seconds.count() > 0) {
    // A shop that is open for a time has a pace; one with a number of orders works flat out.
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
    if (std::chrono::steady_clock::now() >= closing_time_) return false;
  }
  number = ++next_order_;
  return options_.orders == 0 || number <= options_.orders;
}

void Shop::Customer(std::uint32_t number) {
  const std::string name = "customer " + std::to_string(number);
  tracepoint(shop, customer_arrived, number, name.c_str());
  ++counts_.customer_arrived;

  std::minstd_rand random(number);
  Order order{};
  while (TakeOrderNumber(order.number)) {
    order.customer = number;
    order.items.resize(1 + random() % 5);
    for (auto& item : order.items) item = 100 + random() % 900;
    order.total = static_cast<double>(order.items.size()) * 4.99;
    tracepoint(shop, order_placed, order.number, order.customer, order.items.data(),
               order.items.size(), order.total);
    ++counts_.order_placed;
    to_pack_.Push(order);
  }
}

void Shop::Clerk(std::uint32_t number) {
  while (auto order = to_pack_.Pop()) {
    const float weight = 0.25f * static_cast<float>(order->items.size());
    tracepoint(shop, order_packed, order->number, number, weight);
    ++counts_.order_packed;
    to_pay_.Push(std::move(*order));
  }
}

void Shop::Till(std::uint32_t) {
  while (auto order = to_pay_.Pop()) {
    const int method = static_cast<int>(order->number % 4);
    const std::string reference = "R" + std::to_string(order->number % 10'000'000);
    if (order->number % 10 == 0) {
      tracepoint(shop, payment_refused, order->number, method, order->total, reference.c_str());
      ++counts_.payment_refused;
    } else {
      tracepoint(shop, payment_received, order->number, method, order->total, reference.c_str());
      ++counts_.payment_received;
    }
  }
}

}  // namespace shop
