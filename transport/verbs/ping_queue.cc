#include "transport/verbs/ping_queue.h"

#include <fmt/format.h>

#include <array>
#include <cerrno>

#include "transport/verbs/tuning.h"
#include "transport/verbs/way.h"

namespace tutti::internal::verbs {
namespace {

// Of both ends; without the highest bit, which only the privileged may set.
constexpr uint32_t kQueueKey = 0x54757474;
// The device puts a route header in front of what it receives, or leaves its place empty.
constexpr size_t kRouteHeader = sizeof(ibv_grh);
// As in QueuePair: receives have even numbers.
constexpr uint64_t number_of(size_t buffer, bool is_send) { return buffer << 1 | (is_send ? 1 : 0); }

Status failed(const char* what, const Port& port, int error) {
  return Status::system(Code::unsupported, fmt::format("{} on {}", what, port.name()), error);
}

}  // namespace

Result<std::unique_ptr<PingQueue>> PingQueue::create(const Port& port) {
  std::unique_ptr<PingQueue> made(new PingQueue(port));
  const size_t bytes = mtu_bytes(static_cast<uint8_t>(port.attributes().active_mtu));
  auto receives = BufferBlock::create(port, kPingReceives, kRouteHeader + bytes);
  if (!receives) return receives.status();
  made->receives_ = std::move(*receives);
  auto sends = BufferBlock::create(port, kPingSends, bytes);
  if (!sends) return sends.status();
  made->sends_ = std::move(*sends);
  for (size_t i = 0; i < kPingSends; ++i) made->free_sends_.push_back(i);
  TUTTI_RETURN_IF_ERROR(made->start());
  return made;
}

Status PingQueue::start() {
  completions_ = ibv_create_cq(port_.context(), kPingReceives + kPingSends, nullptr, nullptr, 0);
  if (completions_ == nullptr) return failed("ibv_create_cq for pings", port_, errno);
  ibv_qp_init_attr wanted{};
  wanted.send_cq = wanted.recv_cq = completions_;
  wanted.cap = {.max_send_wr = kPingSends,
                .max_recv_wr = kPingReceives,
                .max_send_sge = 1,
                .max_recv_sge = 1,
                .max_inline_data = 0};
  wanted.qp_type = IBV_QPT_UD;
  wanted.sq_sig_all = 1;
  pair_ = ibv_create_qp(port_.domain(), &wanted);
  if (pair_ == nullptr) return failed("no datagram queue pair (ibv_create_qp)", port_, errno);
  ibv_qp_attr state{};
  state.qp_state = IBV_QPS_INIT;
  state.port_num = static_cast<uint8_t>(port_.number());
  state.qkey = kQueueKey;
  int error = ibv_modify_qp(pair_, &state, IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_QKEY);
  for (size_t i = 0; error == 0 && i < kPingReceives; ++i)
    if (!post_receive(i)) error = ENOMEM;
  state.qp_state = IBV_QPS_RTR;
  if (error == 0) error = ibv_modify_qp(pair_, &state, IBV_QP_STATE);
  state.qp_state = IBV_QPS_RTS;
  if (error == 0) error = ibv_modify_qp(pair_, &state, IBV_QP_STATE | IBV_QP_SQ_PSN);
  return error == 0 ? Status() : failed("a datagram queue pair does not start", port_, error);
}

PingQueue::~PingQueue() {
  if (pair_ != nullptr) ibv_destroy_qp(pair_);
  if (completions_ != nullptr) ibv_destroy_cq(completions_);
}

bool PingQueue::post_receive(size_t index) {
  const Buffer& buffer = receives_->buffers()[index];
  const size_t bytes = kRouteHeader + mtu_bytes(static_cast<uint8_t>(port_.attributes().active_mtu));
  ibv_sge place{reinterpret_cast<uint64_t>(buffer.data), static_cast<uint32_t>(bytes), buffer.key};
  ibv_recv_wr request{number_of(index, false), nullptr, &place, 1};
  ibv_recv_wr* refused = nullptr;
  return ibv_post_recv(pair_, &request, &refused) == 0;
}

std::span<std::byte> PingQueue::room() {
  if (free_sends_.empty()) return {};
  return {sends_->buffers()[free_sends_.back()].data, mtu_bytes(static_cast<uint8_t>(port_.attributes().active_mtu))};
}

Status PingQueue::send(ibv_ah* handle, uint32_t pair_number, size_t bytes) {
  const size_t index = free_sends_.back();
  const Buffer& buffer = sends_->buffers()[index];
  ibv_sge place{reinterpret_cast<uint64_t>(buffer.data), static_cast<uint32_t>(bytes), buffer.key};
  ibv_send_wr request{};
  request.wr_id = number_of(index, true);
  request.sg_list = &place;
  request.num_sge = 1;
  request.opcode = IBV_WR_SEND;
  request.wr.ud.ah = handle;
  request.wr.ud.remote_qpn = pair_number;
  request.wr.ud.remote_qkey = kQueueKey;
  ibv_send_wr* refused = nullptr;
  if (const int error = ibv_post_send(pair_, &request, &refused); error != 0)
    return failed("a ping cannot be sent", port_, error);
  free_sends_.pop_back();
  return {};
}

bool PingQueue::take(const std::function<void(std::span<const std::byte>)>& on_datagram) {
  std::array<ibv_wc, kPollBatch> works;
  const int count = ibv_poll_cq(completions_, kPollBatch, works.data());
  bool has_come = false;
  for (int i = 0; i < count; ++i) {
    const ibv_wc& work = works[static_cast<size_t>(i)];
    const auto index = static_cast<size_t>(work.wr_id >> 1);
    if (work.wr_id == number_of(index, true)) {
      free_sends_.push_back(index);  // what became of it, the other end tells
      continue;
    }
    if (work.status != IBV_WC_SUCCESS) continue;  // the queue pair has broken: nothing more comes
    has_come = true;
    if (work.byte_len >= kRouteHeader)
      on_datagram({receives_->buffers()[index].data + kRouteHeader, work.byte_len - kRouteHeader});
    post_receive(index);
  }
  return has_come;
}

}  // namespace tutti::internal::verbs
