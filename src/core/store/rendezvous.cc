#include "src/core/store/rendezvous.h"

#include <fmt/core.h>

#include "src/core/store/host_port.h"
#include "src/core/store/roster.h"

namespace tutti::internal {
namespace {

constexpr int kTorchrunPorts = 16;

Status invalid(std::string text) { return Status(Code::invalid_argument, std::move(text)); }

Status fill_rank_and_size(Rendezvous& result, int rank, int size, const Config& config, bool& given) {
  const int env_rank = config.rank().value_or(-1), env_size = config.size().value_or(0);
  result.rank = rank >= 0 ? rank : env_rank;
  result.size = size > 0 ? size : env_size;
  if (rank < -1) return invalid(fmt::format("rank {}: allowed are 0 and up, or -1 for the environment's", rank));
  if (size < 0) return invalid(fmt::format("world size {}: allowed are 1 and up, or 0 for the environment's", size));
  given = result.rank >= 0 || result.size > 0;
  if (!given) return {};
  if (result.rank < 0) return invalid(fmt::format("the world has {} ranks, but RANK is not set", result.size));
  if (result.size <= 0) return invalid(fmt::format("this is rank {}, but WORLD_SIZE is not set", result.rank));
  if (result.rank >= result.size)
    return invalid(
        fmt::format("rank {} in a world of {}: allowed are ranks 0 to {}", result.rank, result.size, result.size - 1));
  if (result.size > kMaxWorldSize)
    return invalid(fmt::format("a world of {} ranks: allowed are up to {}", result.size, kMaxWorldSize));
  return {};
}

Status use_text(Rendezvous& result, const std::string& store) {
  constexpr std::string_view kFile = "file:", kMemory = "memory:";
  const bool is_file = store.starts_with(kFile), is_memory = store.starts_with(kMemory);
  if (is_file || is_memory) {
    result.kind = is_file ? Rendezvous::Kind::file : Rendezvous::Kind::memory;
    result.name = store.substr(is_file ? kFile.size() : kMemory.size());
    if (result.name.empty())
      return invalid(fmt::format("store \"{}\": a {} must follow", store, is_file ? "path" : "name"));
    return {};
  }
  auto place = parse_host_port(store);
  if (!place)
    return invalid(fmt::format("store \"{}\": {}; also file:/path and memory:name", store, place.status().message()));
  result.kind = Rendezvous::Kind::address;
  result.host = place->host;
  result.ports = {place->port};
  result.label = port_label(place->port);
  return {};
}

Status use_environment(Rendezvous& result, const Config& config) {
  const std::string host_text = config.master_addr();
  const auto port = config.master_port();
  if (host_text.empty() && !config.store_file().empty()) return use_text(result, "file:" + config.store_file());
  if (host_text.empty() || !port)
    return invalid(
        fmt::format("rank {} of {} cannot find the others: set MASTER_ADDR and MASTER_PORT ({} is missing), "
                    "or TUTTI_STORE_FILE",
                    result.rank, result.size,
                    !host_text.empty() ? "MASTER_PORT"
                    : port             ? "MASTER_ADDR"
                                       : "each"));
  auto host = parse_host(host_text);
  if (!host) return invalid("MASTER_ADDR: " + host.status().message());
  result.kind = Rendezvous::Kind::address;
  result.host = *host;
  result.label = port_label(static_cast<uint16_t>(*port));
  if (!config.torchrun_owns_port()) {
    result.ports = {static_cast<uint16_t>(*port)};
    return {};
  }
  for (int next = *port + 1; next <= *port + kTorchrunPorts && next <= 65535; ++next)
    result.ports.push_back(static_cast<uint16_t>(next));
  if (result.ports.empty())
    return invalid(fmt::format("MASTER_PORT {}: torchrun has it, and there is no port after it", *port));
  return {};
}

}  // namespace

std::string port_label(uint16_t port) { return fmt::format("port {}", port); }

std::string Rendezvous::text() const {
  switch (kind) {
    case Kind::alone: return "nowhere: a world of one";
    case Kind::file: return "file:" + name;
    case Kind::memory: return "memory:" + name;
    case Kind::address: break;
  }
  const std::string shown = host.find(':') == std::string::npos ? host : "[" + host + "]";
  return ports.size() == 1 ? fmt::format("{}:{}", shown, ports[0])
                           : fmt::format("{}, ports {} to {}", shown, ports.front(), ports.back());
}

Result<Rendezvous> find_rendezvous(int rank, int size, const std::string& store, const Config& config) {
  Rendezvous result;
  bool given = false;
  TUTTI_RETURN_IF_ERROR(fill_rank_and_size(result, rank, size, config, given));
  if (!given && (!store.empty() || !config.master_addr().empty() || !config.store_file().empty()))
    return invalid("there is a store to join at, but neither RANK nor WORLD_SIZE is set");
  // Where it is must be well said even in a world of one, so that a wrong setting shows before the job grows.
  if (!store.empty()) {
    TUTTI_RETURN_IF_ERROR(use_text(result, store));
  } else if (given && result.size > 1) {
    TUTTI_RETURN_IF_ERROR(use_environment(result, config));
  }
  if (!given || result.size == 1) return Rendezvous();
  auto interfaces = InterfaceChoice::parse(config.interfaces());
  TUTTI_RETURN_IF_ERROR(interfaces.status());
  result.interfaces = std::move(*interfaces);
  if (result.kind == Rendezvous::Kind::file) result.ports = config.ports();
  const bool is_address = result.kind == Rendezvous::Kind::address;
  result.served_by_rank = !(is_address && config.store_served());
  result.serve = result.served_by_rank && result.rank == 0;
  if (is_address) result.secret = config.secret();
  return result;
}

}  // namespace tutti::internal
