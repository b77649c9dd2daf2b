#include "p2p_measure.h"

#include <algorithm>
#include <array>
#include <cstdio>

#include "operation.h"
#include "p2p_check.h"
#include "p2p_times.h"

namespace tutti::perf {
namespace {

// Messages checked before a size is measured, and again after: many where it costs nothing, some at any size.
constexpr uint64_t kCheckedBytes = 16 << 20;
constexpr uint64_t kMostChecked = 32;
constexpr uint64_t kFewestChecked = 2;

uint64_t checked_messages(uint64_t bytes) { return std::clamp(kCheckedBytes / bytes, kFewestChecked, kMostChecked); }

// Slots begin on cache lines of their own.
size_t stride_of(uint64_t bytes) { return (bytes + 63) / 64 * 64; }

// The bytes that the slots of one direction take, for the size that takes most. A size may be one that no memory has.
double bytes_of_direction(const P2pOptions& options) {
  double most = 0;
  for (const uint64_t bytes : sizes_of(options.min_bytes, options.max_bytes, options.factor))
    most = std::max(most, (static_cast<double>(bytes) + 64) * static_cast<double>(under_way(options, bytes)));
  return most;
}

// What both ranks know of the directions, added. A sender knows how long all took; a receiver, when each came.
Rates rates_of(Test test, const Side& side, const StreamTimes& times) {
  std::array<double, 2> rates = {receives(test, side.rank) ? times.peak_rate() : 0,
                                 sends(test, side.rank) ? times.average_rate() : 0};
  require(tutti_all_reduce(side.group, rates.data(), rates.data(), rates.size(), TUTTI_FLOAT64, TUTTI_SUM, nullptr),
          "all_reduce");
  // The whole is a run too, which the sender's clock may see shorter: it starts after the receiver's.
  return {std::max(rates[0], rates[1]), rates[1]};
}

void warm_up(const P2pOptions& options, const Side& side, uint64_t iterations) {
  Watcher nobody;
  if (const uint64_t messages = warmup_for(options, iterations); messages > 0)
    exchange(options.kind->test, side, messages, nobody);
}

void measure_messages(const P2pOptions& options, const Side& side, P2pRow* row) {
  const Test test = options.kind->test;
  if (!options.kind->measures_latency) {
    StreamTimes times(row->iterations, side.depth);
    exchange(test, side, row->iterations, times);
    row->rates = rates_of(test, side, times);
  } else if (side.starts()) {
    PingTimes times(row->iterations);
    exchange(test, side, row->iterations, times);
    row->latency = times.latency();
  } else {
    Watcher nobody;
    exchange(test, side, row->iterations, nobody);
  }
}

// Adds what one checker found, here and on the other rank. Of a size only the first fault is said.
void add_found(const Side& side, const Checker& checker, P2pRow* row) {
  if (row->wrong == 0 && !checker.fault().empty())
    std::fprintf(stderr, "tutti-p2p: rank %d: wrong: %s\n", side.rank, checker.fault().c_str());
  std::array<uint64_t, 2> found = {checker.checked(), checker.wrong()};
  require(tutti_all_reduce(side.group, found.data(), found.data(), found.size(), TUTTI_UINT64, TUTTI_SUM, nullptr),
          "all_reduce");
  row->checked += found[0];
  row->wrong += found[1];
}

}  // namespace

P2pMemory::P2pMemory(tutti_group* group, const P2pOptions& options)
    : group_(group),
      options_(options),
      half_(stride_of(static_cast<size_t>(bytes_of_direction(options)))),
      region_(group, options.memory, 2 * half_) {}

double P2pMemory::needed_bytes(const P2pOptions& options) { return 2 * bytes_of_direction(options); }

Side P2pMemory::side(uint64_t bytes) const {
  const size_t depth = under_way(options_, bytes);
  return {group_,         tutti_group_rank(group_), bytes, stride_of(bytes), depth,
          region_.data(), region_.data() + half_,   depth};
}

P2pRow measure_p2p(const P2pOptions& options, const P2pMemory& memory, uint64_t bytes, uint64_t* number) {
  const Side side = memory.side(bytes);
  // Measured messages all go from one slot, as in perftest.
  Side measured = side;
  measured.send_slot_count = 1;
  P2pRow row = {};
  row.bytes = bytes;
  row.iterations = messages_for(options, bytes);
  row.depth = side.depth;
  const auto take_numbers = [&](uint64_t count) { return (*number += count) - count; };
  const auto check = [&] {
    const uint64_t messages = checked_messages(bytes);
    Checker checker(side, take_numbers(messages), options.flip_rank);
    exchange(options.kind->test, side, messages, checker);
    add_found(side, checker, &row);
  };

  check();
  warm_up(options, measured, row.iterations);
  Checker left(measured, take_numbers(1), options.flip_rank);
  const uint64_t slots = receives(options.kind->test, side.rank) ? std::min<uint64_t>(side.depth, row.iterations) : 0;
  left.prepare(slots);
  measure_messages(options, measured, &row);
  left.look_at_all(slots);
  add_found(side, left, &row);
  check();
  return row;
}

}  // namespace tutti::perf
