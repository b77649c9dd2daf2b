// What a device reports by itself: links that go down, devices that are taken out, queue pairs that fail.
#pragma once

#include <infiniband/verbs.h>

#include <cstdint>
#include <string>
#include <string_view>

namespace tutti::internal::verbs {

struct AsyncEvent {
  enum class Lost : uint8_t { nothing, queue_pair, port, device };
  std::string text;  // "port 1 of mlx5_0 went down"; "" there was no event
  Lost lost = Lost::nothing;
  uint32_t queue_pair = 0;  // its number, where it is about one
};

// One event of the device that `context` has open, acknowledged; it does not block. Events of other ports than `port`
// are passed over. After Lost::device there is nothing more to be had: every later call says the same. Any thread, but
// no queue pair or queue of the context may be destroyed meanwhile.
AsyncEvent async_event(ibv_context* context, std::string_view device, int port);

// What an event means; `queue_pair`: its number, where it is about one.
AsyncEvent describe_event(ibv_event_type type, std::string_view device, int port, uint32_t queue_pair);

}  // namespace tutti::internal::verbs
