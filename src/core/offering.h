// The transports that a rank could make, and who of the world could make the same one.
#pragma once

#include <algorithm>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "src/base/config.h"
#include "src/core/store/session.h"
#include "src/core/transports.h"
#include "src/core/trial.h"
#include "topology/machine.h"
#include "topology/rank_map.h"
#include "transport/transport.h"

namespace tutti::internal {

// One carrier as the ranks of a world can use it.
class Offering {
 public:
  // Blocks until all ranks have published theirs, or why they have none. Errors: invalid_argument, on all ranks, where
  // one has settings that cannot be met; those of the session's exchange.
  static Result<Offering> publish(Session& session, Carrier carrier, Result<std::unique_ptr<Transport>> transport,
                                  bool is_software, Deadline deadline);
  // What each rank finds out by itself about the way to the others: blocks until all have. The same errors.
  Status compare_routes(Session& session, Deadline deadline);
  // Whether packets really come through between nodes (`node_of`: by rank), tried by two ranks for each two nodes that
  // routes join; once. Blocks until all know; nodes that are not joined cost nothing. The same errors.
  Status try_packets(Session& session, std::vector<int> node_of, Deadline deadline);

  Carrier carrier() const { return carrier_; }
  // Null where this rank cannot use it.
  std::unique_ptr<Transport> take_transport() { return std::move(transport_); }
  const Transport* transport() const { return transport_.get(); }
  const std::vector<std::string>& addresses() const { return addresses_; }
  bool is_software(int rank) const { return at(rank).is_software; }
  // Whether it leads from the one to the other and back; and why not, "" where it does.
  bool connects(int one, int other) const {
    return is_joined(one, other) && (broken_.empty() || !broken_.contains(nodes(one, other)));
  }
  std::string why_not(int one, int other) const;
  // What is not known of the way between two that it connects; "" where nothing is to be said.
  std::string doubt(int one, int other) const;
  // Whether packets come through between all nodes that routes join.
  bool has_broken_ways() const { return !broken_.empty(); }

 private:
  struct Rank {
    bool is_usable = false;
    bool is_software = false;
    std::string why_not;   // where it is not usable
    std::string route_to;  // by rank, '1' where this one finds a route; "": to all
    std::string obstacle;  // where it finds none: to the first of them
  };
  using Nodes = std::pair<int, int>;  // the lower first

  // By what was published.
  bool is_joined(int one, int other) const {
    return at(one).is_usable && at(other).is_usable && finds_route(one, other) && finds_route(other, one);
  }
  Nodes nodes(int one, int other) const {
    return std::minmax(node_of_[static_cast<size_t>(one)], node_of_[static_cast<size_t>(other)]);
  }
  Result<std::vector<Hearings>> tell(Session& session, std::string_view key, const Hearings& own, Deadline deadline);
  void conclude(const Delegates& two, const std::vector<Hearings>& heard, int own);
  const Rank& at(int rank) const { return ranks_[static_cast<size_t>(rank)]; }
  bool finds_route(int from, int to) const {
    return at(from).route_to.empty() || at(from).route_to[static_cast<size_t>(to)] == '1';
  }

  Carrier carrier_{};
  std::unique_ptr<Transport> transport_;
  std::vector<std::string> addresses_;
  std::vector<Rank> ranks_;
  std::vector<int> node_of_;               // by rank; empty: nothing was tried
  std::map<Nodes, std::string> broken_;    // between which no packets come through, and what was seen
  std::map<Nodes, std::string> doubtful_;  // of which that is not known, and why
};

// This rank's memory lies where `own` says. The verbs transport that is made may be emulated by processors.
struct MadeVerbs {
  Result<std::unique_ptr<Transport>> transport;
  bool is_software = false;
};
MadeVerbs make_verbs(const Session& session, const Config& config, const Machine& machine, Mail& mail,
                     const RankPlace& own);
// `avoids_rdma`: packets of RDMA devices do not come through everywhere.
Result<std::unique_ptr<Transport>> make_ucx(const Session& session, const Config& config, const Machine& machine,
                                            Mail& mail, const RankPlace& own, bool avoids_rdma);
Result<std::unique_ptr<Transport>> make_shm(const Session& session, const Machine& machine, const RankPlace& own);

}  // namespace tutti::internal
