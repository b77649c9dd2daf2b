// The conformance suite on the fake network: at its plainest, and with all that it can do to its ranks.
#include "tests/transport/conformance.h"
#include "transport/fake/fake_network.h"

namespace tutti::internal::conformance {
namespace {

class FakeFactory final : public TransportFactory {
 public:
  FakeFactory(std::string name, uint64_t seed, const FakeOptions& options)
      : name_(std::move(name)), seed_(seed), options_(options) {}
  std::string name() const override { return name_; }
  std::vector<std::unique_ptr<Transport>> make(int ranks) override {
    network_ = std::make_unique<FakeNetwork>(ranks, seed_, options_);
    std::vector<std::unique_ptr<Transport>> made;
    for (int rank = 0; rank < ranks; ++rank) made.push_back(network_->make(rank));
    return made;
  }
  bool is_allocation_free() const override { return options_.most_delay_polls == 0; }
  bool kill(int rank) override {
    network_->die(rank);
    return true;
  }

 private:
  std::string name_;
  uint64_t seed_;
  FakeOptions options_;
  std::unique_ptr<FakeNetwork> network_;
};

FakeFactory plain("plain", 1, {});
FakeFactory unbuffered("unbuffered", 2, {.buffered_bytes = 0});
FakeFactory buffered("buffered", 3, {.later_share = 0.1, .buffered_bytes = 100'000});
FakeFactory delayed("delayed", 4, {.most_delay_polls = 20});
FakeFactory reordered("reordered", 5, {.most_delay_polls = 20, .reorder = true, .later_share = 0.3});

INSTANTIATE_TEST_SUITE_P(Fake, Conformance, ::testing::Values(&plain, &unbuffered, &buffered, &delayed, &reordered),
                         factory_name);

}  // namespace
}  // namespace tutti::internal::conformance
