// A machine for people and for programs: text, JSON, and a drawing.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <span>
#include <string>
#include <vector>

#include "topology/locality.h"
#include "topology/machine.h"

namespace tutti::internal {

// A few lines: how much of what there is.
std::string summary_text(const Machine& machine);
// All of it.
std::string to_text(const Machine& machine);

// Everything that Machine holds; names as in the struct. What is unknown is null; what is no UTF-8, as the name of a
// file may be, is replaced.
nlohmann::json to_json(const Machine& machine);

// Counts and names only, for the head of a report.
nlohmann::json summary_json(const Machine& machine);

// "package 1", "NUMA node 0: 16 GiB DRAM".
std::string title_of(const Package& package);
std::string title_of(const NumaNode& node);

// One line: its names, place, speeds, and whether it is usable or why not.
std::string device_text(const Machine& machine, const Nic& nic);

// A rank on the drawing.
struct DrawnRank {
  std::vector<int> cores;  // indices; those that it may use
  int nic = -1;            // the one chosen for it; -1: none
};

// Packages, NUMA nodes, caches, cores and devices as boxes where they hang, ranks on cores, and a line from each to its
// NIC, or, of many ranks, from each part of the machine. Black on white, readable without colour, with a legend.
std::string to_svg(const Machine& machine, std::span<const DrawnRank> ranks);

}  // namespace tutti::internal
