#include "p2p_statistics.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <numeric>

namespace tutti::perf {
namespace {

// How many of the slowest samples perftest leaves out.
constexpr size_t kLeftOut = 2;

double median(std::span<const double> sorted) {
  const size_t middle = sorted.size() / 2;
  return sorted.size() % 2 == 1 ? sorted[middle] : (sorted[middle - 1] + sorted[middle]) / 2;
}

double deviation(std::span<const double> values, double average) {
  double squares = 0;
  for (const double value : values) squares += (value - average) * (value - average);
  return std::sqrt(squares / static_cast<double>(values.size()));
}

// A run of messages, and by how much it beats a given rate.
struct Run {
  double gain, rate;
};

// The run that is furthest ahead of `rate`: of all (j+1 - rate * completed[j]) - (i - rate * posted[i]) the largest,
// found in one pass because the best beginning for an end is the best of all that come before it.
Run furthest_ahead(std::span<const double> posted_us, std::span<const double> completed_us, double rate) {
  Run best = {0, rate};
  size_t first = 0;
  double lowest = 0;
  for (size_t j = 0; j < posted_us.size(); ++j) {
    const double begins = static_cast<double>(j) - rate * posted_us[j];
    if (j == 0 || begins < lowest) {
      lowest = begins;
      first = j;
    }
    const double gain = static_cast<double>(j + 1) - rate * completed_us[j] - lowest;
    // Within the clock's tick no rate can be told.
    const double time_us = std::max(completed_us[j] - posted_us[first], 0.001);
    if (gain > best.gain) best = {gain, static_cast<double>(j + 1 - first) / time_us};
  }
  return best;
}

}  // namespace

Latency latency_of(std::span<const double> started_us) {
  std::vector<double> samples;
  for (size_t i = 1; i < started_us.size(); ++i) samples.push_back((started_us[i] - started_us[i - 1]) / 2);
  std::sort(samples.begin(), samples.end());
  const std::span<const double> kept = std::span(samples).first(samples.size() - kLeftOut);
  const auto count = static_cast<double>(kept.size());
  const auto at = [&](double share) { return samples[static_cast<size_t>(std::ceil(count * share))]; };
  Latency latency = {};
  latency.min = kept.front();
  latency.max = samples[kept.size()];
  latency.typical = median(kept);
  latency.average = std::accumulate(kept.begin(), kept.end(), 0.0) / count;
  latency.deviation = deviation(kept, latency.average);
  latency.p99 = at(0.99);
  latency.p99_9 = at(0.999);
  latency.slowest = samples.back();
  return latency;
}

// perftest looks at every pair of messages. Here each round takes the run that is furthest ahead of the rate so far and
// goes on with that run's own rate (Dinkelbach's method for the largest of a ratio): a few passes, and the same answer.
double best_rate(std::span<const double> posted_us, std::span<const double> completed_us) {
  double rate = 0;
  for (;;) {
    const Run run = furthest_ahead(posted_us, completed_us, rate);
    if (run.rate <= rate) return rate;
    rate = run.rate;
  }
}

double mebibytes_per_second(double messages_per_us, uint64_t bytes) {
  return messages_per_us * static_cast<double>(bytes) * 1e6 / (1 << 20);
}

}  // namespace tutti::perf
