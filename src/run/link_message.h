// What tutti-run and its agents on other hosts say to each other, over the standard input and output of an ssh. Pure.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace tutti::internal {

struct LinkMessage {
  enum class Type : uint8_t {
    alive,  // nothing but that
    // To an agent.
    job,            // text: see agent_job.h
    input,          // text: of rank 0's standard input; "": its end
    signal,         // number: to be passed on to the ranks
    end,            // the ranks are to be ended
    output_broken,  // number: the stream that nobody takes any more
    // From an agent.
    output,        // rank, number: the stream, text; "": its end
    want_input,    // one more piece
    input_closed,  // rank 0 reads no more
    say,           // text: for the user
    fail,          // number: exit status, rank: how many ranks still run here, text: why, or "" for nothing to say
    ended,         // all ranks have ended, and nothing of them is left
  };
  Type type = Type::alive;
  int32_t rank = 0;
  int32_t number = 0;
  std::string text = {};

  bool operator==(const LinkMessage&) const = default;
};

std::string encode(const LinkMessage& message);

// Bytes as they come, and the messages among them.
class LinkBuffer {
 public:
  static constexpr size_t kMostBytes = size_t{64} << 20;  // of a message: the largest is a job, with its environment

  void add(std::string_view bytes);
  // The next whole message. Nothing when it is not here yet, or when what came is none: then is_broken().
  std::optional<LinkMessage> next();
  bool is_broken() const { return broken_; }
  // What has not been taken, and taking that is no message.
  std::string_view bytes() const { return std::string_view(bytes_).substr(taken_); }
  void take(size_t count) { taken_ += count; }

 private:
  std::string bytes_;
  size_t taken_ = 0;
  bool broken_ = false;
};

}  // namespace tutti::internal
