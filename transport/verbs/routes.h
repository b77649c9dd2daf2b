// From the number of a queue pair, as completions carry it, to its peer: a table of one probe as a rule. Owner's
// thread.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace tutti::internal::verbs {

class Peer;
class QueuePair;

struct Route {
  uint32_t number = 0;
  Peer* peer = nullptr;  // null: a free place
  QueuePair* pair = nullptr;
};

class Routes {
 public:
  Routes() : places_(kFewest) {}

  // The number is not there yet.
  void add(const Route& route) {
    if (2 * ++count_ > places_.size()) {
      std::vector<Route> old(2 * places_.size());
      old.swap(places_);
      for (const Route& known : old)
        if (known.peer != nullptr) place_of(known.number) = known;
    }
    place_of(route.number) = route;
  }

  // Null: unknown.
  const Route* find(uint32_t number) {
    const Route& place = place_of(number);
    return place.peer != nullptr ? &place : nullptr;
  }

 private:
  static constexpr size_t kFewest = 64;

  // Devices number queue pairs in a row, or nearly.
  Route& place_of(uint32_t number) {
    const size_t mask = places_.size() - 1;
    size_t i = number & mask;
    while (places_[i].peer != nullptr && places_[i].number != number) i = (i + 1) & mask;
    return places_[i];
  }

  std::vector<Route> places_;  // a power of two of them, half at most taken
  size_t count_ = 0;
};

}  // namespace tutti::internal::verbs
