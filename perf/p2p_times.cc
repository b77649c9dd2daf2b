#include "p2p_times.h"

#include <algorithm>
#include <chrono>

namespace tutti::perf {
namespace {

using Clock = std::chrono::steady_clock;

const Clock::time_point kOrigin = Clock::now();

// From a time near enough that a double keeps the nanoseconds.
double now_us() { return std::chrono::duration<double, std::micro>(Clock::now() - kOrigin).count(); }

}  // namespace

void PingTimes::before_send(uint64_t message) { times_us_[message] = now_us(); }

void StreamTimes::ready() { ready_us_ = now_us(); }
void StreamTimes::started() { started_us_ = now_us(); }
void StreamTimes::after_recv(uint64_t message) { completed_us_[message] = now_us(); }
void StreamTimes::ended() { ended_us_ = now_us(); }

double StreamTimes::average_rate() const {
  return static_cast<double>(completed_us_.size()) / std::max(ended_us_ - started_us_, 0.001);
}

double StreamTimes::peak_rate() const {
  std::vector<double> posted_us(completed_us_.size(), ready_us_);
  for (size_t i = depth_; i < posted_us.size(); ++i) posted_us[i] = completed_us_[i - depth_];
  return best_rate(posted_us, completed_us_);
}

}  // namespace tutti::perf
