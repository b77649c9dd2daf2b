#include "measure.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <numeric>
#include <utility>

namespace tutti::perf {
namespace {

using Clock = std::chrono::steady_clock;

// The time that the measured calls of one size may take together.
constexpr double kBudgetUs = 333'000;
// With fewer calls a percentile says nothing; with more it says nothing new.
constexpr uint64_t kFewest = 20;
constexpr uint64_t kMost = 20'000;
constexpr uint64_t kUnseen = 2;
constexpr uint64_t kProbes = 8;

double us_since(Clock::time_point start) {
  return std::chrono::duration<double, std::micro>(Clock::now() - start).count();
}

// Each call's microseconds, of the slowest rank, in order of the calls; and of the whole loop, on this rank.
struct Times {
  std::vector<double> us;
  double whole_us;
};

Times times(tutti_group* group, bool async, const Call& call, uint64_t calls) {
  std::vector<double> us(calls);
  const Clock::time_point begin = Clock::now();
  for (double& time : us) {
    require(tutti_barrier(group, nullptr), "barrier");
    const Clock::time_point start = Clock::now();
    if (async) {
      run_async(group, call);
    } else {
      run(group, call);
    }
    time = us_since(start);
  }
  const double whole_us = us_since(begin);
  require(tutti_all_reduce(group, us.data(), us.data(), us.size(), TUTTI_FLOAT64, TUTTI_MAX, nullptr), "all_reduce");
  return {std::move(us), whole_us};
}

}  // namespace

double percentile(const std::vector<double>& sorted, double share) {
  const auto rank = static_cast<size_t>(std::ceil(share * static_cast<double>(sorted.size())));
  return sorted[std::max<size_t>(rank, 1) - 1];
}

uint64_t iterations_for(double call_us) {
  const double fitting = kBudgetUs / std::max(call_us, 0.01);
  return std::clamp(static_cast<uint64_t>(fitting), kFewest, kMost);
}

Timing measure(tutti_group* group, const Options& options, const Call& call) {
  uint64_t iterations = options.iterations.value_or(0);
  if (!options.iterations) {
    // The first calls make plans and connections. The mean of the next, not their best: where ranks share cores a few
    // calls take most of the time.
    static_cast<void>(times(group, options.async, call, kUnseen));
    const std::vector<double> probes = times(group, options.async, call, kProbes).us;
    iterations = iterations_for(std::accumulate(probes.begin(), probes.end(), 0.0) / kProbes);
  }
  const uint64_t warmup = options.warmup.value_or(std::clamp<uint64_t>(iterations / 10, 2, 100));
  if (warmup > 0) static_cast<void>(times(group, options.async, call, warmup));
  auto [us, whole_us] = times(group, options.async, call, iterations);
  std::sort(us.begin(), us.end());
  return {iterations, us.front(), percentile(us, 0.5), percentile(us, 0.99),
          whole_us / static_cast<double>(iterations)};
}

}  // namespace tutti::perf
