// The table from queue pairs to peers: everything that was put in is found, also when it has grown and numbers collide.
#include <gtest/gtest.h>

#include <array>

#include "transport/verbs/routes.h"

namespace tutti::internal::verbs {
namespace {

TEST(Routes, AllAreFoundAndOthersAreNot) {
  std::array<int, 1000> peers;  // only their addresses are used
  Routes routes;
  const auto number_of = [](size_t i) { return static_cast<uint32_t>(i % 2 == 0 ? i : i * 64); };
  const auto peer_of = [&](size_t i) { return reinterpret_cast<Peer*>(&peers[i]); };
  EXPECT_EQ(routes.find(17), nullptr);
  for (size_t i = 0; i < peers.size(); ++i) {
    if (i % 2 == 1 && i * 64 < peers.size()) continue;  // the number of an even one
    routes.add({number_of(i), peer_of(i), nullptr});
    for (size_t known = 0; known <= i; ++known) {
      if (known % 2 == 1 && known * 64 < peers.size()) continue;
      const Route* const route = routes.find(number_of(known));
      ASSERT_NE(route, nullptr) << known << " of " << i;
      ASSERT_EQ(route->peer, peer_of(known));
    }
  }
  EXPECT_EQ(routes.find(1'000'001), nullptr);
}

}  // namespace
}  // namespace tutti::internal::verbs
