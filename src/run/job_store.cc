#include "src/run/job_store.h"

#include <netinet/in.h>
#include <sys/socket.h>

#include <cerrno>

#include "src/base/config.h"
#include "src/base/unique_fd.h"
#include "src/core/store/handshake.h"
#include "src/core/store/interfaces.h"
#include "src/core/store/listener.h"
#include "src/core/store/rendezvous.h"

namespace tutti::internal {
namespace {

// The ranks meet at 127.0.0.1. In a fresh network namespace (unshare -n) that leads nowhere, and each of them would try
// until its time is over. Connecting a datagram socket asks for the way and sends nothing.
Status check_loopback() {
  const UniqueFd fd(socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0));
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_port = htons(9);  // any
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  if (!fd || connect(fd.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address) == 0 ||
      errno != ENETUNREACH)
    return Status();
  return Status(Code::unsupported,
                "127.0.0.1, where the ranks would meet, cannot be reached: the loopback device is down "
                "('ip link set lo up' mends it)");
}

// On the first port that is free.
Result<Listening> listen_within(const std::vector<uint16_t>& range, const std::vector<Address>& addresses) {
  const auto listen = [&](uint16_t port) {
    return addresses.empty() ? listen_on(port, Reach::everywhere) : listen_at(port, addresses);
  };
  if (range.empty()) return listen(0);
  for (const uint16_t port : range) {
    Listening listening = listen(port);
    if (listening.error != EADDRINUSE) return listening;
  }
  return Status(Code::out_of_resources, no_free_port(range));
}

Result<std::unique_ptr<StoreServer>> serve(JobAddress& job, Result<Listening> tried) {
  TUTTI_RETURN_IF_ERROR(tried.status());
  Listening& listening = *tried;
  TUTTI_RETURN_IF_ERROR(listening.status());
  job.port = listening.listeners.port;
  job.secret = fresh_secret();
  StoreOptions options;
  options.size = job.size;
  options.credentials = {job.secret, port_label(static_cast<uint16_t>(job.port))};
  return StoreServer::start(std::move(options), std::move(listening.listeners));
}

}  // namespace

Result<std::unique_ptr<StoreServer>> serve_here(JobAddress& job) {
  if (job.size > 1) TUTTI_RETURN_IF_ERROR(check_loopback());
  job.host = "127.0.0.1";
  return serve(job, listen_on(0, Reach::loopback));
}

Result<std::unique_ptr<StoreServer>> serve_for_hosts(const std::vector<std::string>& variables, JobAddress& job,
                                                     std::vector<std::string>& hosts) {
  auto config = Config::load(settings_among(variables));
  TUTTI_RETURN_IF_ERROR(config.status());
  auto choice = InterfaceChoice::parse(config->interfaces());
  TUTTI_RETURN_IF_ERROR(choice.status());
  auto addresses = chosen_addresses(*choice);
  TUTTI_RETURN_IF_ERROR(addresses.status());
  for (const Address& address : *addresses) hosts.push_back(address.host());
  return serve(job, listen_within(config->ports(), choice->is_all() ? std::vector<Address>() : *addresses));
}

}  // namespace tutti::internal
