// What a peer writes to be connected, by letter or in rdma_cm's private data: decoded, and encoded again.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string>
#include <string_view>

#include "transport/verbs/cm_message.h"
#include "transport/verbs/letter.h"

namespace tutti::internal::verbs {
namespace {

// What was understood is written so that it is understood alike.
template <class Message>
void run(std::string_view input) {
  auto message = Message::decode(input);
  if (!message) return;
  const std::string form = message->encode();
  auto again = Message::decode(form);
  if (!again || again->encode() != form) std::abort();
}

}  // namespace
}  // namespace tutti::internal::verbs

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace tutti::internal::verbs;
  const std::string_view input(reinterpret_cast<const char*>(data), size);
  run<Letter>(input);
  run<CmRequest>(input);
  run<CmAnswer>(input);
  run<CmRejection>(input);
  return 0;
}
