#include "transport/ucx/sender.h"

#include <fmt/format.h>

#include <cstring>

#include "transport/ucx/logging.h"

namespace tutti::internal::ucx {
namespace {

constexpr unsigned kActiveMessage = 0;

ucp_request_param_t eager_or_whatever(bool eager) {
  ucp_request_param_t param{};
  param.op_attr_mask = UCP_OP_ATTR_FIELD_CALLBACK | UCP_OP_ATTR_FIELD_USER_DATA | UCP_OP_ATTR_FIELD_FLAGS;
  param.flags = eager ? UCP_AM_SEND_FLAG_EAGER : 0;
  return param;
}

}  // namespace

Sender::Sender(Worker& worker, Connector& connector, SentListener& listener)
    : worker_(worker), connector_(connector), listener_(listener) {
  slots_.fill(kUsualRequests);
}

ucs_status_t Sender::create_endpoint(Peer& peer, ucp_err_handling_mode_t mode) {
  ucp_ep_params_t params{};
  params.field_mask =
      UCP_EP_PARAM_FIELD_REMOTE_ADDRESS | UCP_EP_PARAM_FIELD_ERR_HANDLING_MODE | UCP_EP_PARAM_FIELD_ERR_HANDLER;
  params.address = reinterpret_cast<const ucp_address_t*>(peer.address.worker.data());
  params.err_mode = mode;
  params.err_handler = {.cb = on_error, .arg = &peer};
  return library().ucp_ep_create(worker_.get(), &params, &peer.endpoint);
}

// Not everything can tell that a peer is dead, shared memory of UCX 1.13 for one: where nothing else leads to the peer,
// that must do, and others say when it dies.
bool Sender::prepare(Peer& peer) {
  if (peer.is_closed) return false;
  if (peer.endpoint != nullptr) return true;
  ucs_status_t status = UCS_OK;
  {
    const QuietScope quiet;
    status = create_endpoint(peer, UCP_ERR_HANDLING_MODE_PEER);
  }
  peer.tells_of_death = status == UCS_OK;
  if (status != UCS_OK) status = create_endpoint(peer, UCP_ERR_HANDLING_MODE_NONE);
  if (status == UCS_OK) return true;
  peer.endpoint = nullptr;
  peer.is_closed = true;
  connector_.fail(peer, fmt::format("UCX cannot connect to it: {}", text_of(status)));
  return false;
}

Sender::Slot& Sender::take(Peer& peer, Kind kind, const Tag& tag) {
  Slot& slot = slots_.take();
  slot.sender = this;
  slot.peer = &peer;
  slot.what = nullptr;
  slot.frame.header = {.kind = kind, .rank = connector_.own().rank, .nonce = peer.address.nonce, .tag = tag};
  slot.frame.bytes = sizeof slot.frame.header;
  return slot;
}

Sent Sender::message(Peer& peer, const Tag& tag, const Load& load) {
  Slot& slot = take(peer, Kind::message, tag);
  if (load.bytes > 0) std::memcpy(slot.copy.data(), load.data, load.bytes);
  return send(peer, slot, {slot.copy.data(), load.bytes, load.what});
}

Sent Sender::data(Peer& peer, const Tag& tag, const DataBody& body, const Load& load, bool whole) {
  Slot& slot = take(peer, Kind::data, tag);
  slot.frame.put(body);
  return send(peer, slot, load, whole);
}

Sent Sender::send(Peer& peer, Slot& slot, const Load& load, bool whole) {
  if (!prepare(peer)) {
    slots_.give(slot);
    return Sent::failed;
  }
  slot.what = load.what;
  ucp_request_param_t param = eager_or_whatever(whole);
  param.cb.send = on_sent;
  param.user_data = &slot;
  ++peer.sent;
  void* const request = library().ucp_am_send_nbx(peer.endpoint, kActiveMessage, &slot.frame, slot.frame.bytes,
                                                  load.data, load.bytes, &param);
  if (UCS_PTR_IS_PTR(request)) {
    ++outstanding_;
    if (slot.frame.header.kind == Kind::message) ++peer.waiting;
    return Sent::later;
  }
  slots_.give(slot);
  if (request == nullptr) {
    peer.is_wired = true;
    return Sent::now;
  }
  if (peer.error == UCS_OK) peer.error = UCS_PTR_STATUS(request);
  return Sent::failed;
}

void Sender::on_sent(void* request, ucs_status_t status, void* user_data) {
  library().ucp_request_free(request);
  Slot& slot = *static_cast<Slot*>(user_data);
  Sender& self = *slot.sender;
  const Kind kind = slot.frame.header.kind;
  void* const what = slot.what;
  --self.outstanding_;
  slot.peer->is_wired |= status == UCS_OK;
  if (kind == Kind::message) --slot.peer->waiting;
  self.slots_.give(slot);
  if (kind == Kind::message) self.listener_.on_message_sent(what, status == UCS_OK);
  if (kind == Kind::data) self.listener_.on_data_sent(what, status == UCS_OK);
}

// The owner acts on it when he looks at the peer: nothing may be closed from within here.
void Sender::on_error(void* peer, ucp_ep_h, ucs_status_t status) { static_cast<Peer*>(peer)->error = status; }

// UCX 1.13 does not survive it when an endpoint is closed by force while it is being connected over UD. Such a one is
// left to the end of the worker.
void Sender::close(Peer& peer) {
  peer.is_closed = true;
  if (peer.endpoint == nullptr || !peer.was_wired()) return;
  ucp_request_param_t param{};
  param.op_attr_mask = UCP_OP_ATTR_FIELD_FLAGS;
  param.flags = peer.tells_of_death ? UCP_EP_CLOSE_FLAG_FORCE : 0;  // UCX forces no others
  void* const request = library().ucp_ep_close_nbx(peer.endpoint, &param);
  peer.endpoint = nullptr;
  if (UCS_PTR_IS_PTR(request)) library().ucp_request_free(request);  // UCX keeps it until it is done
}

void* Sender::flush_and_close(Peer& peer) {
  peer.is_closed = true;
  if (peer.endpoint == nullptr) return nullptr;
  ucp_request_param_t param{};
  void* const request = library().ucp_ep_close_nbx(peer.endpoint, &param);
  peer.endpoint = nullptr;
  return UCS_PTR_IS_PTR(request) ? request : nullptr;
}

}  // namespace tutti::internal::ucx
