#include "topology/rank_map.h"

#include <algorithm>
#include <cstring>
#include <numeric>
#include <string_view>
#include <tuple>
#include <unordered_map>

namespace tutti::internal {
namespace {

void append_number(std::string& bytes, int32_t value) {
  bytes.append(reinterpret_cast<const char*>(&value), sizeof value);
}

void append_text(std::string& bytes, const std::string& text) {
  append_number(bytes, static_cast<int32_t>(text.size()));
  bytes += text;
}

bool take_number(std::string_view& bytes, int32_t& value) {
  if (bytes.size() < sizeof value) return false;
  std::memcpy(&value, bytes.data(), sizeof value);
  bytes.remove_prefix(sizeof value);
  return value >= -1;
}

bool take_text(std::string_view& bytes, std::string& text) {
  int32_t length = 0;
  if (!take_number(bytes, length) || length < 0 || bytes.size() < static_cast<size_t>(length)) return false;
  text = bytes.substr(0, static_cast<size_t>(length));
  bytes.remove_prefix(static_cast<size_t>(length));
  return true;
}

}  // namespace

std::string RankPlace::encode() const {
  std::string bytes;
  for (const int32_t number : {node, package, numa, l3, core}) append_number(bytes, number);
  append_text(bytes, host);
  append_text(bytes, to_string(cpus));
  return bytes;
}

Result<RankPlace> RankPlace::decode(std::string_view bytes) {
  RankPlace place;
  std::string text;
  bool whole = true;
  for (int32_t* number : {&place.node, &place.package, &place.numa, &place.l3, &place.core})
    whole = whole && take_number(bytes, *number);
  whole = whole && take_text(bytes, place.host) && take_text(bytes, text) && bytes.empty();
  const auto read = whole ? parse_cpu_list(text) : std::nullopt;
  if (!read) return Status(Code::mismatch, "what a rank says of its place is not of this version's form");
  place.cpus = *read;
  return place;
}

RankPlace place_on(const Machine& machine, const CpuList& cpus) {
  RankPlace place;
  place.host = machine.host;
  place.cpus = cpus;
  bool first = true;
  for (int i = 0; i < static_cast<int>(machine.cores.size()); ++i) {
    const Core& core = machine.cores[i];
    if (intersection(core.cpus, cpus).empty()) continue;
    const auto merge = [&](int32_t& known, int value) { known = first || known == value ? value : -1; };
    merge(place.package, core.package);
    merge(place.numa, core.numa);
    merge(place.l3, core.l3);
    merge(place.core, i);
    first = false;
  }
  return place;
}

RankMap::RankMap(std::span<const RankPlace> places) {
  const auto count = static_cast<int>(places.size());
  std::unordered_map<int32_t, int> nodes;
  std::vector<int> sizes;
  for (const RankPlace& place : places) {
    const int node = nodes.try_emplace(place.node, static_cast<int>(sizes.size())).first->second;
    if (node == static_cast<int>(sizes.size())) sizes.push_back(0);
    node_of_.push_back(node);
    local_rank_.push_back(sizes[node]++);
    seats_.push_back({place.package, place.numa, place.l3, place.core});
  }
  first_.resize(sizes.size() + 1);
  std::partial_sum(sizes.begin(), sizes.end(), first_.begin() + 1);
  by_node_.resize(places.size());
  for (int rank = 0; rank < count; ++rank) by_node_[first_[node_of_[rank]] + local_rank_[rank]] = rank;
  near_order_ = by_node_;
  std::ranges::stable_sort(near_order_, {}, [&](int rank) {
    const Seat& seat = seats_[rank];
    return std::tuple(node_of_[rank], seat.package, seat.numa, seat.l3, seat.core);
  });
}

std::span<const int> RankMap::ranks_of(int node) const {
  const auto begin = static_cast<size_t>(first_[node]), end = static_cast<size_t>(first_[node + 1]);
  return std::span(by_node_).subspan(begin, end - begin);
}

bool RankMap::share(int one, int other, Level level) const {
  if (node_of(one) != node_of(other)) return false;
  const Seat &a = seats_[one], &b = seats_[other];
  switch (level) {
    case Level::node: return true;
    case Level::package: return a.package >= 0 && a.package == b.package;
    case Level::numa: return a.numa >= 0 && a.numa == b.numa;
    case Level::l3: return a.l3 >= 0 && a.l3 == b.l3;
    case Level::core: return a.core >= 0 && a.core == b.core;
  }
  return false;
}

}  // namespace tutti::internal
