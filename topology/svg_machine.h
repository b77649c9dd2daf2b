// A machine as boxes within boxes, with ranks on its cores, and the legend.
#pragma once

#include "topology/svg_ranks.h"

namespace tutti::internal {

Box machine_box(const Machine& machine, const DrawnRanks& ranks);

// Of what the drawing shows.
Box legend_box(const Machine& machine, const DrawnRanks& ranks);

}  // namespace tutti::internal
