// Where ranks are drawn: on cores, and from where their lines go.
#pragma once

#include <map>
#include <span>
#include <string>
#include <vector>

#include "topology/show.h"
#include "topology/svg_box.h"

namespace tutti::internal {

class DrawnRanks {
 public:
  explicit DrawnRanks(std::span<const DrawnRank> ranks);

  bool empty() const { return by_core_.empty(); }
  // Whether a rank is drawn on one of several cores that it may run on.
  bool are_spread() const { return are_spread_; }
  // Whether any has a NIC.
  bool have_lines() const { return have_lines_; }

  // The discs on a core: one for each NIC that its ranks have, as "0-3,8".
  std::vector<Box> discs(int core) const;
  // Of so many ranks that each one's line would make a solid fan: one tag for each NIC that the ranks on these cores
  // have, "ranks 0-15".
  std::vector<Box> tags(std::span<const int> cores) const;

 private:
  using ByNic = std::map<int, std::vector<int>>;

  std::map<int, ByNic> by_core_;
  bool are_bundled_ = false, are_spread_ = false, have_lines_ = false;
};

}  // namespace tutti::internal
