#include "transport/verbs/failure.h"

#include <fmt/format.h>

namespace tutti::internal::verbs {
namespace {

std::string_view action(ibv_wc_opcode opcode) {
  switch (opcode) {
    case IBV_WC_SEND: return "sending to";
    case IBV_WC_RDMA_WRITE: return "writing to";
    case IBV_WC_RDMA_READ: return "reading from";
    case IBV_WC_COMP_SWAP:
    case IBV_WC_FETCH_ADD: return "an atomic operation at";
    case IBV_WC_RECV:
    case IBV_WC_RECV_RDMA_WITH_IMM: return "receiving from";
    default: return "work with";
  }
}

std::string_view cause(ibv_wc_status status) {
  switch (status) {
    case IBV_WC_RETRY_EXC_ERR:
      return "the peer is gone, or packets to it are lost: look at the route, the GIDs of both ends, flow control "
             "(PFC); "
             "TUTTI_IB_TIMEOUT and TUTTI_IB_RETRY_COUNT say how long it is tried";
    case IBV_WC_RESP_TIMEOUT_ERR: return "the peer did not answer: it is gone, or packets to it are lost";
    case IBV_WC_RNR_RETRY_EXC_ERR:
      return "the peer takes no messages: it is stopped or very slow; TUTTI_IB_RNR_RETRY=7 waits for ever";
    case IBV_WC_WR_FLUSH_ERR: return "the connection was closed or had failed before: the first error says why";
    case IBV_WC_LOC_PROT_ERR:
      return "memory of this rank that is not, or no longer, registered: freed during an operation, or a bug of tutti, "
             "to "
             "be reported";
    case IBV_WC_REM_ACCESS_ERR:
      return "memory of the peer that is not, or no longer, registered: freed during an operation, or a bug of tutti, "
             "to "
             "be reported";
    case IBV_WC_LOC_ACCESS_ERR:
      return "the peer reached for memory that it may not use: a bug of tutti, to be reported";
    case IBV_WC_LOC_LEN_ERR:
      return "a message longer than its buffer, or than the port carries: a bug of tutti, to be reported";
    case IBV_WC_REM_INV_REQ_ERR: return "the peer's device refused the request: a bug of tutti, to be reported";
    case IBV_WC_LOC_QP_OP_ERR:
      return "the device could not carry out the request: the port is down or the route to the peer is gone; if "
             "neither, "
             "a bug of tutti or of the driver, to be reported";
    case IBV_WC_REM_OP_ERR:
    case IBV_WC_REM_ABORT_ERR: return "the peer's device failed at it: the peer's log and kernel log may say why";
    case IBV_WC_BAD_RESP_ERR:
      return "the peer answered with what does not belong here: two driver versions, or a faulty link";
    case IBV_WC_FATAL_ERR:
    case IBV_WC_GENERAL_ERR: return "the device or its driver failed: the kernel log may say why";
    default: return "not an error that reliable connections should have: the kernel log may say why";
  }
}

}  // namespace

std::string describe_failure(const FailedWork& work, std::string_view port, int peer) {
  const char* const text = ibv_wc_status_str(work.status);
  return fmt::format("{}: {} {} failed: {} (status {}, vendor error {:#x}): {}", port, action(work.opcode),
                     peer < 0 ? "a peer" : fmt::format("rank {}", peer), text ? text : "unknown",
                     static_cast<int>(work.status), work.vendor_error, cause(work.status));
}

}  // namespace tutti::internal::verbs
