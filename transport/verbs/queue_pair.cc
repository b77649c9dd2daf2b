#include "transport/verbs/queue_pair.h"

#include <fmt/format.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

namespace tutti::internal::verbs {
namespace {

// No receiver-not-ready is expected, since there are credits; a device that meets one waits for the shortest time.
constexpr uint8_t kMinRnrTimer = 1;

// Of an inline message: its header, and what it carries.
constexpr int kMostSources = 2;

bool costs_credit(Kind kind) { return kind != Kind::credit && kind != Kind::goodbye; }

Status failed(const char* what, const Queues& queues, int error) {
  return Status::system(Code::unsupported, fmt::format("{} on {}", what, queues.port().name()), error);
}

ibv_send_wr request_of(ibv_sge& place, ibv_wr_opcode opcode) {
  ibv_send_wr request{};
  request.sg_list = &place;
  request.num_sge = 1;
  request.opcode = opcode;
  return request;
}

}  // namespace

Result<std::unique_ptr<QueuePair>> QueuePair::create(Queues& queues, int port_index) {
  const Port& port = queues.port();
  std::unique_ptr<QueuePair> made(new QueuePair(queues, port_index));
  ibv_qp_init_attr attributes{};
  attributes.send_cq = attributes.recv_cq = queues.completions();
  attributes.srq = queues.receives();
  attributes.qp_type = IBV_QPT_RC;
  attributes.cap.max_send_wr = kSendDepth;
  attributes.cap.max_send_sge = kMostSources;
  attributes.cap.max_inline_data = kInlineBytes;
  made->pair_ = ibv_create_qp(port.domain(), &attributes);
  if (made->pair_ == nullptr) {
    attributes.cap.max_inline_data = 0;  // fewer bytes inline is slower, no more
    made->pair_ = ibv_create_qp(port.domain(), &attributes);
  }
  if (made->pair_ == nullptr)
    return Status::system(Code::out_of_resources, fmt::format("ibv_create_qp on {}", port.name()), errno);
  made->inline_bytes_ = std::min<uint32_t>(attributes.cap.max_inline_data, kInlineBytes);
  if (const int error = made->initialise(0); error != 0)
    return failed("a queue pair cannot be initialised", queues, error);
  return made;
}

int QueuePair::initialise(uint16_t pkey_index) {
  ibv_qp_attr init{};
  init.qp_state = IBV_QPS_INIT;
  init.pkey_index = pkey_index;
  init.port_num = static_cast<uint8_t>(queues_.port().number());
  init.qp_access_flags = IBV_ACCESS_REMOTE_WRITE;
  return ibv_modify_qp(pair_, &init, IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS);
}

QueuePair::~QueuePair() {
  if (pair_ != nullptr) ibv_destroy_qp(pair_);
}

Status QueuePair::connect(const Remote& remote, uint32_t peer_credits, const Settings& settings) {
  TUTTI_RETURN_IF_ERROR(queues_.add_peer());
  if (remote.pkey_index != 0)
    if (const int error = initialise(remote.pkey_index); error != 0)
      return failed("a queue pair cannot be put into a partition", queues_, error);
  ibv_qp_attr receive{};
  receive.qp_state = IBV_QPS_RTR;
  receive.path_mtu = remote.mtu;
  receive.dest_qp_num = remote.pair_number;
  receive.rq_psn = remote.its_packet_number;
  receive.max_dest_rd_atomic = 0;
  receive.min_rnr_timer = kMinRnrTimer;
  receive.ah_attr = remote.way;
  constexpr int kReceiveMask = IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN |
                               IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER;
  if (const int error = ibv_modify_qp(pair_, &receive, kReceiveMask); error != 0)
    return failed("a queue pair cannot be made ready to receive", queues_, error);
  ibv_qp_attr send{};
  send.qp_state = IBV_QPS_RTS;
  send.timeout = static_cast<uint8_t>(settings.timeout);
  send.retry_cnt = static_cast<uint8_t>(settings.retry_count);
  send.rnr_retry = static_cast<uint8_t>(settings.rnr_retry);
  send.sq_psn = remote.own_packet_number;
  send.max_rd_atomic = 0;
  constexpr int kSendMask =
      IBV_QP_STATE | IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY | IBV_QP_SQ_PSN | IBV_QP_MAX_QP_RD_ATOMIC;
  if (const int error = ibv_modify_qp(pair_, &send, kSendMask); error != 0)
    return failed("a queue pair cannot be made ready to send", queues_, error);
  credits_ = peer_credits;
  return {};
}

void QueuePair::close() {
  ibv_qp_attr error{};
  error.qp_state = IBV_QPS_ERR;
  ibv_modify_qp(pair_, &error, IBV_QP_STATE);  // a queue pair that refuses even this is closed already
}

bool QueuePair::post(ibv_send_wr& request, const Sent& sent, bool signalled) {
  request.wr_id = posted_ << 1 | 1;  // receives have even numbers
  if (signalled || ++unsignalled_ == kSignalEvery) request.send_flags |= IBV_SEND_SIGNALED;
  if ((request.send_flags & IBV_SEND_SIGNALED) != 0) unsignalled_ = 0;
  ibv_send_wr* refused = nullptr;
  if (const int error = ibv_post_send(pair_, &request, &refused); error != 0) {
    refusal_ = error;
    return false;
  }
  sent_[posted_ % kSendDepth] = sent;
  ++posted_;
  return true;
}

bool QueuePair::can_send(size_t bytes, size_t buffers) const {
  if (!has_room() || !has_credit()) return false;
  return sizeof(Header) + bytes <= inline_bytes_ || queues_.free_send_buffers() >= buffers;
}

bool QueuePair::send(Header header, std::span<const std::byte> body) {
  const bool costs = costs_credit(header.kind);
  if (costs ? !has_room() || !has_credit() : posted_ - retired_ == kSendDepth) return false;
  header.credits = static_cast<uint16_t>(owed_);
  header.bytes = static_cast<uint32_t>(body.size());
  const size_t bytes = sizeof header + body.size();
  const bool is_inline = bytes <= inline_bytes_;
  Buffer* const buffer = is_inline ? nullptr : queues_.take_send_buffer();
  if (buffer == nullptr && !is_inline) return false;
  std::array<ibv_sge, kMostSources> places{{{reinterpret_cast<uint64_t>(&header), sizeof header, 0},
                                            {reinterpret_cast<uint64_t>(body.data()), header.bytes, 0}}};
  ibv_send_wr request = request_of(places.front(), IBV_WR_SEND);
  if (is_inline) {
    request.num_sge = body.empty() ? 1 : kMostSources;
    request.send_flags = IBV_SEND_INLINE;
  } else {
    std::memcpy(buffer->data, &header, sizeof header);
    std::memcpy(buffer->data + sizeof header, body.data(), body.size());
    places.front() = {reinterpret_cast<uint64_t>(buffer->data), static_cast<uint32_t>(bytes), buffer->key};
  }
  // Buffers are few: each comes back as soon as it can. A goodbye is waited for.
  if (!post(request, {.buffer = buffer}, buffer != nullptr || header.kind == Kind::goodbye)) {
    if (buffer != nullptr) queues_.give_send_buffer(*buffer);
    return false;
  }
  owed_ = 0;
  if (costs) --credits_;
  return true;
}

bool QueuePair::write(const Piece& piece) {
  if (!has_room() || (piece.is_last && !has_credit())) return false;
  ibv_sge place{reinterpret_cast<uint64_t>(piece.data), piece.bytes, piece.key};
  ibv_send_wr request = request_of(place, piece.is_last ? IBV_WR_RDMA_WRITE_WITH_IMM : IBV_WR_RDMA_WRITE);
  request.wr.rdma.remote_addr = piece.remote_address;
  request.wr.rdma.rkey = piece.remote_key;
  if (piece.is_last) request.imm_data = piece.immediate;
  if (!post(request, piece.sent, piece.is_last || piece.sent.chunk >= 0)) return false;
  if (piece.is_last) --credits_;
  return true;
}

bool QueuePair::check() {
  if (retired_ < checked_ || !has_room()) return true;
  ibv_send_wr request{};
  request.opcode = IBV_WR_RDMA_WRITE;
  if (!post(request, {}, true)) return false;
  checked_ = posted_;
  return true;
}

void QueuePair::received(const Header& header) {
  credits_ += header.credits;
  if (costs_credit(header.kind)) ++owed_;
}

}  // namespace tutti::internal::verbs
