#include "transport/shm/address.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <type_traits>

#include "transport/shm/layout.h"
#include "transport/shm/region.h"
#include "transport/shm/unique_fd.h"

namespace tutti::internal::shm {
namespace {

struct Wire {
  uint64_t magic;
  Address address;
};
static_assert(std::is_trivially_copyable_v<Wire>);

std::array<char, 36> boot_id() {
  std::array<char, 36> id{};
  UniqueFd file(open("/proc/sys/kernel/random/boot_id", O_RDONLY | O_CLOEXEC));
  if (!file || read(file.get(), id.data(), id.size()) != static_cast<ssize_t>(id.size())) id = {};
  return id;
}

}  // namespace

std::string Address::encode() const {
  Wire wire;
  std::memset(static_cast<void*>(&wire), 0, sizeof wire);  // padding is sent too
  wire.magic = kMagic;
  wire.address = *this;
  return std::string(reinterpret_cast<const char*>(&wire), sizeof wire);
}

Result<Address> Address::decode(std::string_view bytes) {
  if (bytes.size() != sizeof(Wire))
    return Status(Code::mismatch,
                  fmt::format("a shared-memory address of {} bytes, {} expected", bytes.size(), sizeof(Wire)));
  Wire wire;
  std::memcpy(static_cast<void*>(&wire), bytes.data(), sizeof wire);
  if (wire.magic != kMagic)
    return Status(Code::mismatch,
                  fmt::format("a shared-memory address of version {:#x}, {:#x} expected", wire.magic, kMagic));
  return wire.address;
}

Address own_address(int rank, uint64_t nonce) {
  Address address;
  address.boot_id = boot_id();
  struct stat net {};
  if (stat("/proc/self/ns/net", &net) == 0) address.network_namespace = net.st_ino;
  address.nonce = nonce;
  const std::string name = fmt::format("tutti-{:016x}", random_u64());
  std::copy_n(name.data(), std::min(name.size(), address.socket_name.size()), address.socket_name.data());
  address.rank = rank;
  address.pid = getpid();
  address.uid = geteuid();
  return address;
}

std::string_view name_of(const Address& address) {
  return {address.socket_name.data(), strnlen(address.socket_name.data(), address.socket_name.size())};
}

Status same_node(const Address& own, const Address& peer) {
  if (own.boot_id != peer.boot_id)
    return Status(Code::unsupported, fmt::format("rank {} runs on another machine", peer.rank));
  if (own.network_namespace != 0 && peer.network_namespace != 0 && own.network_namespace != peer.network_namespace)
    return Status(Code::unsupported,
                  fmt::format("rank {} (pid {}) is in another network namespace", peer.rank, peer.pid));
  return {};
}

}  // namespace tutti::internal::shm
