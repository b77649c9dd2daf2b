#include "topology/locality.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <tuple>

#include "topology/rank_map.h"

namespace tutti::internal {
namespace {

// A gigabit port in the rank's own node is no match for a fast one in the next: below this share of the fastest.
constexpr double kSlowShare = 0.25;

Place place_of(const Machine& machine, const Anchor& anchor) {
  switch (anchor.kind) {
    case Anchor::Kind::gpu: return machine.gpus[anchor.index].place;
    case Anchor::Kind::core: {
      const Core& core = machine.cores[anchor.index];
      return {.cpus = core.cpus, .package = core.package, .numa = core.numa, .bridges = {}};
    }
    case Anchor::Kind::numa: break;
  }
  const NumaNode& node = machine.numa_nodes[anchor.index];
  return {.cpus = node.cpus, .package = machine.package_around(node.cpus), .numa = anchor.index, .bridges = {}};
}

Hop hop_between(const Place& one, const Place& other) {
  if (!one.bridges.empty() && !other.bridges.empty() && one.bridges[0] == other.bridges[0]) {
    const bool share_switch = one.bridges.size() > 1 && other.bridges.size() > 1 && one.bridges[1] == other.bridges[1];
    return share_switch ? Hop::same_switch : Hop::same_root_complex;
  }
  if (one.numa >= 0 && one.numa == other.numa) return Hop::same_numa;
  if (one.package >= 0 && one.package == other.package) return Hop::same_package;
  return Hop::across;
}

bool is_usable(const Nic& nic, NicUse use) {
  return nic.why_no_use.empty() && (use == NicUse::any || nic.why_no_rdma.empty());
}

std::string why_not(const Nic& nic) { return nic.why_no_use.empty() ? nic.why_no_rdma : nic.why_no_use; }

std::string speed_of(const Nic& nic) {
  return nic.gbytes() > 0 ? fmt::format("{:.3g} GB/s", nic.gbytes()) : "speed unknown";
}

// Where the kernel says nothing of a device's place (numa_node -1), hwloc hangs it on the whole machine.
const char* doubt(const Place& place) {
  if (place.package < 0 && place.numa < 0) return " (it does not say where it hangs)";
  return place.is_guessed ? " (guessed)" : "";
}

// "core:0 to core:7; numa:0, numa:1; gpu:0 (cuda0)".
std::string places_of(const Machine& machine) {
  std::vector<std::string> cores, nodes, gpus;
  if (!machine.cores.empty()) cores.emplace_back("core:0");
  if (machine.cores.size() > 1) cores.push_back(fmt::format("core:{}", machine.cores.size() - 1));
  for (const NumaNode& node : machine.numa_nodes) nodes.push_back(fmt::format("numa:{}", node.os_index));
  for (const Gpu& gpu : machine.gpus) gpus.push_back(fmt::format("gpu:{} ({})", gpus.size(), gpu.name()));
  const auto listed = [](const std::vector<std::string>& places, const char* none, const char* between) {
    return places.empty() ? std::string(none) : fmt::format("{}", fmt::join(places, between));
  };
  return fmt::format("{}; {}; {}", listed(cores, "no core", " to "), listed(nodes, "no NUMA node", ", "),
                     listed(gpus, "no GPU", ", "));
}

// Candidates of which neither is better.
bool is_equal(const Machine& machine, const Candidate& one, const Candidate& other) {
  const Nic &a = machine.nics[one.nic], &b = machine.nics[other.nic];
  return one.hop == other.hop && one.is_slow == other.is_slow && a.gbytes() == b.gbytes() &&
         a.why_no_rdma.empty() == b.why_no_rdma.empty();
}

std::vector<Candidate> rank_nics(const Machine& machine, const Place& from, NicUse use) {
  double fastest = 0;
  std::vector<Candidate> candidates;
  for (int i = 0; i < static_cast<int>(machine.nics.size()); ++i) {
    if (!is_usable(machine.nics[i], use)) continue;
    candidates.push_back({i, hop_between(from, machine.nics[i].place), false});
    fastest = std::max(fastest, machine.nics[i].gbytes());
  }
  const auto speed = [&](const Candidate& candidate) { return machine.nics[candidate.nic].gbytes(); };
  for (Candidate& candidate : candidates)
    candidate.is_slow = speed(candidate) > 0 && speed(candidate) < kSlowShare * fastest;
  std::ranges::stable_sort(candidates, {}, [&](const Candidate& candidate) {
    return std::tuple(candidate.is_slow, candidate.hop, -speed(candidate),
                      !machine.nics[candidate.nic].why_no_rdma.empty());
  });
  return candidates;
}

const char* why_passed_over(const Machine& machine, const std::vector<Candidate>& candidates, size_t which,
                            size_t equal_count) {
  const Candidate &one = candidates[which], &best = candidates[0];
  if (which < equal_count) return "as good, for other ranks";
  if (one.is_slow) return "passed over, far slower than the fastest";
  if (one.hop != best.hop) return "passed over, further away";
  const bool is_as_fast = machine.nics[one.nic].gbytes() == machine.nics[best.nic].gbytes();
  return is_as_fast ? "passed over, without RDMA" : "passed over, slower";
}

int choose(const Machine& machine, const std::vector<Candidate>& candidates, int local_rank) {
  if (candidates.empty()) return -1;
  return candidates[static_cast<size_t>(local_rank) % equals(machine, candidates)].nic;
}

}  // namespace

const char* to_string(Hop hop) {
  switch (hop) {
    case Hop::same_switch: return "same PCI switch";
    case Hop::same_root_complex: return "same root complex";
    case Hop::same_numa: return "same NUMA node";
    case Hop::same_package: return "same package";
    case Hop::across: break;
  }
  return "across";
}

NicUse use_of_ranks(const Machine& machine) {
  const bool has_rdma = std::ranges::any_of(machine.nics, [](const Nic& nic) { return is_usable(nic, NicUse::rdma); });
  return has_rdma ? NicUse::rdma : NicUse::any;
}

Result<Anchor> Anchor::parse(const std::string& text, const Machine& machine) {
  const size_t colon = text.find(':');
  const std::string kind = text.substr(0, colon), which = colon == std::string::npos ? "" : text.substr(colon + 1);
  int number = -1;
  const auto [end, error] = std::from_chars(which.data(), which.data() + which.size(), number);
  const bool is_number = error == std::errc() && end == which.data() + which.size() && number >= 0;
  if (kind == "core" && is_number && number < static_cast<int>(machine.cores.size())) return Anchor{Kind::core, number};
  if (kind == "numa" && is_number) {
    const auto found = std::ranges::find(machine.numa_nodes, number, &NumaNode::os_index);
    if (found != machine.numa_nodes.end())
      return Anchor{Kind::numa, static_cast<int>(found - machine.numa_nodes.begin())};
  }
  if (kind == "gpu" && !which.empty()) {
    const int gpu = is_number ? number : machine.find_gpu(which);
    if (gpu >= 0 && gpu < static_cast<int>(machine.gpus.size())) return Anchor{Kind::gpu, gpu};
  }
  return Status(Code::invalid_argument,
                fmt::format("'{}' is no place of this machine: it has {}", text, places_of(machine)));
}

std::string to_string(const Anchor& anchor, const Machine& machine) {
  switch (anchor.kind) {
    case Anchor::Kind::core:
      return fmt::format("core:{} (PU {})", anchor.index, to_string(machine.cores[anchor.index].cpus));
    case Anchor::Kind::numa: return fmt::format("numa:{}", machine.numa_nodes[anchor.index].os_index);
    case Anchor::Kind::gpu: break;
  }
  return fmt::format("gpu:{} ({})", anchor.index, machine.gpus[anchor.index].name());
}

std::vector<Candidate> rank_nics(const Machine& machine, const Anchor& anchor, NicUse use) {
  return rank_nics(machine, place_of(machine, anchor), use);
}

size_t equals(const Machine& machine, const std::vector<Candidate>& candidates) {
  size_t count = 0;
  while (count < candidates.size() && is_equal(machine, candidates[count], candidates[0])) ++count;
  return count;
}

int choose_nic(const Machine& machine, const Anchor& anchor, NicUse use, int local_rank) {
  return choose(machine, rank_nics(machine, anchor, use), local_rank);
}

int choose_nic(const Machine& machine, const CpuList& cpus, NicUse use, int local_rank) {
  const RankPlace rank = place_on(machine, cpus);
  const Place from{.cpus = cpus, .package = rank.package, .numa = rank.numa, .bridges = {}};
  return choose(machine, rank_nics(machine, from, use), local_rank);
}

std::vector<Rail> rails(const Machine& machine, const Anchor& anchor, NicUse use, int local_rank) {
  const auto candidates = rank_nics(machine, anchor, use);
  if (candidates.empty()) return {};
  std::vector<Rail> chosen{{choose_nic(machine, anchor, use, local_rank), 1}};
  for (const Candidate& candidate : candidates) {
    if (candidate.hop != candidates[0].hop || candidate.is_slow != candidates[0].is_slow) break;
    const auto& card = machine.nics[candidate.nic].card;
    if (std::ranges::none_of(chosen, [&](const Rail& rail) { return machine.nics[rail.nic].card == card; }))
      chosen.push_back({candidate.nic, 1});
  }
  // Where a speed is unknown they share alike.
  const bool known = std::ranges::all_of(chosen, [&](const Rail& rail) { return machine.nics[rail.nic].gbytes() > 0; });
  double sum = 0;
  for (Rail& rail : chosen) sum += rail.share = known ? machine.nics[rail.nic].gbytes() : 1;
  for (Rail& rail : chosen) rail.share /= sum;
  return chosen;
}

std::string explain(const Machine& machine, const Anchor& anchor, NicUse use, int local_rank) {
  const auto candidates = rank_nics(machine, anchor, use);
  const int chosen = choose(machine, candidates, local_rank);
  const size_t equal = equals(machine, candidates);
  std::string text = fmt::format("{}, local rank {}, {}:\n", to_string(anchor, machine), local_rank,
                                 use == NicUse::rdma ? "for RDMA (what tutti uses between nodes)" : "for any network");
  const auto line = [&](const Candidate& candidate, const std::string& verdict) {
    const Nic& nic = machine.nics[candidate.nic];
    text += fmt::format("  {}: {}: {}{}, {}{}\n", nic.all_names(), verdict, to_string(candidate.hop), doubt(nic.place),
                        speed_of(nic), nic.placed_by.empty() ? "" : ", placed by " + nic.placed_by);
  };
  if (candidates.empty())
    text += machine.nics.empty() ? "  this machine shows no network device\n" : "  none of its devices is usable:\n";
  for (const Candidate& candidate : candidates)
    if (candidate.nic == chosen)
      line(candidate, equal > 1 ? fmt::format("taken, one of {} equals, by local rank", equal) : "taken");
  for (size_t i = 0; i < candidates.size(); ++i)
    if (candidates[i].nic != chosen) line(candidates[i], why_passed_over(machine, candidates, i, equal));
  for (const Nic& nic : machine.nics)
    if (!is_usable(nic, use)) text += fmt::format("  {}: not usable: {}\n", nic.all_names(), why_not(nic));
  return text;
}

}  // namespace tutti::internal
