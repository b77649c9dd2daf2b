// The clocks of tutti-p2p: what a rank notes while measured messages go.
#pragma once

#include <cstdint>
#include <vector>

#include "p2p_exchange.h"
#include "p2p_statistics.h"

namespace tutti::perf {

// When each ping left.
class PingTimes : public Watcher {
 public:
  explicit PingTimes(uint64_t messages) : times_us_(messages) {}
  void before_send(uint64_t message) override;
  Latency latency() const { return latency_of(times_us_); }

 private:
  std::vector<double> times_us_;
};

// From the first post to the last word of the receiver, and when each message had come.
class StreamTimes : public Watcher {
 public:
  StreamTimes(uint64_t messages, size_t depth) : depth_(depth), completed_us_(messages) {}
  void ready() override;
  void started() override;
  void after_recv(uint64_t message) override;
  void ended() override;

  // Messages per microsecond: the sender's, of all messages; and the receiver's, of its best run. The receive of a
  // message was posted when the receiver was ready, or else when its slot became free. (Not when it started: it may
  // leave the barrier late, and find what was sent meanwhile.)
  double average_rate() const;
  double peak_rate() const;

 private:
  size_t depth_;
  double ready_us_ = 0, started_us_ = 0, ended_us_ = 0;
  std::vector<double> completed_us_;
};

}  // namespace tutti::perf
