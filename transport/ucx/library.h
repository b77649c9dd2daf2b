// UCX's functions, found when a transport is first made: whoever does not use UCX neither needs it installed nor has it
// in his process, where it would handle signals.
#pragma once

#include <ucp/api/ucp.h>
#include <ucs/debug/log_def.h>

#include "src/base/status.h"

// Each one that is called.
#define TUTTI_UCX_FUNCTIONS(F)      \
  F(ucp_am_recv_data_nbx)           \
  F(ucp_am_send_nbx)                \
  F(ucp_cleanup)                    \
  F(ucp_config_modify)              \
  F(ucp_config_read)                \
  F(ucp_config_release)             \
  F(ucp_ep_close_nbx)               \
  F(ucp_ep_create)                  \
  F(ucp_get_version)                \
  F(ucp_init_version)               \
  F(ucp_mem_map)                    \
  F(ucp_mem_unmap)                  \
  F(ucp_request_check_status)       \
  F(ucp_request_free)               \
  F(ucp_worker_arm)                 \
  F(ucp_worker_create)              \
  F(ucp_worker_destroy)             \
  F(ucp_worker_flush_nbx)           \
  F(ucp_worker_get_address)         \
  F(ucp_worker_get_efd)             \
  F(ucp_worker_progress)            \
  F(ucp_worker_release_address)     \
  F(ucp_worker_set_am_recv_handler) \
  F(ucs_log_push_handler)           \
  F(ucs_status_string)

namespace tutti::internal::ucx {

struct Library {
#define TUTTI_UCX_FUNCTION(name) decltype(&::name) name = nullptr;  // NOLINT: a name
  TUTTI_UCX_FUNCTIONS(TUTTI_UCX_FUNCTION)
#undef TUTTI_UCX_FUNCTION
};

// Errors: unsupported (UCX is not installed, or lacks a function). Idempotent. Any thread.
Status load_library();
// After load_library.
const Library& library();

// "Connection reset by remote peer".
inline const char* text_of(ucs_status_t status) { return library().ucs_status_string(status); }

}  // namespace tutti::internal::ucx
