// The conformance suite: what transport/transport.h promises, as tests that every transport passes.
//
// A test program links the suite and instantiates it with its factories:
//
//   INSTANTIATE_TEST_SUITE_P(fake, Conformance, testing::Values(&plain, &delayed), factory_name);
//
// All ranks are polled from this process, in most tests by one thread; where it says so they are threads. They live in
// it too, unless the factory makes transports that stand for ranks elsewhere (remote_transport.h).
#pragma once

#include <gtest/gtest.h>

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "tests/transport/conformance_world.h"
#include "transport/transport.h"

namespace tutti::internal::conformance {

class TransportFactory {
 public:
  virtual ~TransportFactory() = default;
  // For the test's name.
  virtual std::string name() const = 0;
  // Connected to nobody yet.
  virtual std::vector<std::unique_ptr<Transport>> make(int ranks) = 0;
  // Whether posts and polls allocate nothing in steady state, as they should.
  virtual bool is_allocation_free() const { return true; }
  // Why this transport cannot run here; nothing: it can.
  virtual std::optional<std::string> why_not() const { return std::nullopt; }
  // Where the last `make` has its letters carried; null: they need none.
  virtual PostOffice* post_office() { return nullptr; }
  // How often ranks must be polled until nothing should be on its way any more.
  virtual int settling_polls() const { return kSettlingPolls; }
  // Ends a rank of the last `make` without a word. False: this transport cannot do that inside one process.
  virtual bool kill(int) { return false; }
};

inline std::string factory_name(const ::testing::TestParamInfo<TransportFactory*>& info) { return info.param->name(); }

class Conformance : public ::testing::TestWithParam<TransportFactory*> {
 public:
  void SetUp() override {
    if (const auto why = GetParam()->why_not()) GTEST_SKIP() << *why;
  }
  // All pairs connected.
  std::unique_ptr<World> connected(int ranks) {
    auto world = unconnected(ranks);
    world->connect_all();
    return world;
  }
  std::unique_ptr<World> unconnected(int ranks) {
    auto transports = GetParam()->make(ranks);
    return std::make_unique<World>(std::move(transports), GetParam()->post_office(), GetParam()->settling_polls());
  }
};

}  // namespace tutti::internal::conformance
