#include "src/core/make_groups.h"

#include <fmt/core.h>

#include <algorithm>
#include <array>
#include <vector>

namespace tutti::internal {
namespace {

enum class Kind : int32_t { subgroup, split, dup };
constexpr const char* kKindNames[] = {"subgroup", "split", "dup"};

constexpr size_t kShownRanks = 8;

// What each rank asks for. `first_channel` counts for rank 0 of the parent only, whose numbers the new groups take.
struct Request {
  Kind kind;
  int32_t color;
  int32_t key;
  int32_t list_size;  // subgroup: of the ranks
  uint64_t list_hash;
  std::array<int32_t, kShownRanks> list;  // the first of them, for messages
  uint64_t first_channel;
};

uint64_t hash_of(std::span<const int> ranks) {
  uint64_t hash = 0xcbf29ce484222325u;
  for (int rank : ranks) hash = (hash ^ static_cast<uint32_t>(rank)) * 0x100000001b3u;
  return hash ^ ranks.size();
}

// "[0, 2, 5]": as much of a list as a request holds.
std::string list_text(const Request& request) {
  std::string text;
  for (size_t i = 0; i < std::min<size_t>(kShownRanks, static_cast<size_t>(request.list_size)); ++i)
    text += fmt::format("{}{}", i > 0 ? ", " : "", request.list[i]);
  return fmt::format("[{}{}]", text, request.list_size > static_cast<int32_t>(kShownRanks) ? ", ..." : "");
}

// What every rank asks for; an error where they do not ask for the same kind of thing.
Result<std::vector<Request>> ask(Group& parent, Request own, Locked& lock) {
  // Rank 0 cannot know how many colors there will be; one per rank is the most.
  own.first_channel = parent.rank() == 0 ? parent.context().reserve_channels(static_cast<uint32_t>(parent.size())) : 0;
  std::vector<Request> all(static_cast<size_t>(parent.size()));
  Call call;
  call.signature = {Operation::all_gather, DataType::uint8, ReduceOp::sum, -1, sizeof(Request)};
  call.input = Memory::of(&own);
  call.output = Memory::of(all.data());
  call.alias = kKindNames[static_cast<int>(own.kind)];
  TUTTI_RETURN_IF_ERROR(run(parent, call, lock));
  const auto& ranks = parent.membership().world_ranks;
  for (size_t r = 1; r < all.size(); ++r) {
    if (all[r].kind == all[0].kind && all[r].list_hash == all[0].list_hash) continue;
    const Status status(Code::mismatch,
                        all[r].kind == all[0].kind
                            ? fmt::format("subgroup: rank {} passed {} and rank {} passed {}", ranks[0],
                                          list_text(all[0]), ranks[r], list_text(all[r]))
                            : fmt::format("rank {} called {} and rank {} called {}", ranks[0],
                                          kKindNames[int(all[0].kind)], ranks[r], kKindNames[int(all[r].kind)]));
    parent.fail(status, true);
    return status;
  }
  return all;
}

// The group of `members` (ranks of the parent, in their new order), or null where this rank is none of them.
Group* make(Group& parent, const std::vector<int>& members, uint64_t channel) {
  const auto own = std::ranges::find(members, parent.rank());
  if (own == members.end()) return nullptr;
  Membership membership;
  membership.channel = channel;
  membership.ancestors = parent.membership().ancestors;
  membership.ancestors.push_back(parent.membership().channel);
  membership.rank = static_cast<int>(own - members.begin());
  for (int member : members) membership.world_ranks.push_back(parent.membership().world_ranks[member]);
  return &parent.context().add_group(std::move(membership), parent.timeout_us());
}

}  // namespace

Status run(Group& group, const Call& call, Locked& lock) {
  Work* work = nullptr;
  TUTTI_RETURN_IF_ERROR(group.start(call, work));
  group.context().wait(*work, lock, Deadline::kNever);
  Status status = work->status;
  group.recycle(*work);
  return status;
}

Result<Group*> make_subgroup(Group& parent, std::span<const int> ranks, Locked& lock) {
  std::vector<bool> seen(static_cast<size_t>(parent.size()));
  for (int rank : ranks) {
    if (rank < 0 || rank >= parent.size())
      return Status(Code::invalid_argument,
                    fmt::format("subgroup: {} is not a rank of the group (0 to {})", rank, parent.size() - 1));
    if (seen[rank])
      return Status(Code::invalid_argument, fmt::format("subgroup: rank {} stands in the list twice", rank));
    seen[rank] = true;
  }
  Request own{};
  own.kind = Kind::subgroup;
  own.list_size = static_cast<int32_t>(ranks.size());
  own.list_hash = hash_of(ranks);
  std::copy_n(ranks.begin(), std::min(ranks.size(), kShownRanks), own.list.begin());
  auto all = ask(parent, own, lock);
  if (!all) return all.status();
  return make(parent, {ranks.begin(), ranks.end()}, all->front().first_channel);
}

Result<Group*> make_split(Group& parent, int color, int key, Locked& lock) {
  if (color < TUTTI_NO_COLOR)
    return Status(Code::invalid_argument,
                  fmt::format("split: color {} is neither TUTTI_NO_COLOR (-1) nor 0 or more", color));
  auto all = ask(parent, {Kind::split, color, key, 0, 0, {}, 0}, lock);
  if (!all) return all.status();
  if (color == TUTTI_NO_COLOR) return static_cast<Group*>(nullptr);
  std::vector<int> colors, members;
  for (int r = 0; r < parent.size(); ++r) {
    colors.push_back((*all)[r].color);
    if ((*all)[r].color == color) members.push_back(r);
  }
  std::ranges::stable_sort(members, {}, [&](int r) { return (*all)[r].key; });
  std::ranges::sort(colors);
  colors.erase(std::unique(colors.begin(), colors.end()), colors.end());
  const auto index = std::ranges::find(colors, color) - colors.begin() - (colors[0] == TUTTI_NO_COLOR ? 1 : 0);
  return make(parent, members, all->front().first_channel + static_cast<uint64_t>(index));
}

Result<Group*> make_dup(Group& parent, Locked& lock) {
  auto all = ask(parent, {Kind::dup, 0, 0, 0, 0, {}, 0}, lock);
  if (!all) return all.status();
  std::vector<int> members;
  for (int r = 0; r < parent.size(); ++r) members.push_back(r);
  return make(parent, members, all->front().first_channel);
}

}  // namespace tutti::internal
