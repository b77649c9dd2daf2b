// What arrives at the store before and after the handshake: greetings, frames, messages. Whatever the bytes, they are
// taken or refused without harm, and what is taken is what was sent.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string_view>

#include "src/core/store/handshake.h"
#include "src/core/store/message.h"

using namespace tutti::internal;

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string_view bytes(reinterpret_cast<const char*>(data), size);
  const Greeting theirs = parse_greeting(bytes);
  if (theirs.kind == Greeting::Kind::complete && bytes.size() < kGreetingBytes) std::abort();
  if (const auto length = frame_length(bytes); length && *length > kMaxFrameBytes) std::abort();
  if (const auto message = decode(bytes)) {
    if (message->body.size() > kMaxBodyBytes || message->name.size() > kMaxNameBytes) std::abort();
    if (encode(*message)->substr(kLengthBytes) != bytes) std::abort();
  }
  return 0;
}
