#include "src/core/store/reach.h"

#include <fmt/core.h>
#include <poll.h>

#include <algorithm>

namespace tutti::internal {
namespace {

constexpr int64_t kConnectUs = 3'000'000;  // then the next address has its turn; the kernel repeats lost packets before
constexpr int64_t kAnswerUs = 10'000'000;  // a store that is there answers sooner, even from a busy machine
constexpr int64_t kLongestPauseUs = 500'000;

Deadline within(Deadline deadline, int64_t us) { return std::min(deadline, Deadline::after_us(us)); }

Attempt outcome(Attempt::Kind kind, std::string text) {
  Attempt result;
  result.kind = kind;
  result.text = std::move(text);
  return result;
}

// The joining rank's end of one connection while it is proven.
class Entrance {
 public:
  Entrance(Socket socket, const Address& address, Deadline deadline)
      : socket_(std::move(socket)), where_(address.text()), deadline_(deadline) {}

  Attempt enter(const Credentials& credentials, const Message& join) {
    if (auto failed = exchange_greetings()) return std::move(*failed);
    if (auto failed = exchange_proofs(credentials)) return std::move(*failed);
    return ask(join);
  }

  Status knock(const Credentials& credentials) {
    auto failed = exchange_greetings();
    if (!failed) failed = exchange_proofs(credentials);
    return failed ? Status(Code::mismatch, failed->text) : Status();
  }

 private:
  bool send(std::string_view bytes) {
    writer_.put(std::make_shared<const std::string>(bytes));
    while (writer_.flush(socket_.fd())) {
      if (writer_.is_empty()) return true;
      if (wait_for(socket_.fd(), POLLOUT, deadline_) == 0) return false;
    }
    return false;
  }

  // Waits for more. False when there will be none, or not in time.
  bool receive() {
    if (ended_) return false;
    if (wait_for(socket_.fd(), POLLIN, deadline_) == 0) {
      ended_ = true;
      why_ = "it says nothing";
      return false;
    }
    if (!reader_.read_available(socket_.fd(), kLengthBytes + kMaxFrameBytes)) {
      ended_ = true;
      why_ = reader_.why();
    }
    return true;
  }

  Attempt again() const { return outcome(Attempt::Kind::again, fmt::format("{} answers, but then: {}", where_, why_)); }

  std::optional<Attempt> exchange_greetings() {
    if (!send(greeting(of_rank_))) {
      why_ = "it takes nothing";
      return again();
    }
    Greeting theirs;
    do {
      theirs = parse_greeting(reader_.bytes());
      if (theirs.kind == Greeting::Kind::foreign)
        return outcome(Attempt::Kind::foreign, fmt::format("{} answers, but it is no tutti store", where_));
    } while (theirs.kind == Greeting::Kind::partial && receive());
    if (theirs.kind == Greeting::Kind::partial) return again();
    if (theirs.version != kProtocolVersion)
      return outcome(Attempt::Kind::foreign, fmt::format("the store at {} speaks protocol {}, this library {}", where_,
                                                         theirs.version, kProtocolVersion));
    reader_.take(kGreetingBytes);
    of_store_ = theirs.nonce;
    return std::nullopt;
  }

  std::optional<Attempt> exchange_proofs(const Credentials& credentials) {
    const Proof ours = prove(credentials, Role::rank, of_rank_, of_store_);
    if (!send({reinterpret_cast<const char*>(ours.data()), ours.size()})) {
      why_ = "it takes no proof";
      return again();
    }
    while (reader_.bytes().size() < kProofBytes)
      if (!receive()) return again();
    Proof theirs;
    std::copy_n(reader_.bytes().begin(), kProofBytes, reinterpret_cast<char*>(theirs.data()));
    reader_.take(kProofBytes);
    if (is_equal(theirs, prove(credentials, Role::store, of_rank_, of_store_))) return std::nullopt;
    return outcome(Attempt::Kind::stranger,
                   fmt::format("the store at {} is another job's, or TUTTI_SECRET differs", where_));
  }

  Attempt ask(const Message& join) {
    const Frame frame = encode(join);
    if (!send(*frame)) {
      why_ = "it takes no request";
      return again();
    }
    std::optional<Message> answer;
    while (!(answer = reader_.next()) && !reader_.is_broken())
      if (!receive()) return again();
    if (answer && answer->type == Message::Type::welcome) {
      Attempt result;
      result.kind = Attempt::Kind::reached;
      result.reached = Reached{std::move(socket_), std::move(reader_)};
      return result;
    }
    if (!answer || answer->type != Message::Type::refused) {
      why_ = "it sent what no store sends";
      return again();
    }
    const std::string text = fmt::format("the store at {} refuses: {}", where_, answer->body);
    if (answer->count != 0) return outcome(Attempt::Kind::ending, text);
    Attempt result = outcome(Attempt::Kind::refused, text);
    result.status = answer->rank >= 0 ? Status::peer_failed(answer->rank, text) : Status(answer->code, text);
    return result;
  }

  Socket socket_;
  const std::string where_;
  const Deadline deadline_;
  FrameReader reader_;
  FrameWriter writer_;
  const Nonce of_rank_ = fresh_nonce();
  Nonce of_store_{};
  bool ended_ = false;
  std::string why_;
};

}  // namespace

Attempt attempt(const Address& address, const Credentials& credentials, const Message& join, Deadline deadline) {
  auto socket = connect_to(address, within(deadline, kConnectUs));
  if (socket) return Entrance(std::move(*socket), address, within(deadline, kAnswerUs)).enter(credentials, join);
  Attempt result = outcome(Attempt::Kind::again, socket.status().message());
  if (socket.status().code() == Code::out_of_resources) {
    result.kind = Attempt::Kind::refused;
    result.status = socket.status();
  }
  return result;
}

Attempt attempt_all(const StorePlace& place, const Message& join, Deadline deadline) {
  Attempt all;
  for (const Address& address : place.addresses) {
    Attempt one = attempt(address, place.credentials, join, deadline);
    if (one.kind == Attempt::Kind::reached || one.kind == Attempt::Kind::refused) return one;
    all.text += (all.text.empty() ? "" : "; ") + one.text;
    all.kind = std::max(all.kind, one.kind);  // what answers says more than what does not
  }
  return all;
}

Status knock(const Address& address, const Credentials& credentials, Deadline deadline) {
  auto socket = connect_to(address, within(deadline, kConnectUs));
  TUTTI_RETURN_IF_ERROR(socket.status());
  return Entrance(std::move(*socket), address, within(deadline, kAnswerUs)).knock(credentials);
}

void Backoff::pause(Deadline deadline) {
  uint32_t random = 0;
  fill_random(&random, sizeof random);
  const int64_t us = next_us_ / 2 + random % (next_us_ / 2 + 1);
  next_us_ = std::min(2 * next_us_, kLongestPauseUs);
  sleep_us(std::min(us, deadline.remaining_us()));
}

}  // namespace tutti::internal
