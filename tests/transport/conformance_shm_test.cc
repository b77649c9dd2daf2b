// The conformance suite on shared memory, all ranks in this process: with peers that read each other's memory, and with
// peers that may not.
#include "tests/transport/conformance.h"
#include "transport/shm/shm_transport.h"

namespace tutti::internal::conformance {
namespace {

class ShmFactory final : public TransportFactory {
 public:
  ShmFactory(std::string name, bool read_processes) : name_(std::move(name)), read_processes_(read_processes) {}
  std::string name() const override { return name_; }
  std::vector<std::unique_ptr<Transport>> make(int ranks) override {
    std::vector<std::unique_ptr<Transport>> made;
    for (int rank = 0; rank < ranks; ++rank) {
      auto transport = ShmTransport::create({.rank = rank, .world_size = ranks, .read_processes = read_processes_});
      if (!transport) throw std::runtime_error(transport.status().message());
      made.push_back(std::move(*transport));
    }
    return made;
  }

 private:
  std::string name_;
  bool read_processes_;
};

ShmFactory reading("reading", true);
ShmFactory streaming("streaming", false);

INSTANTIATE_TEST_SUITE_P(Shm, Conformance, ::testing::Values(&reading, &streaming), factory_name);

}  // namespace
}  // namespace tutti::internal::conformance
