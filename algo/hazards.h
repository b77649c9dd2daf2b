// Which earlier steps of a rank a step must wait for, because both touch the same bytes and at least one writes:
// read after write, write after read, write after write.
// Invariant: of each byte it knows the last step that wrote it and those that have read it since. Older accesses are
// ordered before these already, so that waiting for what is known is enough.
#pragma once

#include <array>
#include <vector>

#include "algo/interval_map.h"
#include "algo/schedule.h"

namespace tutti::internal {

class Hazards {
 public:
  // Notes that `step` reads or writes the slice, and appends to `earlier` the steps that it must wait for (a step may
  // be appended more than once). Steps come in program order; a step that does both reads first.
  void read(const Slice& slice, StepId step, std::vector<StepId>& earlier);
  void write(const Slice& slice, StepId step, std::vector<StepId>& earlier);

  // All accesses of `step`, which stands in `schedule`.
  void access(const Schedule& schedule, const Step& step, StepId id, std::vector<StepId>& earlier);

 private:
  struct Accesses {
    StepId writer = kNoStep;
    std::vector<StepId> readers;  // since then
    bool operator==(const Accesses&) const = default;
  };
  IntervalMap<Accesses>& map_of(const Slice& slice) { return buffers_[static_cast<size_t>(slice.buffer)]; }

  std::array<IntervalMap<Accesses>, 3> buffers_;
};

}  // namespace tutti::internal
