// The conformance suite on verbs, all ranks in this process, over whatever RDMA device there is: a soft-RoCE device of
// the lab, or a real one. With memory that is registered on use, and with memory that goes through staging; connected
// by letters, and by rdma_cm. Between two machines: conformance_guests_test.cc.
#include <filesystem>
#include <optional>

#include "tests/transport/conformance.h"
#include "tests/transport/make_verbs.h"

namespace tutti::internal::conformance {
namespace {

class VerbsFactory final : public TransportFactory {
 public:
  VerbsFactory(std::string name, VerbsWay way) : name_(std::move(name)), way_(way) {}
  std::string name() const override { return name_; }
  std::optional<std::string> why_not() const override {
    std::error_code error;
    if (std::filesystem::directory_iterator("/sys/class/infiniband", error) != std::filesystem::directory_iterator())
      return std::nullopt;
    return "there is no RDMA device here: ./dev roce runs this in a guest with soft-RoCE";
  }
  std::vector<std::unique_ptr<Transport>> make(int ranks) override {
    office_ = std::make_unique<PostOffice>(ranks);
    std::vector<std::unique_ptr<Transport>> made;
    for (int rank = 0; rank < ranks; ++rank) made.push_back(make_verbs(rank, ranks, way_, office_->of(rank)));
    return made;
  }
  PostOffice* post_office() override { return office_.get(); }

 private:
  std::string name_;
  VerbsWay way_;
  std::unique_ptr<PostOffice> office_;
};

VerbsFactory cached("cached", {});
VerbsFactory uncached("uncached", {.cache = false});
VerbsFactory rdmacm("rdmacm", {.through_rdmacm = true});

// Both ends in windows: the device moves each byte once, from where it lies to where it is wanted.
TEST(VerbsCopies, NoneOfALongMessageBetweenWindows) {
  if (const auto why = cached.why_not()) GTEST_SKIP() << *why;
  constexpr size_t kBytes = size_t{1} << 20;
  auto transports = cached.make(2);
  const auto& sender = static_cast<VerbsTransport&>(*transports[0]);
  const auto& receiver = static_cast<VerbsTransport&>(*transports[1]);
  World world(std::move(transports), cached.post_office());
  world.connect_all();
  send_between_windows(world, kBytes);
  EXPECT_EQ(sender.moved().written_in_place, kBytes);
  EXPECT_EQ(sender.moved().written_copied, 0u);
  EXPECT_EQ(receiver.moved().received_in_place, kBytes);
  EXPECT_EQ(receiver.moved().received_staged, 0u);
}

// Rank 1 asks for a connection and is gone before it has read the answer.
TEST(VerbsConnecting, WhoAsksAndIsGoneBeforeTheAnswerHasFailed) {
  if (const auto why = cached.why_not()) GTEST_SKIP() << *why;
  auto transports = cached.make(2);
  const Status asked = transports[1]->connect(0, transports[0]->address(), Deadline::after_us(50'000));
  EXPECT_EQ(asked.code(), Code::timeout) << asked.message();
  for (const PostOffice::Letter& letter : cached.post_office()->take())
    if (letter.to == 0) transports[0]->deliver(letter.from, letter.text);
  EXPECT_EQ(cached.post_office()->take().size(), 1u) << "the answer";
  transports[1].reset();
  transports[0]->gets_no_letters(1);
  int word = 0;
  EXPECT_EQ(transports[0]->post_recv({.channel = 1, .from = {.peer = 1}, .data = &word, .bytes = sizeof word}),
            Post::failed);
  const PeerFailure failure = transports[0]->take_failure();
  EXPECT_EQ(failure.peer, 1);
  EXPECT_EQ(failure.reason, "it was gone before its connection was complete");
}

INSTANTIATE_TEST_SUITE_P(Verbs, Conformance, ::testing::Values(&cached, &uncached, &rdmacm), factory_name);

}  // namespace
}  // namespace tutti::internal::conformance
