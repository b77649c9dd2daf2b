// The texts by which a store is found: addresses with ports, and the file that rank 0 writes. What is understood can be
// written again, and is then understood the same way.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string_view>

#include "src/core/store/host_port.h"
#include "src/core/store/store_file.h"

using namespace tutti::internal;

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  if (auto host = parse_host(text)) {
    if (host->empty() || host->size() > 255) std::abort();
  }
  if (auto place = parse_host_port(text)) {
    const bool has_colons = place->host.find(':') != std::string::npos;
    const std::string again = (has_colons ? "[" + place->host + "]" : place->host) + ":" + std::to_string(place->port);
    auto second = parse_host_port(again);
    if (!second || second->host != place->host || second->port != place->port) std::abort();
  }
  const StoreFile file = parse_store_file(text);
  if (!file.addresses.empty()) {
    const StoreFile second = parse_store_file(store_file_text(file.addresses, file.secret));
    if (second.addresses != file.addresses || second.secret != file.secret) std::abort();
  }
  return 0;
}
