// SPDX-License-Identifier: Apache-2.0
// shop [--orders N] [--seconds N] [--threads N]: runs the shop and prints what it emitted.
#include <charconv>
#include <cstdio>
#include <cstring>

#include "deploy/examples/shop/shop.h"

namespace {

constexpr char kUsage[] =
    "usage: shop [--orders N] [--seconds N] [--threads N]\n"
    "  --orders N   stop after N orders (1000, unless --seconds is given)\n"
    "  --seconds N  stay open for N seconds, one order per customer and millisecond\n"
    "  --threads N  customers, clerks and tills, N of each (2)\n";

bool ParseNumber(const char* text, std::uint64_t limit, std::uint64_t& out) {
  const char* end = text + std::strlen(text);
  const auto [stop, error] = std::from_chars(text, end, out);
  return error == std::errc() && stop == end && out >= 1 && out <= limit;
}

bool ParseOptions(int argc, char** argv, shop::Options& options) {
  for (int i = 1; i < argc; i += 2) {
    std::uint64_t number = 0;
    const bool last = i + 1 == argc;
    if (last || !ParseNumber(argv[i + 1], 1'000'000'000, number)) return false;
    if (std::strcmp(argv[i], "--orders") == 0) {
      options.orders = number;
    } else if (std::strcmp(argv[i], "--seconds") == 0) {
      options.seconds = std::chrono::seconds(number);
    } else if (std::strcmp(argv[i], "--threads") == 0 && number <= 1000) {
      options.threads = static_cast<unsigned>(number);
    } else {
      return false;
    }
  }
  if (options.orders == 0 && options.seconds.count() == 0) options.orders = 1000;
  return true;
}

}  // namespace

int main(int argc, char** argv) {
  shop::Options options;
  if (!ParseOptions(argc, argv, options)) {
    std::fputs(kUsage, stderr);
    return 2;
  }
  shop::Shop shop(options);
  shop.Run();

  const shop::Counts& counts = shop.counts();
  const struct {
    const char* event;
    std::uint64_t count;
  } lines[] = {
      {"customer_arrived", counts.customer_arrived}, {"order_placed", counts.order_placed},
      {"order_packed", counts.order_packed},         {"payment_received", counts.payment_received},
      {"payment_refused", counts.payment_refused},   {"closed", counts.closed}};
  std::uint64_t sum = 0;
  for (const auto& line : lines) {
    std::printf("shop:%s %llu\n", line.event, static_cast<unsigned long long>(line.count));
    sum += line.count;
  }
  std::printf("events %llu\n", static_cast<unsigned long long>(sum));
  return 0;
}
