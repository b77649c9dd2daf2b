// A machine for people and for programs: text, JSON, and a drawing.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <span>
#include <string>

#include "topology/locality.h"
#include "topology/machine.h"

namespace tutti::internal {

// A few lines: how much of what there is.
std::string summary_text(const Machine& machine);
// All of it.
std::string to_text(const Machine& machine);

// Everything that Machine holds; names as in the struct. What is unknown is null.
nlohmann::json to_json(const Machine& machine);

// Counts and names only, for the head of a report.
nlohmann::json summary_json(const Machine& machine);

// One line: its names, place, speeds, and whether it is usable or why not.
std::string device_text(const Machine& machine, const Nic& nic);

// A rank on the drawing.
struct DrawnRank {
  int core = -1;  // index; the first of those that it may use
  int nic = -1;   // the one chosen for it; -1: none
};

// Packages, NUMA nodes, caches, cores and devices as boxes where they hang, ranks as numbered discs, and a line from
// each to its NIC. Black on white, readable without colour.
std::string to_svg(const Machine& machine, std::span<const DrawnRank> ranks);

}  // namespace tutti::internal
