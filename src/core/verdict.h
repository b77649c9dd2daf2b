// Whom a group's timeout is to be put down to. A rank knows whom it waits for, but not whom that one waits for. So at
// its deadline each rank tells the others whom it waits for, and a little later each believes the one that names a rank
// which has nothing to say itself.
#pragma once

#include <algorithm>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "src/base/clock.h"

namespace tutti::internal {

class Verdict {
 public:
  struct Report {
    int rank = -1;
    int awaited = -1;  // the first rank that it waits for; -1: it cannot tell
    std::string text;
  };

  void add(Report report) {
    if (!due_) due_ = Deadline::after_us(kHearingUs);
    if (!has_report_of(report.rank))
      reports_.insert(std::ranges::upper_bound(reports_, report.rank, {}, &Report::rank), std::move(report));
  }
  bool has_any() const { return !reports_.empty(); }
  bool has_report_of(int rank) const { return std::ranges::count(reports_, rank, &Report::rank) > 0; }
  // Whether all have had the time to say what they know.
  bool is_due() const { return due_ && due_->passed(); }

  // There is one. `own`: the rank whose report is as good as any, where everybody waits for somebody who reports.
  const Report& believed(int own) const {
    const auto names_silent = [&](const Report& report) {
      return report.awaited >= 0 && !has_report_of(report.awaited);
    };
    auto found = std::ranges::find_if(reports_, names_silent);
    if (found == reports_.end()) found = std::ranges::find(reports_, own, &Report::rank);
    return found == reports_.end() ? reports_.front() : *found;
  }

 private:
  static constexpr int64_t kHearingUs = 250'000;

  std::vector<Report> reports_;  // by rank
  std::optional<Deadline> due_;
};

}  // namespace tutti::internal
