// A value for every byte of [0, 2^64), kept as runs of equal value: T{} until assigned.
// Invariant: runs_ has a run that begins at 0, so that every byte lies in exactly one run.
#pragma once

#include <cstdint>
#include <iterator>
#include <map>

namespace tutti::internal {

template <class T>
class IntervalMap {
 public:
  // Calls visitor(begin, end, value) for each run within [begin, end), cut to it, in order.
  template <class Visitor>
  void visit(uint64_t begin, uint64_t end, Visitor visitor) const {
    if (begin >= end) return;
    auto run = std::prev(runs_.upper_bound(begin));
    while (begin < end) {
      const auto next = std::next(run);
      const uint64_t stop = next == runs_.end() || next->first > end ? end : next->first;
      visitor(begin, stop, run->second);
      begin = stop;
      run = next;
    }
  }

  // Calls change(value&) for each run within [begin, end), split so that bytes outside keep their value.
  template <class Change>
  void update(uint64_t begin, uint64_t end, Change change) {
    if (begin >= end) return;
    const auto stop = split(end);
    for (auto run = split(begin); run != stop; ++run) change(run->second);
  }

  // Gives [begin, end) one value, and joins it with neighbours of the same value.
  void assign(uint64_t begin, uint64_t end, const T& value) {
    if (begin >= end) return;
    auto stop = split(end);
    const auto start = split(begin);
    start->second = value;
    runs_.erase(std::next(start), stop);
    if (stop != runs_.end() && stop->second == value) runs_.erase(stop);
    if (start != runs_.begin() && std::prev(start)->second == value) runs_.erase(start);
  }

  size_t run_count() const { return runs_.size(); }

 private:
  using Runs = std::map<uint64_t, T>;

  // The run that begins exactly at `at`.
  typename Runs::iterator split(uint64_t at) {
    auto next = runs_.lower_bound(at);
    if (next != runs_.end() && next->first == at) return next;
    return runs_.emplace_hint(next, at, std::prev(next)->second);
  }

  Runs runs_{{0, T{}}};  // where a run begins -> its value, up to the next one
};

}  // namespace tutti::internal
