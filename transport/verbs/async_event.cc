#include "transport/verbs/async_event.h"

#include <fmt/format.h>

#include <cerrno>
#include <system_error>

namespace tutti::internal::verbs {
namespace {

using Lost = AsyncEvent::Lost;

bool is_about_port(ibv_event_type type) {
  switch (type) {
    case IBV_EVENT_PORT_ACTIVE:
    case IBV_EVENT_PORT_ERR:
    case IBV_EVENT_LID_CHANGE:
    case IBV_EVENT_PKEY_CHANGE:
    case IBV_EVENT_SM_CHANGE:
    case IBV_EVENT_CLIENT_REREGISTER:
    case IBV_EVENT_GID_CHANGE: return true;
    default: return false;
  }
}

bool is_about_queue_pair(ibv_event_type type) {
  switch (type) {
    case IBV_EVENT_QP_FATAL:
    case IBV_EVENT_QP_REQ_ERR:
    case IBV_EVENT_QP_ACCESS_ERR:
    case IBV_EVENT_COMM_EST:
    case IBV_EVENT_SQ_DRAINED:
    case IBV_EVENT_PATH_MIG:
    case IBV_EVENT_PATH_MIG_ERR:
    case IBV_EVENT_QP_LAST_WQE_REACHED: return true;
    default: return false;
  }
}

}  // namespace

AsyncEvent describe_event(ibv_event_type type, std::string_view device, int port, uint32_t queue_pair) {
  const auto of_port = [&](std::string_view what, Lost lost = Lost::nothing) {
    return AsyncEvent{fmt::format("port {} of {} {}", port, device, what), lost, 0};
  };
  const auto of_pair = [&](std::string_view what, Lost lost) {
    return AsyncEvent{fmt::format("queue pair {} of {} {}", queue_pair, device, what), lost, queue_pair};
  };
  const auto of_device = [&](std::string_view what) {
    return AsyncEvent{fmt::format("device {} {}", device, what), Lost::device, 0};
  };
  switch (type) {
    case IBV_EVENT_PORT_ERR: return of_port("went down", Lost::port);
    case IBV_EVENT_PORT_ACTIVE: return of_port("is active");
    case IBV_EVENT_LID_CHANGE: return of_port("has a new LID");
    case IBV_EVENT_GID_CHANGE: return of_port("has a changed GID table");
    case IBV_EVENT_DEVICE_FATAL: return of_device("failed, or was removed");
    case IBV_EVENT_CQ_ERR: return of_device("lost a completion queue");
    case IBV_EVENT_SRQ_ERR: return of_device("lost a shared receive queue");
    case IBV_EVENT_QP_FATAL: return of_pair("failed", Lost::queue_pair);
    case IBV_EVENT_QP_REQ_ERR: return of_pair("refused a malformed request of its peer", Lost::queue_pair);
    case IBV_EVENT_QP_ACCESS_ERR: return of_pair("refused its peer memory that it may not reach for", Lost::queue_pair);
    default: break;
  }
  const char* const name = ibv_event_type_str(type);
  const std::string what = fmt::format("reports: {}", name ? name : "an unknown event");
  if (is_about_queue_pair(type)) return of_pair(what, Lost::nothing);
  if (is_about_port(type)) return of_port(what);
  return {fmt::format("device {} {}", device, what), Lost::nothing, 0};
}

AsyncEvent async_event(ibv_context* context, std::string_view device, int port) {
  for (;;) {
    ibv_async_event event{};
    if (ibv_get_async_event(context, &event) != 0) {
      if (errno == EINTR) continue;
      if (errno == EAGAIN || errno == EWOULDBLOCK) return {};
      return {fmt::format("device {} is gone: {}", device, std::generic_category().message(errno)), Lost::device, 0};
    }
    // What the event points to may be destroyed once it is acknowledged.
    const uint32_t queue_pair = is_about_queue_pair(event.event_type) ? event.element.qp->qp_num : 0;
    const bool is_elsewhere = is_about_port(event.event_type) && event.element.port_num != port;
    ibv_ack_async_event(&event);
    if (!is_elsewhere) return describe_event(event.event_type, device, port, queue_pair);
  }
}

}  // namespace tutti::internal::verbs
