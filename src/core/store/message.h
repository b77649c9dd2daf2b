// What ranks and the store say to each other once they trust each other: one message shape, framed by its length.
// Every length is checked against a bound before memory is taken. Pure; any thread.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "src/base/status.h"

namespace tutti::internal {

inline constexpr size_t kMaxNameBytes = 256;
inline constexpr size_t kMaxBodyBytes = size_t{1} << 20;
inline constexpr size_t kMaxLetterBytes = 4096;  // of a letter's body
// The length word itself is not counted in a frame's length.
inline constexpr size_t kMaxFrameBytes = kMaxBodyBytes + kMaxNameBytes + 64;
inline constexpr size_t kLengthBytes = 4;

struct Message {
  enum class Type : uint8_t {
    // from a rank                                    used fields
    join = 1,     // I am rank `rank`                 rank, count: world size, number: pid, name: version, body: digest
    give,         // my value for an exchange         name: key, body: value
    give_up,      // my time for this key is over     name: key ("": joining), number: microseconds waited
    peer_failed,  // my transport lost this rank      rank, body: reason
    abort,        // a group is given up              number: channel, code, failed, body: reason
    goodbye,      // I leave in order
    // from the store
    welcome,          // you are in; others may be missing
    ready,            // all ranks are in             number: the job's random number
    refused,          // you are not, or no longer    code, rank: the failed rank or -1, count: 1 if worth another try
    value,            // of one rank                  rank, name: key, body
    exchange_failed,  // no values will come          name: key, code, rank: the failed rank or -1, body: reason
    event,            // something befell a rank      count: Event::Kind, rank, number: channel, code, failed, body
    // both ways
    letter,  // from one rank to another              rank: to the store who gets it, from it who sent it, body
  };

  Type type{};
  int32_t rank = -1;
  int32_t count = 0;
  uint64_t number = 0;
  Code code = Code::ok;
  int32_t failed = -1;  // of an aborted group with code peer_failed: the rank that had failed
  std::string name;
  std::string body;

  bool operator==(const Message&) const = default;
};

// An encoded message; shared, because one value goes to many ranks.
using Frame = std::shared_ptr<const std::string>;

// Body and name are cut to their bounds: whoever lets users choose them checks first.
Frame encode(const Message& message);
// `payload` is a frame without its length word. Nothing where it is no message.
std::optional<Message> decode(std::string_view payload);

// The length word at the front of `bytes` (at least kLengthBytes), or nothing where it is beyond the bound.
std::optional<size_t> frame_length(std::string_view bytes);

}  // namespace tutti::internal
