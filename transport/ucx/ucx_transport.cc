#include "transport/ucx/ucx_transport.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <random>
#include <thread>
#include <utility>

#include "src/base/log.h"
#include "transport/sleep.h"
#include "transport/ucx/logging.h"
#include "transport/ucx/tuning.h"

namespace tutti::internal {

using ucx::Header;
using ucx::Kind;
using ucx::library;
using ucx::LogScope;
using ucx::Peer;
using ucx::PeerState;
using ucx::read_body;

namespace {

uint64_t new_nonce() {
  std::random_device device;
  return static_cast<uint64_t>(device()) << 32 | device();
}

ucx::Address own_address(int rank, const ucx::Worker& worker) {
  return {.rank = rank, .nonce = new_nonce(), .worker = worker.address()};
}

}  // namespace

Result<std::unique_ptr<UcxTransport>> UcxTransport::create(const Options& options, Mail& mail) {
  TUTTI_RETURN_IF_ERROR(ucx::load_library());
  const LogScope log;
  auto worker = ucx::Worker::create(options.world_size, options.interfaces, options.settings);
  if (!worker) return worker.status();
  std::unique_ptr<UcxTransport> made(new UcxTransport(options, std::move(*worker), mail));
  TUTTI_RETURN_IF_ERROR(made->listen());
  return made;
}

UcxTransport::UcxTransport(const Options& options, std::unique_ptr<ucx::Worker> worker, Mail& mail)
    : worker_(std::move(worker)),
      connector_(own_address(options.rank, *worker_), options.world_size, mail),
      outbox_(*worker_, connector_, completions_),
      receiver_(*worker_, outbox_.sender(), completions_, cancelled_),
      windows_(*worker_, options.numa_node),
      posting_(static_cast<size_t>(options.world_size)),
      expecting_(kMaxOperands) {}

Status UcxTransport::listen() {
  ucp_am_handler_param_t param{};
  param.field_mask = UCP_AM_HANDLER_PARAM_FIELD_ID | UCP_AM_HANDLER_PARAM_FIELD_FLAGS | UCP_AM_HANDLER_PARAM_FIELD_CB |
                     UCP_AM_HANDLER_PARAM_FIELD_ARG;
  param.id = 0;
  param.flags = UCP_AM_FLAG_WHOLE_MSG;
  param.cb = on_active_message;
  param.arg = this;
  const ucs_status_t status = library().ucp_worker_set_am_recv_handler(worker_->get(), &param);
  if (status == UCS_OK) return {};
  return Status(Code::unsupported, fmt::format("UCX takes no active messages: {}", ucx::text_of(status)));
}

UcxTransport::~UcxTransport() {
  if (worker_->is_inherited()) return;
  const LogScope log;
  say_goodbye();
  // An endpoint that UCX made because a peer wanted it shows by nothing else.
  worker_->close(std::ranges::any_of(connector_.peers(), [](const Peer* peer) { return !peer->was_wired(); }));
}

// What UCX has done with is on its way. That it closes an endpoint in order can take a peer who polls, so that is
// waited for only shortly.
void UcxTransport::say_goodbye() {
  ucx::Sender& sender = outbox_.sender();
  for (Peer* peer : connector_.peers()) {
    const bool knows_us = peer->endpoint != nullptr || peer->received > 0;
    if (peer->is_connected() && knows_us) sender.control(*peer, Kind::goodbye, {}, ucx::GoodbyeBody{peer->sent});
  }
  for (const Deadline deadline = Deadline::after_us(ucx::kLingerUs); sender.is_busy() && !deadline.passed();)
    progress();
  std::vector<void*> closing;
  for (Peer* peer : connector_.peers()) {
    void* const request = peer->is_connected() ? sender.flush_and_close(*peer) : nullptr;
    if (request != nullptr) closing.push_back(request);
    if (!peer->is_closed) sender.close(*peer);
  }
  const auto is_done = [](void* request) { return library().ucp_request_check_status(request) != UCS_INPROGRESS; };
  for (const Deadline deadline = Deadline::after_us(ucx::kCloseUs);
       !std::ranges::all_of(closing, is_done) && !deadline.passed();)
    worker_->progress();
  for (void* request : closing) library().ucp_request_free(request);
}

std::string UcxTransport::address() const { return connector_.own().encode(); }

// What UCX can reach from where shows when it connects.
Status UcxTransport::reachable(std::string_view peer_address) const {
  return ucx::Address::decode(peer_address).status();
}

Status UcxTransport::answers(std::string_view peer_address, Deadline) const { return reachable(peer_address); }

Status UcxTransport::connect(int peer, std::string_view peer_address, Deadline deadline) {
  return connector_.connect(peer, peer_address, deadline);
}

void UcxTransport::deliver(int peer, std::string_view letter) { connector_.deliver(peer, letter); }
void UcxTransport::gets_no_letters(int peer) { connector_.gets_no_letters(peer); }

Result<void*> UcxTransport::allocate(size_t bytes) {
  const LogScope log;
  return windows_.allocate(bytes);
}

Status UcxTransport::release(void* memory) {
  const LogScope log;
  return windows_.release(memory);
}

Status UcxTransport::register_memory(void* memory, size_t bytes) {
  const LogScope log;
  return worker_->add(memory, bytes);
}

Status UcxTransport::unregister_memory(void* memory) {
  const LogScope log;
  return worker_->remove(memory);
}

bool UcxTransport::can_send(int rank) {
  Peer* const peer = connector_.peer(rank);
  if (peer == nullptr) return false;
  if (peer->is_connected()) return outbox_.sender().prepare(*peer);
  if (peer->current() == PeerState::left) connector_.fail(*peer, "it has left the world");
  return false;
}

Post UcxTransport::post_send(const SendRequest& request) {
  const LogScope log;
  size_t count = 0;
  for (const Endpoint& to : request.to) {
    if (!can_send(to.peer)) return Post::failed;
    posting_[count++] = connector_.peer(to.peer);
  }
  return outbox_.send(request, {posting_.data(), count});
}

bool UcxTransport::can_receive(int rank, uint64_t channel, uint64_t match) {
  const Peer* const peer = connector_.peer(rank);
  return peer != nullptr && (peer->has_left_behind(channel, match) || can_send(rank));
}

Post UcxTransport::post_recv(const RecvRequest& request) {
  const LogScope log;
  if (!can_receive(request.from.peer, request.channel, request.from.match)) return Post::failed;
  return receiver_.receive(request, *connector_.peer(request.from.peer));
}

Post UcxTransport::post_reduce(const ReduceRequest& request) {
  const LogScope log;
  size_t count = 0;
  for (const ReduceOperand& operand : request.operands) {
    const bool is_local = operand.from.peer < 0;
    if (!is_local && !can_receive(operand.from.peer, request.channel, operand.from.match)) return Post::failed;
    expecting_[count++] = is_local ? nullptr : connector_.peer(operand.from.peer);
  }
  return receiver_.reduce(request, {expecting_.data(), count});
}

ucs_status_t UcxTransport::on_active_message(void* self, const void* frame, size_t frame_bytes, void* data,
                                             size_t bytes, const ucp_am_recv_param_t* param) {
  Header header;
  if (frame_bytes < sizeof header) return UCS_OK;
  std::memcpy(&header, frame, sizeof header);
  const std::span body(static_cast<const std::byte*>(frame) + sizeof header, frame_bytes - sizeof header);
  const bool is_rendezvous = (param->recv_attr & UCP_AM_RECV_ATTR_FLAG_RNDV) != 0;
  return static_cast<UcxTransport*>(self)->on_frame(header, body, {data, bytes, is_rendezvous});
}

Peer* UcxTransport::sender_of(const Header& header) const {
  if (header.nonce != connector_.own().nonce) return nullptr;
  Peer* const peer = connector_.peer(header.rank);
  return peer != nullptr && peer->current() != PeerState::failed ? peer : nullptr;
}

// What UCX is to be told of the data that came with it.
ucs_status_t UcxTransport::on_frame(const Header& header, std::span<const std::byte> body, const ucx::Piece& piece) {
  Peer* const peer = sender_of(header);
  if (peer == nullptr) return UCS_OK;
  ++peer->received;
  ucs_status_t status = UCS_OK;
  bool makes_sense = true;
  if (header.kind == Kind::data) {
    ucx::DataBody data;
    makes_sense = read_body(body, data);
    if (makes_sense) status = receiver_.on_data(*peer, data, piece, makes_sense);
  } else if (header.kind == Kind::message) {
    makes_sense = !piece.is_rendezvous && piece.bytes <= ucx::kShortBytes;
    if (makes_sense) receiver_.on_message(*peer, header.tag, {static_cast<const std::byte*>(piece.data), piece.bytes});
  } else {
    makes_sense = dispatch(*peer, header, body);
  }
  if (!makes_sense)
    connector_.fail(*peer,
                    fmt::format("it sent a message of kind {} that makes no sense", static_cast<int>(header.kind)));
  return status;
}

bool UcxTransport::dispatch(Peer& peer, const Header& header, std::span<const std::byte> body) {
  switch (header.kind) {
    case Kind::offer: {
      Offer offer;
      if (!read_body(body, offer)) return false;
      receiver_.on_offer(peer, header.tag, offer);
      return true;
    }
    case Kind::grant: {
      ucx::GrantBody grant;
      return read_body(body, grant) && outbox_.on_grant(peer, header.tag, grant);
    }
    case Kind::answer: {
      ucx::AnswerBody answer;
      return read_body(body, answer) && outbox_.on_answer(peer, answer);
    }
    case Kind::withdrawn: {
      ucx::WithdrawnBody withdrawn;
      if (!read_body(body, withdrawn)) return false;
      receiver_.on_withdrawn(peer, withdrawn);
      return true;
    }
    case Kind::goodbye: {
      ucx::GoodbyeBody goodbye;
      if (!read_body(body, goodbye)) return false;
      --peer.received;  // it does not count itself
      peer.last = goodbye.messages;
      return true;
    }
    case Kind::message:
    case Kind::data: break;
  }
  return false;
}

void UcxTransport::tend(Peer& peer) {
  if (peer.current() == PeerState::failed) {
    if (!peer.is_closed) bury(peer);
    return;
  }
  if (peer.last && peer.received >= *peer.last && peer.is_connected())
    peer.state.store(PeerState::left, std::memory_order_relaxed);  // ours to write once it is connected
  if (peer.error != UCS_OK && !peer.is_closed) {
    if (peer.current() != PeerState::left)
      connector_.fail(peer, fmt::format("UCX has lost the connection to it: {}", ucx::text_of(peer.error)));
    bury(peer);
  }
  if (peer.current() == PeerState::left && (receiver_.waits_for(peer) || outbox_.waits_for(peer)))
    connector_.fail(peer, "it has left the world in the middle of an operation");
  if (peer.is_out_of_reach.load(std::memory_order_relaxed) && is_waited_for_in_vain(peer))  // a hint
    connector_.fail(peer, "it is gone from the world in the middle of an operation");
}

bool UcxTransport::is_waited_for_in_vain(Peer& peer) {
  if (!receiver_.waits_for(peer) && !outbox_.waits_for(peer)) return false;
  if (!peer.patience) peer.patience = Deadline::after_us(ucx::kPatienceUs);
  return peer.patience->passed();
}

void UcxTransport::bury(Peer& peer) {
  outbox_.sender().close(peer);
  outbox_.drop(peer);
  receiver_.drop(peer);
}

bool UcxTransport::progress() {
  bool moved = worker_->progress();
  for (Peer* peer : connector_.peers()) tend(*peer);
  moved |= receiver_.advance();
  return moved;
}

size_t UcxTransport::poll(std::span<Completion> completions) {
  const LogScope log;
  const bool moved = progress();
  // pairs with idle: relaxed, a hint. Arming costs a system call: only for who wants to sleep.
  if (!moved && wake_.load(std::memory_order_relaxed) == Wake::wanted && worker_->arm())
    wake_.store(Wake::armed, std::memory_order_relaxed);
  return completions_.take(completions);
}

bool UcxTransport::is_busy(uint64_t channel) const {
  return std::ranges::any_of(connector_.peers(), [&](const Peer* peer) {
    return receiver_.is_writing(*peer, channel) || outbox_.is_reading(*peer, channel);
  });
}

void UcxTransport::cancel(uint64_t channel) {
  const LogScope log;
  cancelled_.insert(channel);
  outbox_.cancel(channel);
  receiver_.cancel(channel, connector_.peers());
  Deadline deadline = Deadline::after_us(ucx::kGiveUpUs);
  while (is_busy(channel) && !deadline.passed()) progress();
  if (is_busy(channel)) give_up_on(channel);
  completions_.drop(channel);
}

// A closed endpoint moves nothing; UCX says so for each piece that was under way.
void UcxTransport::give_up_on(uint64_t channel) {
  for (Peer* peer : connector_.peers()) {
    if (!receiver_.is_writing(*peer, channel) && !outbox_.is_reading(*peer, channel)) continue;
    connector_.fail(*peer, fmt::format("it did not finish within {} s what was under way of an operation that was "
                                       "given up: its connection is closed",
                                       ucx::kGiveUpUs / 1'000'000));
    bury(*peer);
  }
  const Deadline deadline = Deadline::after_us(ucx::kGiveUpUs);
  while (is_busy(channel) && !deadline.passed()) progress();
  if (is_busy(channel)) log_error("UCX still moves memory of a connection that was closed");
}

void UcxTransport::forget(uint64_t channel) {
  cancelled_.erase(channel);
  receiver_.forget(channel, connector_.peers());
}

void UcxTransport::disconnect(int rank) {
  Peer* const peer = connector_.peer(rank);
  if (peer == nullptr) return;
  const LogScope log;
  peer->state.store(PeerState::failed, std::memory_order_relaxed);  // read by the owner, who calls this
  bury(*peer);
}

PeerFailure UcxTransport::take_failure() { return connector_.failures().take(); }

bool UcxTransport::waits_for(int rank) const {
  const Peer* const peer = connector_.peer(rank);
  return peer != nullptr && (receiver_.waits_for(*peer) || outbox_.waits_for(*peer));
}

bool UcxTransport::has_heard(int rank, uint64_t channel, uint64_t first, uint64_t count) const {
  const Peer* const peer = connector_.peer(rank);
  return peer != nullptr && receiver_.has_heard(*peer, channel, first, count);
}

void UcxTransport::idle(Deadline deadline) {
  // pairs with poll: relaxed, a hint. The owner polls once more before something wakes us.
  if (wake_.load(std::memory_order_relaxed) != Wake::armed) {
    wake_.store(Wake::wanted, std::memory_order_relaxed);
    return std::this_thread::yield();
  }
  pollfd entry{worker_->event_fd(), POLLIN, 0};
  sleep_until_readable({&entry, 1}, deadline, ucx::kMaxSleepUs);
  wake_.store(Wake::unwanted, std::memory_order_relaxed);
}

}  // namespace tutti::internal
