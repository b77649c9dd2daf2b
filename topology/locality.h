// Which network device is for whom: devices ranked by how near they hang to a core, a NUMA node or a GPU, then by
// speed, and the ranks of a node spread over equals. And why, in a sentence for each.
#pragma once

#include <string>
#include <vector>

#include "topology/machine.h"

namespace tutti::internal {

// How far apart two things of a machine are. What is unknown is `across`.
enum class Hop { same_switch, same_root_complex, same_numa, same_package, across };
const char* to_string(Hop hop);  // "same PCI switch"

// What a device is chosen for: a place of the machine that has a name.
struct Anchor {
  enum class Kind { core, numa, gpu };
  Kind kind = Kind::core;
  int index = 0;  // into the machine's list

  // "core:3" (by logical index), "numa:0" (by the system's number), "gpu:0" or "gpu:cuda0". Errors: invalid_argument,
  // with all places that there are.
  static Result<Anchor> parse(const std::string& text, const Machine& machine);
};
std::string to_string(const Anchor& anchor, const Machine& machine);

enum class NicUse {
  rdma,  // devices on which verbs make reliable connections
  any,   // devices that a program can use at all
};
// What ranks on this machine would use: RDMA where any device has it.
NicUse use_of_ranks(const Machine& machine);

struct Candidate {
  int nic = 0;
  Hop hop = Hop::across;
  bool is_slow = false;  // so much slower than the machine's fastest that the fastest is better from anywhere
};

// Best first: by hop and speed, and of equals one that has RDMA. Equals in all keep the machine's order; what is not
// usable is not in it.
std::vector<Candidate> rank_nics(const Machine& machine, const Anchor& anchor, NicUse use);

// How many of them, from the first, are equal in all.
size_t equals(const Machine& machine, const std::vector<Candidate>& candidates);

// The one for this rank: the ranks that ask from equal places are spread over equals by their number in the node. -1:
// there is none.
int choose_nic(const Machine& machine, const Anchor& anchor, NicUse use, int local_rank);
// The same for a rank that may run on these processors, of one core or of many.
int choose_nic(const Machine& machine, const CpuList& cpus, NicUse use, int local_rank);

// The devices to stripe long messages over, and how much each takes (they add up to 1, by speed): near ones only, as
// near as the first, and one of each card.
struct Rail {
  int nic = 0;
  double share = 1;
};
std::vector<Rail> rails(const Machine& machine, const Anchor& anchor, NicUse use, int local_rank);

// One line for the choice and one for each device passed over: "mlx5_0 (ib0): taken: same NUMA node, 31.5 GB/s".
std::string explain(const Machine& machine, const Anchor& anchor, NicUse use, int local_rank);

}  // namespace tutti::internal
