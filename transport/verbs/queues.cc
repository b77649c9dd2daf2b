#include "transport/verbs/queues.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/mman.h>

#include <algorithm>
#include <array>
#include <cerrno>

#include "transport/verbs/tuning.h"
#include "transport/verbs/wire.h"

namespace tutti::internal::verbs {
namespace {

constexpr size_t kBufferAlignment = 64;

Status failed(const char* call, const Port& port, int error) {
  return Status::system(Code::out_of_resources, fmt::format("{} on {}", call, port.name()), error);
}

// How many of them the device took.
size_t post(ibv_srq* queue, std::span<Buffer* const> buffers) {
  std::array<ibv_recv_wr, kReplenishBatch> requests;
  std::array<ibv_sge, kReplenishBatch> places;
  size_t done = 0;
  while (done < buffers.size()) {
    const size_t count = std::min(buffers.size() - done, requests.size());
    for (size_t i = 0; i < count; ++i) {
      Buffer* const buffer = buffers[done + i];
      places[i] = {reinterpret_cast<uint64_t>(buffer->data), static_cast<uint32_t>(kBufferBytes), buffer->key};
      requests[i] = {reinterpret_cast<uint64_t>(buffer), i + 1 < count ? &requests[i + 1] : nullptr, &places[i], 1};
    }
    ibv_recv_wr* refused = nullptr;
    if (ibv_post_srq_recv(queue, requests.data(), &refused) != 0)
      return done + static_cast<size_t>(refused - requests.data());
    done += count;
  }
  return done;
}

}  // namespace

Result<std::unique_ptr<BufferBlock>> BufferBlock::create(const Port& port, size_t count, size_t bytes) {
  std::unique_ptr<BufferBlock> block(new BufferBlock);
  const size_t step = (bytes + kBufferAlignment - 1) / kBufferAlignment * kBufferAlignment;
  block->length_ = step * count;
  void* const memory =
      mmap(nullptr, block->length_, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_POPULATE, -1, 0);
  if (memory == MAP_FAILED) return failed("mmap of message buffers", port, errno);
  block->memory_ = memory;
  block->region_ = ibv_reg_mr(port.domain(), memory, block->length_, int{IBV_ACCESS_LOCAL_WRITE});
  if (block->region_ == nullptr) return failed("ibv_reg_mr of message buffers", port, errno);
  for (size_t i = 0; i < count; ++i)
    block->buffers_.push_back({static_cast<std::byte*>(memory) + i * step, block->region_->lkey});
  return block;
}

BufferBlock::~BufferBlock() {
  if (region_ != nullptr) ibv_dereg_mr(region_);
  if (memory_ != nullptr) munmap(memory_, length_);
}

Result<std::unique_ptr<Queues>> Queues::create(const Port& port, uint32_t peers) {
  const ibv_device_attr& limits = port.device_attributes();
  const auto most_receives = static_cast<uint32_t>(std::max(limits.max_srq_wr, 1));
  const uint32_t credits = std::clamp(kReceiveBuffers / std::max(peers, 1u), kFewestCredits, kMostCredits);
  const uint32_t receives = peers * (credits + kReservedReceives) + kReplenishBatch;
  if (receives > most_receives)
    return Status(Code::out_of_resources, fmt::format("{} holds {} receive buffers, and {} peers need {}", port.name(),
                                                      most_receives, peers, receives));
  std::unique_ptr<Queues> queues(new Queues(port, credits));
  queues->channel_ = ibv_create_comp_channel(port.context());
  if (queues->channel_ == nullptr) return failed("ibv_create_comp_channel", port, errno);
  fcntl(queues->channel_->fd, F_SETFL, fcntl(queues->channel_->fd, F_GETFL) | O_NONBLOCK);
  const int64_t wanted = int64_t{receives} + int64_t{peers} * kSendDepth;
  const auto depth = static_cast<int>(std::min<int64_t>(std::max<int64_t>(wanted, 1), limits.max_cqe));
  queues->completions_ = ibv_create_cq(port.context(), depth, nullptr, queues->channel_, 0);
  if (queues->completions_ == nullptr) return failed("ibv_create_cq", port, errno);
  ibv_srq_init_attr attributes{};
  attributes.attr.max_wr = receives;
  attributes.attr.max_sge = 1;
  queues->receives_ = ibv_create_srq(port.domain(), &attributes);
  if (queues->receives_ == nullptr) return failed("ibv_create_srq", port, errno);
  auto block = BufferBlock::create(port, kSendBuffers, kBufferBytes);
  if (!block) return block.status();
  queues->send_block_ = std::move(*block);
  for (Buffer& buffer : queues->send_block_->buffers()) queues->free_send_buffers_.push_back(&buffer);
  queues->returned_.reserve(kReplenishBatch);
  auto spare = BufferBlock::create(port, kReplenishBatch, kBufferBytes);
  if (!spare) return spare.status();
  for (Buffer& buffer : (*spare)->buffers()) queues->returned_.push_back(&buffer);
  queues->blocks_.push_back(std::move(*spare));
  queues->replenish();
  return queues;
}

Queues::~Queues() {
  if (receives_ != nullptr) ibv_destroy_srq(receives_);
  if (completions_ != nullptr) ibv_destroy_cq(completions_);
  if (channel_ != nullptr) ibv_destroy_comp_channel(channel_);
}

Status Queues::add_peer() {
  auto block = BufferBlock::create(port_, credits_ + kReservedReceives, kBufferBytes);
  if (!block) return block.status();
  std::vector<Buffer*> buffers;
  for (Buffer& buffer : (*block)->buffers()) buffers.push_back(&buffer);
  const size_t posted = post(receives_, buffers);
  const std::scoped_lock lock(blocks_mutex_);
  blocks_.push_back(std::move(*block));  // also where only a part was posted: the device knows it
  if (posted == buffers.size()) return {};
  return Status(Code::out_of_resources, fmt::format("{} takes no more receive buffers", port_.name()));
}

void Queues::give_back(Buffer& buffer) {
  returned_.push_back(&buffer);
  if (returned_.size() >= kReplenishBatch) replenish();
}

void Queues::replenish() {
  const size_t posted = post(receives_, returned_);
  returned_.erase(returned_.begin(), returned_.begin() + static_cast<ptrdiff_t>(posted));
}

Buffer* Queues::take_send_buffer() {
  if (free_send_buffers_.empty()) return nullptr;
  Buffer* const buffer = free_send_buffers_.back();
  free_send_buffers_.pop_back();
  return buffer;
}

void Queues::arm() { ibv_req_notify_cq(completions_, 0); }

void Queues::take_wake_up() {
  ibv_cq* queue = nullptr;
  void* context = nullptr;
  unsigned count = 0;
  while (ibv_get_cq_event(channel_, &queue, &context) == 0) ++count;
  if (count > 0) ibv_ack_cq_events(completions_, count);
}

}  // namespace tutti::internal::verbs
