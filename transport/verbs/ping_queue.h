// A datagram queue pair of one port, with its buffers: what pings are sent from and come to. It takes what comes from
// the moment when it is made, so that a peer that begins earlier is heard later. One thread at a time.
#pragma once

#include <infiniband/verbs.h>

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <vector>

#include "src/base/status.h"
#include "transport/verbs/port.h"
#include "transport/verbs/queues.h"

namespace tutti::internal::verbs {

struct DestroyHandle {
  void operator()(ibv_ah* handle) const { ibv_destroy_ah(handle); }
};
using AddressHandle = std::unique_ptr<ibv_ah, DestroyHandle>;

class PingQueue {
 public:
  // Errors: unsupported, out_of_resources.
  static Result<std::unique_ptr<PingQueue>> create(const Port& port);
  ~PingQueue();

  const Port& port() const { return port_; }
  uint32_t number() const { return pair_->qp_num; }

  // Memory for a datagram to be filled and sent next; empty: all is on its way, take() makes room.
  std::span<std::byte> room();
  // Sends the first `bytes` of room() to queue pair `pair_number` at `handle`. Errors: unsupported (the device
  // refuses).
  Status send(ibv_ah* handle, uint32_t pair_number, size_t bytes);
  // Calls `on_datagram(bytes)` for each that has come; false: none had.
  bool take(const std::function<void(std::span<const std::byte>)>& on_datagram);

 private:
  explicit PingQueue(const Port& port) : port_(port) {}
  Status start();
  bool post_receive(size_t index);

  const Port& port_;
  ibv_cq* completions_ = nullptr;
  ibv_qp* pair_ = nullptr;
  std::unique_ptr<BufferBlock> receives_, sends_;
  std::vector<size_t> free_sends_;
};

}  // namespace tutti::internal::verbs
