// A network inside one process, for tests: seeded delays, reordering, refused posts, and ranks that die when told to.
//
// Time is counted in polls, not in seconds: when all ranks are polled from one thread in a fixed order, everything that
// happens follows from the seed. Ranks may be threads as well; one lock guards all.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>

#include "transport/transport.h"

namespace tutti::internal {

namespace fake {
class Network;
}

struct FakeOptions {
  // Messages and completions arrive after so many polls of their owner at most, each after its own random number; the
  // news of a death too. 0: as soon as can be.
  uint32_t most_delay_polls = 0;
  // Messages of one pair of ranks may overtake each other (with delays).
  bool reorder = false;
  // The share of posts that are answered with Post::later.
  double later_share = 0;
  // A send up to this length is complete at once; a longer one when all its readers have it.
  size_t buffered_bytes = 40;
};

// The network lives as long as it or one of its transports does.
class FakeNetwork {
 public:
  FakeNetwork(int ranks, uint64_t seed, const FakeOptions& options = {});
  ~FakeNetwork();

  // The transport of a rank; made once for each. Peers can connect to it from then on.
  std::unique_ptr<Transport> make(int rank);

  // The rank is gone without a word: its own transport does nothing any more, and leaves the rank's memory alone when
  // this returns. Of its messages under way, those that were complete may arrive or be lost.
  void die(int rank);
  // The same, at the rank's `post`-th post from now (1: the next), which is refused.
  void die_at_post(int rank, uint64_t post);
  bool is_dead(int rank) const;

  // How many posts the rank has tried.
  uint64_t post_count(int rank) const;

 private:
  std::shared_ptr<fake::Network> network_;
};

}  // namespace tutti::internal
