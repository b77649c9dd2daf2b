// The conformance suite: what transport/transport.h promises, as tests that every transport passes.
//
// A test program links the suite and instantiates it with its factories:
//
//   INSTANTIATE_TEST_SUITE_P(fake, Conformance, testing::Values(&plain, &delayed), factory_name);
//
// All ranks live in this process. Most tests poll them all from one thread; where it says so they are threads.
#pragma once

#include <gtest/gtest.h>

#include <memory>
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
  // Ends a rank of the last `make` without a word. False: this transport cannot do that inside one process.
  virtual bool kill(int) { return false; }
};

inline std::string factory_name(const ::testing::TestParamInfo<TransportFactory*>& info) { return info.param->name(); }

class Conformance : public ::testing::TestWithParam<TransportFactory*> {
 public:
  // All pairs connected.
  std::unique_ptr<World> connected(int ranks) {
    auto world = unconnected(ranks);
    world->connect_all();
    return world;
  }
  std::unique_ptr<World> unconnected(int ranks) { return std::make_unique<World>(GetParam()->make(ranks)); }
};

}  // namespace tutti::internal::conformance
