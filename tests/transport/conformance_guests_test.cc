// The conformance suite on verbs between two guests of the lab: every other rank lives in the other guest, of which the
// tests see a RemoteTransport. Run by the lab in both: guest 0 runs the tests, guest 1 serves them.
#include <cstdlib>
#include <optional>
#include <string_view>

#include "tests/transport/conformance.h"
#include "tests/transport/remote_servant.h"
#include "tests/transport/remote_transport.h"

namespace tutti::internal::conformance {
namespace {

std::optional<OtherGuest> other_guest;

class GuestsFactory final : public TransportFactory {
 public:
  // `first_is_here`: the ranks here are 0, 2, 4 ..., else 1, 3, 5 ...
  GuestsFactory(std::string name, VerbsWay way, bool first_is_here)
      : name_(std::move(name)), way_(way), first_is_here_(first_is_here) {}
  std::string name() const override { return name_; }
  std::optional<std::string> why_not() const override {
    if (other_guest) return std::nullopt;
    return "there are no two guests: tests/roce/lab --guests 2 runs this";
  }
  std::vector<std::unique_ptr<Transport>> make(int ranks) override {
    office_ = std::make_unique<PostOffice>(ranks);
    std::vector<std::unique_ptr<Transport>> made;
    for (int rank = 0; rank < ranks; ++rank) made.push_back(make_rank(rank, ranks));
    return made;
  }
  bool is_allocation_free() const override { return false; }
  PostOffice* post_office() override { return office_.get(); }
  int settling_polls() const override { return 30; }  // each takes a round trip, as a message does

 private:
  std::unique_ptr<Transport> make_rank(int rank, int ranks) {
    if ((rank % 2 == 0) == first_is_here_) return make_verbs(rank, ranks, way_, office_->of(rank));
    return std::make_unique<RemoteTransport>(*other_guest, rank, ranks, way_, office_->of(rank));
  }

  std::string name_;
  VerbsWay way_;
  bool first_is_here_;
  std::unique_ptr<PostOffice> office_;
};

// What a transport does to memory where a request does not want it shows only at ranks that are here; most tests have
// one role for rank 0, and another for rank 1.
GuestsFactory cached("cached", {}, true);
GuestsFactory from_there("from_there", {}, false);
GuestsFactory uncached("uncached", {.cache = false}, true);
GuestsFactory rdmacm("rdmacm", {.through_rdmacm = true}, true);

INSTANTIATE_TEST_SUITE_P(BetweenGuests, Conformance, ::testing::Values(&cached, &from_there, &uncached, &rdmacm),
                         factory_name);

// Windows of both guests: the devices move all bytes, each once.
TEST(BetweenGuests, DevicesMoveALongMessageBetweenWindows) {
  if (const auto why = cached.why_not()) GTEST_SKIP() << *why;
  constexpr size_t kBytes = size_t{1} << 20;
  for (GuestsFactory* const factory : {&cached, &from_there}) {
    auto transports = factory->make(2);
    const int here = factory == &cached ? 0 : 1;
    const auto& local = static_cast<VerbsTransport&>(*transports[static_cast<size_t>(here)]);
    World world(std::move(transports), factory->post_office());
    world.connect_all();
    send_between_windows(world, kBytes);
    EXPECT_EQ(local.moved().written_in_place, here == 0 ? kBytes : 0);
    EXPECT_EQ(local.moved().received_in_place, here == 1 ? kBytes : 0);
  }
}

std::string_view variable(const char* name) {
  const char* const value = std::getenv(name);
  return value != nullptr ? value : "";
}

}  // namespace
}  // namespace tutti::internal::conformance

int main(int argc, char** argv) {
  using namespace tutti::internal::conformance;
  ::testing::InitGoogleTest(&argc, argv);
  if (variable("LAB_GUESTS") == "2") {
    if (variable("LAB_GUEST") == "1") serve_other_guest();
    const std::string_view addresses = variable("LAB_ADDRESSES");
    other_guest.emplace(std::string(addresses.substr(addresses.find(' ') + 1)));
  }
  return RUN_ALL_TESTS();
}
