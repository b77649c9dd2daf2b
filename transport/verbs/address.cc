// The form of an address in the store. All numbers are little-endian:
//   "TVA" version:1  rank:4 nonce:8 through_rdmacm:1 ports:1  then each port
//   port: name_bytes:1 name  is_infiniband:1 lid:2 mtu:1 ping_pair:4 gids:1  then each GID  listeners:1  then the
//         listener
//   GID:  raw:16 index:1 is_v2:1 prefix_bits:1
//   listener: ip:16 port:2
#include "transport/verbs/address.h"

#include <arpa/inet.h>
#include <fmt/format.h>

#include <algorithm>
#include <cstring>

#include "transport/verbs/claims.h"
#include "transport/verbs/registrar.h"

namespace tutti::internal::verbs {
namespace {

constexpr std::string_view kMagic = "TVA";
constexpr uint8_t kVersion = 3;
constexpr uint8_t kGidBits = 128;

void put(std::string& text, uint64_t value, size_t bytes) {
  for (size_t i = 0; i < bytes; ++i) text.push_back(static_cast<char>(value >> (8 * i)));
}

void put_port(std::string& text, const PortAddress& port) {
  const std::string_view name = std::string_view(port.name).substr(0, kMostNameBytes);
  const size_t gids = std::min(port.gids.size(), kMostGids);
  put(text, name.size(), 1);
  text += name;
  put(text, port.is_infiniband, 1);
  put(text, port.lid, 2);
  put(text, port.mtu, 1);
  put(text, port.ping_pair, 4);
  put(text, gids, 1);
  for (const Gid& gid : std::span(port.gids).first(gids)) {
    text.append(reinterpret_cast<const char*>(gid.raw.data()), gid.raw.size());
    put(text, static_cast<uint64_t>(gid.index), 1);
    put(text, gid.is_v2, 1);
    put(text, static_cast<uint64_t>(gid.prefix_bits), 1);
  }
  put(text, port.listener.is_there(), 1);
  if (!port.listener.is_there()) return;
  text.append(reinterpret_cast<const char*>(port.listener.ip.data()), port.listener.ip.size());
  put(text, port.listener.port, 2);
}

// Takes an address apart. After the first thing that is missing or out of its bounds `fault` says what it was, and
// everything else is zero.
class Reader {
 public:
  explicit Reader(std::string_view text) : rest_(text) {}

  std::string_view take(size_t bytes) {
    if (!fault_.empty()) return {};
    if (bytes > rest_.size()) {
      fault_ = "ends too early";
      return {};
    }
    const std::string_view taken = rest_.substr(0, bytes);
    rest_.remove_prefix(bytes);
    return taken;
  }
  uint64_t number(size_t bytes) {
    uint64_t value = 0;
    size_t shift = 0;
    for (const char byte : take(bytes)) {
      value |= uint64_t{static_cast<uint8_t>(byte)} << shift;
      shift += 8;
    }
    return value;
  }
  uint8_t within(uint8_t least, uint8_t most, std::string_view what) {
    const auto value = static_cast<uint8_t>(number(1));
    if (!fault_.empty()) return 0;
    if (value < least || value > most) fault_ = fmt::format("has {} {}, {} to {} allowed", value, what, least, most);
    return fault_.empty() ? value : 0;
  }
  void refuse(std::string_view fault) {
    if (fault_.empty()) fault_ = fault;
  }
  size_t left() const { return rest_.size(); }
  const std::string& fault() const { return fault_; }

 private:
  std::string_view rest_;
  std::string fault_;
};

PortAddress take_port(Reader& reader) {
  PortAddress port;
  port.name = reader.take(reader.within(1, kMostNameBytes, "bytes of a port's name"));
  // It stands in messages.
  if (!std::ranges::all_of(port.name, [](char c) { return c > ' ' && c <= '~'; }))
    reader.refuse("has a port's name that is no name");
  port.is_infiniband = reader.within(0, 1, "as the kind of a port") == 1;
  port.lid = static_cast<uint16_t>(reader.number(2));
  port.mtu = reader.within(kLeastMtu, kMostMtu, "as an MTU");
  port.ping_pair = static_cast<uint32_t>(reader.number(4));
  if (port.ping_pair > kMostPairNumber) reader.refuse("has a queue pair that cannot be");
  port.gids.resize(reader.within(0, kMostGids, "GIDs of a port"));
  for (Gid& gid : port.gids) {
    const std::string_view raw = reader.take(gid.raw.size());
    std::ranges::copy(raw, gid.raw.begin());
    gid.index = reader.within(0, kMostGidIndex, "as a GID's index");
    gid.is_v2 = reader.within(0, 1, "as a GID's kind") == 1;
    gid.prefix_bits = reader.within(0, kGidBits, "bits of a GID's network");
  }
  if (reader.within(0, 1, "listeners of a port") == 1) {
    std::ranges::copy(reader.take(port.listener.ip.size()), port.listener.ip.begin());
    port.listener.port = static_cast<uint16_t>(reader.number(2));
    if (!port.listener.is_there() || is_nowhere(port.listener.ip)) reader.refuse("has a listener that is nowhere");
  }
  return port;
}

}  // namespace

bool Gid::is_ipv4() const { return internal::is_ipv4(raw); }
bool Gid::is_link_local() const { return internal::is_link_local(raw); }

std::string to_string(const Gid& gid) {
  std::array<char, INET6_ADDRSTRLEN> text{};
  return inet_ntop(AF_INET6, gid.raw.data(), text.data(), text.size()) ? text.data() : "?";
}

std::string short_text(const GidBytes& bytes) {
  std::array<char, INET6_ADDRSTRLEN> text{};
  const bool is_short = internal::is_ipv4(bytes);
  const uint8_t* const begin = bytes.data() + (is_short ? bytes.size() - sizeof(in_addr) : 0);
  return inet_ntop(is_short ? AF_INET : AF_INET6, begin, text.data(), text.size()) ? text.data() : "?";
}

std::string to_string(const Listener& listener) {
  return fmt::format("{} port {}", short_text(listener.ip), listener.port);
}

std::string Address::encode() const {
  const size_t count = std::min(ports.size(), kMaxPorts);
  std::string text(kMagic);
  put(text, kVersion, 1);
  put(text, static_cast<uint64_t>(rank), 4);
  put(text, nonce, 8);
  put(text, through_rdmacm, 1);
  put(text, count, 1);
  for (const PortAddress& port : std::span(ports).first(count)) put_port(text, port);
  return text;
}

Result<Address> Address::decode(std::string_view text) {
  Reader reader(text);
  if (reader.take(kMagic.size()) != kMagic)
    return Status(Code::invalid_argument,
                  fmt::format("{} bytes that are no address of the verbs transport", text.size()));
  if (const auto version = reader.number(1); version != kVersion)
    return Status(Code::invalid_argument,
                  fmt::format("a verbs address of version {}, {} expected", version, int{kVersion}));
  Address address;
  address.rank = static_cast<int>(static_cast<uint32_t>(reader.number(4)));
  address.nonce = reader.number(8);
  address.through_rdmacm = reader.within(0, 1, "as whether it connects through rdma_cm") == 1;
  if (address.rank < 0) reader.refuse("has no rank");
  address.ports.resize(reader.within(0, kMaxPorts, "ports"));
  for (PortAddress& port : address.ports) port = take_port(reader);
  if (reader.left() > 0) reader.refuse(fmt::format("has {} bytes too many", reader.left()));
  if (!reader.fault().empty()) return Status(Code::invalid_argument, fmt::format("a verbs address {}", reader.fault()));
  return address;
}

}  // namespace tutti::internal::verbs
