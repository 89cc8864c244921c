// SPDX-License-Identifier: Apache-2.0
// Source of the large debug file of `./dev bench functions`: templates of the kind that make the
// debug information of C++ services large. The bench compiles it once, and links copies of the
// object in which the name of the namespace has another number.
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <unordered_map>
#include <vector>

namespace bench_copy_000 {

template <int kNumber>
struct Order {
  int id;
  double price;
  std::string name;
  std::vector<Order<kNumber>*> next;
};

template <int kNumber>
struct Book {
  std::map<std::string, Order<kNumber>> by_name;
  std::unordered_map<int, std::shared_ptr<Order<kNumber>>> by_id;
  std::function<double(const Order<kNumber>&)> value;

  double Add(const Order<kNumber>& order) {
    by_name[order.name] = order;
    by_id[order.id] = std::make_shared<Order<kNumber>>(order);
    return value(order);
  }
};

// The bench asks for the types of these.
template <int kNumber>
__attribute__((noinline)) double Place(Book<kNumber>& book, int id, const std::string& name) {
  book.value = [id](const Order<kNumber>& order) { return order.price * id; };
  return book.Add(Order<kNumber>{id, 1.5 * kNumber, name, {}});
}

template <int kNumber>
double PlaceAll(int id, const std::string& name) {
  Book<kNumber> book;
  const double placed = Place<kNumber>(book, id, name);
  if constexpr (kNumber > 1) return placed + PlaceAll<kNumber - 1>(id, name);
  return placed;
}

double Run(int id, const std::string& name) { return PlaceAll<BENCH_TYPES>(id, name); }

}  // namespace bench_copy_000
