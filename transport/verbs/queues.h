// What all queue pairs of a port share: the completion queue, the receive buffers (a shared receive queue), and buffers
// for messages that cannot be inlined. Owner's thread, but where it says otherwise.
#pragma once

#include <infiniband/verbs.h>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <span>
#include <vector>

#include "src/base/status.h"
#include "transport/verbs/port.h"

namespace tutti::internal::verbs {

// A piece of registered memory; a receive buffer is known to the device by its address here.
struct Buffer {
  std::byte* data = nullptr;
  uint32_t key = 0;
};

// Registered memory cut into buffers of equal size.
class BufferBlock {
 public:
  // Errors: out_of_resources.
  static Result<std::unique_ptr<BufferBlock>> create(const Port& port, size_t count, size_t bytes);
  ~BufferBlock();
  std::span<Buffer> buffers() { return buffers_; }

 private:
  BufferBlock() = default;
  void* memory_ = nullptr;
  size_t length_ = 0;
  ibv_mr* region_ = nullptr;
  std::vector<Buffer> buffers_;
};

class Queues {
 public:
  // `peers`: how many there can be. Errors: out_of_resources.
  static Result<std::unique_ptr<Queues>> create(const Port& port, uint32_t peers);
  ~Queues();

  const Port& port() const { return port_; }
  ibv_cq* completions() const { return completions_; }
  ibv_srq* receives() const { return receives_; }
  // How many messages a peer may send before it hears that buffers are free again.
  uint32_t credits() const { return credits_; }

  // Receive buffers for one more peer. Any thread.
  Status add_peer();
  // The buffer of a finished receive may be used again: the device gets it with the next batch.
  void give_back(Buffer& buffer);

  size_t free_send_buffers() const { return free_send_buffers_.size(); }
  // A buffer for a message to be sent; null: none is free.
  Buffer* take_send_buffer();
  void give_send_buffer(Buffer& buffer) { free_send_buffers_.push_back(&buffer); }

  // For sleeping: the next completion makes wake_fd readable, until disarm.
  void arm();
  int wake_fd() const { return channel_->fd; }
  void take_wake_up();  // any thread

 private:
  Queues(const Port& port, uint32_t credits) : port_(port), credits_(credits) {}
  void replenish();

  const Port& port_;
  const uint32_t credits_;
  ibv_comp_channel* channel_ = nullptr;
  ibv_cq* completions_ = nullptr;
  ibv_srq* receives_ = nullptr;
  std::mutex blocks_mutex_;
  std::vector<std::unique_ptr<BufferBlock>> blocks_;
  std::unique_ptr<BufferBlock> send_block_;
  std::vector<Buffer*> free_send_buffers_;
  std::vector<Buffer*> returned_;
};

}  // namespace tutti::internal::verbs
