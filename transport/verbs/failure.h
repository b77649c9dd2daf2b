// What a work completion's error means, in a sentence. Any thread.
#pragma once

#include <infiniband/verbs.h>

#include <cstdint>
#include <string>
#include <string_view>

namespace tutti::internal::verbs {

struct FailedWork {
  ibv_wc_status status = IBV_WC_GENERAL_ERR;
  uint32_t vendor_error = 0;
  // Of the request as it was posted: in a completion with an error the device leaves it undefined.
  ibv_wc_opcode opcode = IBV_WC_SEND;
};

// "mlx5_0:1: writing to rank 3 failed: transport retry counter exceeded (status 12, vendor error 0x81): the peer is
// ...". `peer`: below 0, unknown.
std::string describe_failure(const FailedWork& work, std::string_view port, int peer);

// It was only swept away: its connection had failed, or was closed, before.
constexpr bool is_flushed(ibv_wc_status status) { return status == IBV_WC_WR_FLUSH_ERR; }

}  // namespace tutti::internal::verbs
