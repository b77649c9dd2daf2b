// The calls of a transport of the other guest, as they go over lines. The first line of all lives as long as the test
// program, and its end is the servant's. Each other begins with a Hello:
//
//   transport  makes one, which lives as long as the line: rank, ranks, cache, through_rdmacm; the answer is its number
//              and its address. Then letters go both ways, each with the other rank first, and no answers.
//   calls      of the transport with this number, one after the other.
#pragma once

#include <algorithm>
#include <cstdint>

#include "tests/transport/conformance_world.h"
#include "tests/transport/remote_frame.h"

namespace tutti::internal::conformance {

inline constexpr uint16_t kServantPort = 29400;

enum class Hello : uint8_t { transport, calls };

enum class Notice : uint8_t { letter, no_more_letters };

// Memory is named by its place in the other guest. A place of 0 is none: the servant takes memory of its own, as long
// as the request is open. "content" is what is read there, and in answers what was written. The answer to a post is the
// pass count, the Post, and the content if it is done.
enum class Call : uint8_t {
  reachable,          // address: status
  answers,            // address, microseconds: status
  connect,            // peer, address, microseconds: status
  allocate,           // bytes: status, place
  release,            // place: status
  register_memory,    // bytes: status, place
  unregister_memory,  // place: status
  post_send,          // request, channel, match_base, place, content, ends
  post_recv,          // request, channel, end, place, bytes
  post_reduce,        // request, channel, element_count, element_bytes, divisor, operands, dst
  poll,               // room: pass count, count; of each its request, code, found_bytes, content
  cancel,             // channel
  forget,             // channel
  disconnect,         // peer
  take_failure,       // : peer, reason
  idle,               // microseconds
};

// What kernels of the other guest were given counts as if they had run here.
inline void put_pass_count(Frame& frame) {
  frame << pass_count.calls << pass_count.elements << pass_count.fewest_operands << pass_count.most_operands;
}
inline void add_pass_count(Reader& reader) {
  pass_count.calls += reader.get<uint64_t>();
  pass_count.elements += reader.get<uint64_t>();
  pass_count.fewest_operands = std::min(pass_count.fewest_operands, reader.get<int>());
  pass_count.most_operands = std::max(pass_count.most_operands, reader.get<int>());
}

}  // namespace tutti::internal::conformance
