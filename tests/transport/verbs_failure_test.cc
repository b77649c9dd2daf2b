// What completions' and devices' errors are called in messages.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "transport/verbs/async_event.h"
#include "transport/verbs/failure.h"

namespace tutti::internal::verbs {
namespace {

using ::testing::AllOf;
using ::testing::EndsWith;
using ::testing::HasSubstr;
using ::testing::StartsWith;
using Lost = AsyncEvent::Lost;

std::string sentence(ibv_wc_status status) {
  return describe_failure({status, 0x81, IBV_WC_RDMA_WRITE}, "mlx5_0:1", 3);
}

TEST(VerbsFailure, IsASentenceWithPortPeerStatusAndCause) {
  EXPECT_THAT(
      sentence(IBV_WC_RETRY_EXC_ERR),
      AllOf(StartsWith("mlx5_0:1: writing to rank 3 failed: transport retry counter exceeded (status 12, vendor "
                       "error 0x81): the peer is gone, or packets to it are lost"),
            HasSubstr("TUTTI_IB_TIMEOUT")));
}

TEST(VerbsFailure, EachStatusHasItsCause) {
  EXPECT_THAT(sentence(IBV_WC_RNR_RETRY_EXC_ERR), HasSubstr("takes no messages"));
  EXPECT_THAT(sentence(IBV_WC_LOC_PROT_ERR), HasSubstr("memory of this rank that is not, or no longer, registered"));
  EXPECT_THAT(sentence(IBV_WC_REM_ACCESS_ERR), HasSubstr("memory of the peer that is not, or no longer, registered"));
  EXPECT_THAT(sentence(IBV_WC_WR_FLUSH_ERR), HasSubstr("the first error says why"));
  EXPECT_THAT(sentence(IBV_WC_LOC_LEN_ERR), HasSubstr("longer than its buffer"));
  for (int status = IBV_WC_LOC_LEN_ERR; status <= IBV_WC_TM_RNDV_INCOMPLETE; ++status)
    EXPECT_THAT(sentence(static_cast<ibv_wc_status>(status)), AllOf(StartsWith("mlx5_0:1: "), HasSubstr("): ")));
}

TEST(VerbsFailure, StandsWhatNoVersionKnows) {
  EXPECT_THAT(describe_failure({static_cast<ibv_wc_status>(31), 0, static_cast<ibv_wc_opcode>(77)}, "rxe0:1", -1),
              AllOf(StartsWith("rxe0:1: work with a peer failed: "), HasSubstr("status 31")));
}

TEST(VerbsFailure, SaysWhatWasDone) {
  EXPECT_THAT(describe_failure({IBV_WC_GENERAL_ERR, 0, IBV_WC_SEND}, "a:1", 0), HasSubstr("sending to rank 0"));
  EXPECT_THAT(describe_failure({IBV_WC_GENERAL_ERR, 0, IBV_WC_RECV}, "a:1", 0), HasSubstr("receiving from rank 0"));
}

TEST(VerbsEvent, SaysWhatIsLost) {
  const auto event = [](ibv_event_type type) { return describe_event(type, "mlx5_0", 1, 42); };
  EXPECT_EQ(event(IBV_EVENT_PORT_ERR).text, "port 1 of mlx5_0 went down");
  EXPECT_EQ(event(IBV_EVENT_PORT_ERR).lost, Lost::port);
  EXPECT_EQ(event(IBV_EVENT_PORT_ACTIVE).lost, Lost::nothing);
  EXPECT_EQ(event(IBV_EVENT_DEVICE_FATAL).text, "device mlx5_0 failed, or was removed");
  EXPECT_EQ(event(IBV_EVENT_DEVICE_FATAL).lost, Lost::device);
  EXPECT_EQ(event(IBV_EVENT_SRQ_ERR).lost, Lost::device);
  EXPECT_EQ(event(IBV_EVENT_QP_FATAL).text, "queue pair 42 of mlx5_0 failed");
  EXPECT_EQ(event(IBV_EVENT_QP_FATAL).lost, Lost::queue_pair);
  EXPECT_EQ(event(IBV_EVENT_QP_FATAL).queue_pair, 42u);
  EXPECT_EQ(event(IBV_EVENT_QP_LAST_WQE_REACHED).lost, Lost::nothing);
  for (int type = IBV_EVENT_CQ_ERR; type <= IBV_EVENT_WQ_FATAL + 1; ++type)
    EXPECT_THAT(event(static_cast<ibv_event_type>(type)).text, HasSubstr("mlx5_0")) << type;
}

}  // namespace
}  // namespace tutti::internal::verbs
