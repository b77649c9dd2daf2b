#include "transport/verbs/connector.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <utility>

namespace tutti::internal::verbs {
namespace {

std::string no_answer(int rank, const Attempt& attempt) {
  std::string text = fmt::format("rank {} has not answered a request to connect queue pairs", rank);
  return attempt.trouble.empty() ? text : fmt::format("{}: {}", text, attempt.trouble);
}

}  // namespace

Connector::Connector(Address own, int world_size, std::span<const std::unique_ptr<Queues>> queues,
                     const Settings& settings, Mail& mail, std::unique_ptr<Listeners> listeners)
    : connections_(std::move(own), world_size, queues, settings),
      letters_(connections_, mail),
      cm_(listeners ? std::make_unique<Cm>(connections_, std::move(listeners)) : nullptr) {}

Status Connector::connect(int rank, std::string_view address, Deadline deadline) {
  std::unique_lock lock(connections_.mutex());
  Attempt& attempt = connections_.attempt(rank);
  for (;;) {
    const Peer* const known = peer(rank);
    // What a peer sent before it left in order may still be taken.
    const PeerState state = known ? state_of(*known) : PeerState::accepting;
    if (state == PeerState::failed)
      return Status::peer_failed(rank, fmt::format("the connection to rank {} is closed", rank));
    if (state != PeerState::accepting) return {};
    if (!attempt.refusal.ok()) return attempt.refusal;
    if (deadline.passed()) return Status(Code::timeout, no_answer(rank, attempt));
    Deadline until = deadline;
    if (known == nullptr && attempt.stage == Attempt::Stage::none) {
      if (!attempt.pause || attempt.pause->passed()) {
        TUTTI_RETURN_IF_ERROR(ask(rank, address, deadline, lock));
        continue;
      }
      until = std::min(deadline, *attempt.pause);
    }
    if (until.is_never()) {
      connections_.changed().wait(lock);
    } else {
      connections_.changed().wait_for(lock, std::chrono::microseconds(until.remaining_us()));
    }
  }
}

Status Connector::ask(int rank, std::string_view address_text, Deadline deadline, std::unique_lock<std::mutex>& lock) {
  auto address = Address::decode(address_text);
  if (!address) return address.status();
  if (address->rank != rank)
    return Status(Code::mismatch,
                  fmt::format("connecting to rank {} with the address of rank {}", rank, address->rank));
  auto paths = paths_between(own(), *address, settings());
  if (!paths) return paths.status();
  const bool through_cm = by_rdmacm(own(), *address, *paths);  // then there are listeners at both ends
  const Plan plan{.rank = rank, .address = std::move(*address), .paths = std::move(*paths), .deadline = deadline};
  return through_cm ? cm_->ask(plan, lock) : letters_.ask(plan, lock);
}

}  // namespace tutti::internal::verbs
