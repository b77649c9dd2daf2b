// The conformance suite on UCX, all ranks in this process: over TCP, over shared memory, and over TCP with every piece
// of a long message fetched by its receiver; and over RDMA devices, as those of the lab (tests/roce).
#include <optional>

#include "tests/transport/conformance.h"
#include "tests/transport/ucx_devices.h"
#include "transport/ucx/ucx_transport.h"

namespace tutti::internal::conformance {
namespace {

class UcxFactory final : public TransportFactory {
 public:
  // `needs`: the folder of devices without which it cannot run; null: none.
  UcxFactory(std::string name, const char* needs, ucx::Settings settings)
      : name_(std::move(name)), needs_(needs), settings_(std::move(settings)) {}
  std::string name() const override { return name_; }
  std::optional<std::string> why_not() const override {
    return needs_ == nullptr ? std::nullopt : why_no_device(needs_);
  }
  std::vector<std::unique_ptr<Transport>> make(int ranks) override {
    office_ = std::make_unique<PostOffice>(ranks);
    std::vector<std::unique_ptr<Transport>> made;
    for (int rank = 0; rank < ranks; ++rank) {
      auto transport =
          UcxTransport::create({.rank = rank, .world_size = ranks, .settings = settings_}, office_->of(rank));
      if (!transport) throw std::runtime_error(transport.status().message());
      made.push_back(std::move(*transport));
    }
    return made;
  }
  PostOffice* post_office() override { return office_.get(); }

 private:
  std::string name_;
  const char* needs_;
  ucx::Settings settings_;
  std::unique_ptr<PostOffice> office_;
};

UcxFactory tcp("tcp", kInterfaces, {{"TLS", "tcp"}});
UcxFactory tcp_rendezvous("tcp_rendezvous", kInterfaces, {{"TLS", "tcp"}, {"RNDV_THRESH", "0"}});
UcxFactory memory("memory", nullptr, {{"TLS", "sm"}});
UcxFactory rdma("rdma", kRdmaDevices, {{"TLS", "rc_verbs,ud_verbs"}});

INSTANTIATE_TEST_SUITE_P(Ucx, Conformance, ::testing::Values(&tcp, &tcp_rendezvous, &memory, &rdma), factory_name);

}  // namespace
}  // namespace tutti::internal::conformance
