// librdmacm's ids with an owner, and its events. Any thread, one at a time for each id.
//
// An id carries a number (CmName) that says whose it is. Events are copied and given back at once, since an id is not
// destroyed before all of its events are given back: so an event may come for what is destroyed meanwhile, and names it
// by number, never by pointer.
#pragma once

#include <rdma/rdma_cma.h>
#include <sys/socket.h>

#include <cstdint>
#include <memory>
#include <string>

#include "src/base/fork.h"
#include "src/base/gid.h"
#include "src/base/status.h"

namespace tutti::internal::verbs {

// In a child made by fork the parent's is left alone.
struct DestroyCmId {
  uint32_t epoch = process_epoch();
  void operator()(rdma_cm_id* id) const {
    if (epoch == process_epoch()) rdma_destroy_id(id);
  }
};
using CmId = std::unique_ptr<rdma_cm_id, DestroyCmId>;

struct CmName {
  static constexpr uint32_t kMostGenerations = 0xffffff;

  int32_t rank = -1;        // whom it connects to; -1: a listener
  uint32_t generation = 0;  // of the attempt
  uint8_t index = 0;        // of the path, or of the listener's port

  void* pack() const;
  static CmName unpack(void* context);
};

struct CmEvent {
  rdma_cm_event_type kind{};
  int status = 0;
  CmName name;   // of a request: the listener's
  CmId request;  // of RDMA_CM_EVENT_CONNECT_REQUEST: the id to answer it with
  std::string private_data;
};

class CmChannel {
 public:
  // Errors: unsupported (no rdma_cm here).
  static Result<std::unique_ptr<CmChannel>> open();
  ~CmChannel();  // after all of its ids

  int fd() const { return channel_->fd; }  // readable when there is an event
  Result<CmId> make_id(const CmName& name) const;
  // False: there is none now.
  bool take(CmEvent& event) const;

 private:
  explicit CmChannel(rdma_event_channel* channel) : channel_(channel) {}

  rdma_event_channel* const channel_;
  const uint32_t epoch_ = process_epoch();
};

// An IP address, as the system takes it.
sockaddr_storage socket_address(const GidBytes& ip, uint16_t port);

// Of the device and port that the id is bound to.
bool is_bound_to(const rdma_cm_id& id, const std::string& device, int port);

}  // namespace tutti::internal::verbs
