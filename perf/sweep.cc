#include "sweep.h"

#include <algorithm>
#include <cstdio>
#include <optional>

#include "measure.h"
#include "report.h"

namespace tutti::perf {
namespace {

// Extra calls per size whose results are checked: several where it costs nothing, two at any size.
constexpr uint64_t kCheckedBytes = 16 << 20;
constexpr uint64_t kMostChecked = 32;
constexpr uint64_t kFewestChecked = 2;

uint64_t checked_calls(uint64_t bytes) {
  return std::clamp(kCheckedBytes / std::max<uint64_t>(bytes, 1), kFewestChecked, kMostChecked);
}

// Counts the wrong elements of one size, over all its checked calls and all ranks.
class Checker {
 public:
  Checker(tutti_group* group, const Options& options, Place place, const Exercise& exercise)
      : group_(group), options_(options), place_(place), exercise_(exercise) {}

  // Looks at what call `number` has left.
  void look(uint64_t number) {
    if (place_.rank == options_.flip_rank) exercise_.flip_bit(number);
    wrong_ += exercise_.count_wrong(number, &first_);
  }

  uint64_t total() {
    if (!first_.empty()) std::fprintf(stderr, "tutti-perf: rank %d: wrong: %s\n", place_.rank, first_.c_str());
    require(tutti_all_reduce(group_, &wrong_, &wrong_, 1, TUTTI_UINT64, TUTTI_SUM, nullptr), "all_reduce");
    return wrong_;
  }

 private:
  tutti_group* group_;
  const Options& options_;
  Place place_;
  const Exercise& exercise_;
  uint64_t wrong_ = 0;
  std::string first_;
};

struct Outcome {
  Timing timing;
  std::optional<uint64_t> wrong;
};

// One size. `number` goes on over the sweep, so that no two calls of it have the same input.
Outcome exercise_once(tutti_group* group, const Options& options, Place place, const Exercise& exercise, uint64_t bytes,
                      uint64_t* number) {
  const bool check = options.check && options.operation->kind != Kind::barrier;
  Checker checker(group, options, place, exercise);
  for (uint64_t i = 0; check && i < checked_calls(bytes); ++i) {
    exercise.fill(++*number);
    (options.async ? run_async : run)(group, exercise.call());
    checker.look(*number);
  }
  exercise.fill(++*number);
  const Timing timing = measure(group, options, exercise.call());
  // In place the measured calls took their own results as input, which says nothing more; else the last is right too.
  if (check && !options.in_place) checker.look(*number);
  return {timing, check ? std::optional<uint64_t>(checker.total()) : std::nullopt};
}

std::string algorithm_for(tutti_group* group, const Options& options, size_t count) {
  const char* name = nullptr;
  require(tutti_explain(group, options.operation->explained_as, count, options.type, &name), "tutti_explain");
  return name;
}

Row row_for(const Options& options, int size, size_t count, const std::string& algorithm, const Outcome& outcome) {
  const bool moves = options.operation->bus_factor != BusFactor::none;
  Row row = {};
  row.bytes = bytes_for(options, size, count);
  row.count = count;
  row.type = moves ? tutti_type_name(options.type) : "-";
  row.op = options.operation->reduces ? tutti_op_name(options.op) : "-";
  if (options.operation->rooted) row.root = options.root;
  row.algorithm = algorithm;
  row.min_us = outcome.timing.min_us;
  row.p50_us = outcome.timing.p50_us;
  row.p99_us = outcome.timing.p99_us;
  row.loop_us = outcome.timing.loop_us;
  row.iterations = outcome.timing.iterations;
  row.wrong = outcome.wrong;
  // A GB/s is 1000 bytes per microsecond. A call can be shorter than the clock's tick.
  if (moves && row.p50_us > 0) row.algbw = static_cast<double>(row.bytes) / row.p50_us / 1000;
  if (row.algbw && size > 1) row.busbw = *row.algbw * bus_factor(*options.operation, size);
  return row;
}

}  // namespace

std::vector<size_t> counts_of(const Options& options, int size) {
  std::vector<size_t> counts;
  for (const uint64_t bytes : sizes_of(options.min_bytes, options.max_bytes, options.factor)) {
    const size_t count = count_for(options, size, bytes);
    if (counts.empty() || count > counts.back()) counts.push_back(count);
  }
  return counts;
}

std::string check_memory(tutti_group* group, const Options& options, Place place) {
  return missing_memory(group, Buffers::needed_bytes(options, place, counts_of(options, place.size).back()));
}

uint64_t sweep(tutti_group* group, const Options& options, Place place) {
  const std::vector<size_t> counts = counts_of(options, place.size);
  const Buffers buffers(group, options, place, counts.back());
  std::optional<Report> report;
  if (place.rank == 0) report.emplace(options, place.size, describe(group));
  if (report) report->begin();
  uint64_t number = 0;
  uint64_t wrong = 0;
  for (size_t i = 0; i < counts.size(); ++i) {
    const uint64_t bytes = bytes_for(options, place.size, counts[i]);
    if (report) report->progress(i, counts.size(), bytes);
    const Exercise exercise(options, place, counts[i], buffers);
    const Outcome outcome = exercise_once(group, options, place, exercise, bytes, &number);
    wrong += outcome.wrong.value_or(0);
    if (report) report->add(row_for(options, place.size, counts[i], algorithm_for(group, options, counts[i]), outcome));
  }
  return wrong;
}

}  // namespace tutti::perf
