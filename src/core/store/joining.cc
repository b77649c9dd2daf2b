#include "src/core/store/joining.h"

#include <fmt/core.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>

#include "src/base/log.h"
#include "src/core/store/descriptors.h"

namespace tutti::internal {
namespace {

// A port held, or answered, by the wrong one may be a former run's on its way out. After this it is an error.
constexpr int64_t kPatienceUs = 5'000'000;
// A name that the name service does not know yet, as that of a machine just started.
constexpr int64_t kNamePatienceUs = 30'000'000;
// How long the host of a failed join stays to tell those who come late why.
constexpr int64_t kTellUs = 5'000'000;

}  // namespace

Result<std::unique_ptr<Session>> Session::join(const JoinOptions& options, Deadline deadline) {
  return Joining(options, deadline).run();
}

Joining::Joining(const JoinOptions& options, Deadline deadline)
    : rendezvous_(options.rendezvous),
      deadline_(deadline),
      started_us_(now_us()),
      session_(new Session(options.rendezvous)) {
  request_.type = Message::Type::join;
  request_.rank = rendezvous_.rank;
  request_.count = rendezvous_.size;
  request_.number = static_cast<uint64_t>(getpid());
  request_.name = options.version;
  request_.body = options.digest;
  published_.withdraw = [] {};
}

Result<std::unique_ptr<Session>> Joining::run() {
  if (rendezvous_.kind == Rendezvous::Kind::alone) return std::move(session_);
  Status status = rendezvous_.serve ? host() : Status();
  if (status.ok() && !reached_) status = reach();
  if (status.ok()) status = await_others();
  // Those who come later shall hear why, too.
  if (!status.ok() && server_) server_->wait_until_told(std::min(deadline_, Deadline::after_us(kTellUs)));
  published_.withdraw();
  if (!status.ok()) return status;
  session_->server_ = std::move(server_);
  return std::move(session_);
}

// Ends with a server, or, where another holds the port and is a store of this job, inside that one.
Status Joining::host() {
  bool hosting = false;
  while (!hosting && !reached_) {
    TUTTI_RETURN_IF_ERROR(try_to_host(hosting));
    if (hosting || reached_) break;
    if (deadline_.passed()) return too_late();
    backoff_.pause(deadline_);
  }
  return {};
}

Status Joining::try_to_host(bool& hosting) {
  const bool by_address = rendezvous_.kind == Rendezvous::Kind::address;
  const bool alone_here = by_address ? rendezvous_.secret.empty() : rendezvous_.kind == Rendezvous::Kind::memory;
  const std::vector<uint16_t> ports = rendezvous_.ports.empty() ? std::vector<uint16_t>{0} : rendezvous_.ports;
  std::vector<Address> chosen;
  if (!alone_here && !rendezvous_.interfaces.is_all()) {
    auto addresses = chosen_addresses(rendezvous_.interfaces);
    TUTTI_RETURN_IF_ERROR(addresses.status());
    chosen = std::move(*addresses);
  }
  Listening listening;
  for (uint16_t port : ports) {
    const bool everywhere = !alone_here && chosen.empty();
    listening = everywhere ? listen_on(port, Reach::everywhere) : listen_at(port, chosen);
    if (listening.ok()) {
      hosting = true;
      return start_server(std::move(listening.listeners));
    }
    if (listening.error != EADDRINUSE) return listening.status();
  }
  return blocked(listening);
}

Status Joining::start_server(Listeners listeners) {
  const bool by_address = rendezvous_.kind == Rendezvous::Kind::address;
  StoreOptions options;
  const bool by_file = rendezvous_.kind == Rendezvous::Kind::file;
  options.credentials = by_address ? Credentials{rendezvous_.secret, rendezvous_.label}
                                   : Credentials{fresh_secret(), by_file ? "file" : "memory"};
  const std::string secret = options.credentials.secret;
  const uint16_t port = listeners.port;
  // What is published before the server runs would lead the quickest rank nowhere: it listens already.
  published_ = publish(rendezvous_, port, secret);
  TUTTI_RETURN_IF_ERROR(published_.status);
  options.on_complete = published_.withdraw;
  options.size = 0;
  TUTTI_RETURN_IF_ERROR(reserve_descriptors(rendezvous_.size));
  auto server = StoreServer::start(std::move(options), std::move(listeners));
  if (!server) return server.status();
  log_debug("the store listens on port {}", port);
  server_ = std::move(*server);
  return {};
}

// The port is in use: asks who is there. Another rank 0 of this job is an error that the store there knows best.
Status Joining::blocked(const Listening& listening) {
  StorePlace place = locate(rendezvous_);
  TUTTI_RETURN_IF_ERROR(place.error);
  Attempt attempt = attempt_all(place, request_, deadline_);
  if (attempt.kind == Attempt::Kind::refused) return attempt.status;
  if (attempt.kind == Attempt::Kind::reached) {
    reached_ = std::move(attempt.reached);
    return {};
  }
  const bool in_range = rendezvous_.kind == Rendezvous::Kind::file && !rendezvous_.ports.empty();
  note((in_range ? no_free_port(rendezvous_.ports) : listening.status().message()) +
       (attempt.text.empty() ? "" : "; " + attempt.text));
  if (attempt.kind == Attempt::Kind::ending || now_us() - started_us_ < kPatienceUs) return {};
  return Status(Code::out_of_resources,
                fmt::format("rank 0 cannot serve the store of {} ranks: {}", rendezvous_.size, last_try_));
}

Status Joining::reach() {
  while (true) {
    TUTTI_RETURN_IF_ERROR(try_to_reach());
    if (reached_) return {};
    if (deadline_.passed()) return too_late();
    backoff_.pause(deadline_);
  }
}

Status Joining::try_to_reach() {
  StorePlace place = locate(rendezvous_);
  TUTTI_RETURN_IF_ERROR(place.error);
  if (place.addresses.empty()) {
    note(place.unknown_because);
    if (place.unknown_name && now_us() - started_us_ >= kNamePatienceUs)
      return Status(Code::invalid_argument, fmt::format("rank {}: {}", rendezvous_.rank, last_try_));
    return {};
  }
  Attempt attempt = attempt_all(place, request_, deadline_);
  if (attempt.kind == Attempt::Kind::reached) {
    reached_ = std::move(attempt.reached);
    return {};
  }
  if (last_try_.empty()) log_info("waiting for the store at {}: {}", rendezvous_.text(), attempt.text);
  note(attempt.text);
  return judge(attempt);
}

// Not ok where another attempt is no use.
Status Joining::judge(const Attempt& attempt) {
  const std::string text = fmt::format("rank {}: {}", rendezvous_.rank, attempt.text);
  if (attempt.kind == Attempt::Kind::refused)
    return attempt.status.failed_rank() >= 0 ? Status::peer_failed(attempt.status.failed_rank(), text)
                                             : Status(attempt.status.code(), text);
  const bool one_place = rendezvous_.kind == Rendezvous::Kind::address && rendezvous_.ports.size() == 1;
  const bool is_wrong = attempt.kind == Attempt::Kind::foreign || attempt.kind == Attempt::Kind::stranger;
  if (!one_place || !is_wrong) {
    wrong_since_us_ = 0;
    return {};
  }
  if (attempt.kind == Attempt::Kind::foreign) return Status(Code::mismatch, text);
  if (wrong_since_us_ == 0) wrong_since_us_ = now_us();
  if (now_us() - wrong_since_us_ < kPatienceUs) return {};
  return Status(Code::mismatch, text);
}

// An attempt that the deadline cut short says less than the one before it.
void Joining::note(std::string attempt) {
  if (last_try_.empty() || !deadline_.passed()) last_try_ = std::move(attempt);
}

Status Joining::too_late() const {
  const bool as_host = rendezvous_.serve && !server_;
  return Status(Code::timeout,
                fmt::format("rank {} could not {} the store of {} ranks at {} within {:.1f} s{}; last attempt: {}",
                            rendezvous_.rank, as_host ? "serve" : "reach", rendezvous_.size, rendezvous_.text(),
                            static_cast<double>(now_us() - started_us_) * 1e-6,
                            as_host || rendezvous_.rank == 0 ? "" : "; the one that serves it has perhaps not started",
                            last_try_));
}

Status Joining::await_others() {
  TUTTI_RETURN_IF_ERROR(session_->open(std::move(reached_->socket), std::move(reached_->reader)));
  TUTTI_RETURN_IF_ERROR(session_->await_ready(deadline_));
  // The host reaches itself by loopback perhaps; the others have shown by which address they reach it.
  const Address shown = server_ ? server_->reached_at() : Address();
  if (shown.length > 0 && local_address(session_->socket_.fd()).is_loopback()) session_->local_host_ = shown.host();
  return {};
}

}  // namespace tutti::internal
