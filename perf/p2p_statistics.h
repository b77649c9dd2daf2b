// The figures of perftest, from times: what ib_write_lat and ib_write_bw would say of the same times.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace tutti::perf {

// Fewer messages leave no sample once the two slowest are taken away; perftest allows no fewer either.
constexpr uint64_t kFewestMessages = 5;

// Microseconds one way: half of a round trip.
struct Latency {
  double min, max, typical, average, deviation, p99, p99_9;
  double slowest;  // of all samples; the others are as perftest has them
};

// `started_us`: when each ping left, kFewestMessages or more, growing. A sample is half of the time from one ping to
// the next, so there is one sample less than pings. As in perftest the two slowest are left out: `max` is the faster
// of those, average and deviation (of the samples, not of a population's estimate) are over the others. typical is
// their median. p99 and p99_9 are the samples at the place ceil(share * others), counted from 0.
Latency latency_of(std::span<const double> started_us);

// The largest rate, in messages per microsecond, of any run of messages from i to j: j-i+1 over the time from the
// posting of i to the completion of j. As many of both as there are messages, one or more, each growing.
double best_rate(std::span<const double> posted_us, std::span<const double> completed_us);

// perftest's MB/sec are 2^20 bytes per second.
double mebibytes_per_second(double messages_per_us, uint64_t bytes);

}  // namespace tutti::perf
