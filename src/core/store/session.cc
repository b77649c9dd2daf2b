#include "src/core/store/session.h"

#include <fmt/core.h>
#include <poll.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>

#include <algorithm>
#include <cerrno>

#include "src/core/store/rank_list.h"

namespace tutti::internal {
namespace {

constexpr int64_t kVerdictUs = 2'000'000;  // for the store's answer to a rank whose time is over
constexpr int64_t kGoodbyeUs = 2'000'000;

Message make(Message::Type type) {
  Message message;
  message.type = type;
  return message;
}

Status as_status(const Message& message, const std::string& text) {
  return message.rank >= 0 && message.code == Code::peer_failed ? Status::peer_failed(message.rank, text)
                                                                : Status(message.code, text);
}

}  // namespace

Session::Session(const Rendezvous& rendezvous)
    : rank_(rendezvous.rank), size_(rendezvous.size), served_by_rank_(rendezvous.served_by_rank) {}

Session::~Session() = default;

Status Session::open(Socket socket, FrameReader reader) {
  epoll_ = Socket(epoll_create1(EPOLL_CLOEXEC));
  if (!epoll_) return Status::system(Code::out_of_resources, "epoll_create1 for the store", errno);
  kick_ = Socket(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
  if (!kick_) return Status::system(Code::out_of_resources, "eventfd for the store", errno);
  for (int fd : {socket.fd(), kick_.fd()}) {
    epoll_event event{};
    event.events = EPOLLIN;
    event.data.fd = fd;
    if (epoll_ctl(epoll_.fd(), EPOLL_CTL_ADD, fd, &event) != 0)
      return Status::system(Code::out_of_resources, "epoll_ctl for the store", errno);
  }
  const Address near = local_address(socket.fd());
  local_host_ = near.host();
  where_ = fmt::format("rank {} ({})", rank_, near.text());
  store_ = fmt::format("the store at {}", remote_address(socket.fd()).text());
  socket_ = std::move(socket);
  reader_ = std::move(reader);
  return {};
}

Status Session::await_ready(Deadline deadline) {
  bool given_up = false;
  while (true) {
    auto message = receive_or_give_up("", deadline, given_up);
    if (!message) return message.status();
    if (message->type == Message::Type::refused)
      return as_status(*message, fmt::format("{}: {}", where_, message->body));
    if (message->type != Message::Type::ready) continue;
    job_ = message->number;
    wake_for_rest();
    return {};
  }
}

Result<std::vector<std::string>> Session::exchange(std::string_view key, std::string value, Deadline deadline) {
  if (key.empty() || key.size() > kMaxNameBytes)
    return Status(Code::invalid_argument,
                  fmt::format("an exchange's key has {} bytes: allowed are 1 to {}", key.size(), kMaxNameBytes));
  if (value.size() > kMaxBodyBytes)
    return Status(Code::invalid_argument, fmt::format("the value for the exchange \"{}\" has {} bytes: allowed are {}",
                                                      key, value.size(), kMaxBodyBytes));
  if (size_ == 1) return std::vector<std::string>{std::move(value)};
  Message give = make(Message::Type::give);
  give.name = key;
  give.body = std::move(value);
  send(give);
  auto values = await_values(give.name, deadline);
  wake_for_rest();
  return values;
}

Result<std::vector<std::string>> Session::await_values(const std::string& key, Deadline deadline) {
  std::vector<std::string> values(size_);
  size_t missing = values.size();
  bool given_up = false;
  while (missing > 0) {
    TUTTI_RETURN_IF_ERROR(gone());
    auto message = receive_or_give_up(key, deadline, given_up);
    if (!message) return message.status();
    TUTTI_RETURN_IF_ERROR(collect(*message, key, values, missing));
  }
  return values;
}

Status Session::collect(const Message& message, const std::string& key, std::vector<std::string>& values,
                        size_t& missing) {
  if (message.name != key) return {};  // late news of an exchange that was given up
  if (message.type == Message::Type::exchange_failed)
    return as_status(message, fmt::format("{}: {}", where_, message.body));
  if (message.type != Message::Type::value || message.rank < 0 || message.rank >= size_) return {};
  values[message.rank] = message.body;
  --missing;
  return {};
}

// Not ok once a rank is known to be gone: what all must take part in will not be done.
Status Session::gone() const {
  if (!failed_.empty()) return Status::peer_failed(*failed_.begin(), fmt::format("{}: {}", where_, first_failure_));
  if (!gone_in_order_.empty())
    return Status::peer_failed(*gone_in_order_.begin(),
                               fmt::format("{}: rank {} has left the world", where_, *gone_in_order_.begin()));
  return {};
}

// The store knows who is missing: asks it at the deadline, and all ranks then get the same answer.
Result<Message> Session::receive_or_give_up(const std::string& key, Deadline deadline, bool& given_up) {
  const int64_t started = now_us();
  auto message = receive(given_up ? Deadline::after_us(kVerdictUs) : deadline);
  if (message || message.status().code() != Code::timeout) return message;
  if (given_up) return Status(Code::timeout, fmt::format("{}: {} does not answer any more", where_, store_));
  given_up = true;
  Message give_up = make(Message::Type::give_up);
  give_up.name = key;
  give_up.number = static_cast<uint64_t>(now_us() - started);
  send(give_up);
  return receive_or_give_up(key, deadline, given_up);
}

// The next message that is no news.
Result<Message> Session::receive(Deadline deadline) {
  while (true) {
    while (auto message = reader_.next()) {
      if (!take_news(*message)) return std::move(*message);
      TUTTI_RETURN_IF_ERROR(gone());
    }
    settle();
    if (lost_) return Status::peer_failed(0, fmt::format("{}: {}", where_, first_failure_));
    bool unsent = false;
    {
      std::lock_guard lock(send_mutex_);
      unsent = !writer_.is_empty();
    }
    const short ready = wait_for(socket_.fd(), static_cast<short>(POLLIN | (unsent ? POLLOUT : 0)), deadline);
    if (ready == 0) return Status(Code::timeout, "");
    if (ready & POLLOUT) {
      std::lock_guard lock(send_mutex_);
      flush_locked();
    }
    if (ready & ~POLLOUT) read();
  }
}

void Session::read() {
  if (!lost_ && !ended_) ended_ = !reader_.read_available(socket_.fd(), kLengthBytes + kMaxFrameBytes);
}

// Once all that arrived is taken in: whether it was the last.
void Session::settle() {
  if (reader_.is_broken())
    note_loss("it sent what no store sends");
  else if (ended_)
    note_loss(reader_.why());
}

void Session::send(const Message& message) {
  std::lock_guard lock(send_mutex_);
  writer_.put(encode(message));
  flush_locked();
}

// The rank that hosts the store tells it without a connection, and so even while its own is not read.
void Session::tell(const Message& message) {
  if (server_)
    server_->tell(rank_, message);
  else
    send(message);
}

// What the socket does not take now goes when it is writable: `fd` then wakes whoever serves. That the connection has
// ended is for the reading side to find.
void Session::flush_locked() {
  if (!socket_) return;
  if (!writer_.flush(socket_.fd())) writer_ = {};
  epoll_event event{};
  event.events = EPOLLIN | (writer_.is_empty() ? 0u : EPOLLOUT);
  event.data.fd = socket_.fd();
  epoll_ctl(epoll_.fd(), EPOLL_CTL_MOD, socket_.fd(), &event);
}

void Session::report_failed(int rank, std::string_view reason) {
  if (size_ == 1) return;
  Message message = make(Message::Type::peer_failed);
  message.rank = rank;
  message.body = reason;
  tell(message);
}

void Session::abort(uint64_t channel, const Status& why, int awaited) {
  if (size_ == 1) return;
  Message message = make(Message::Type::abort);
  message.number = channel;
  message.code = why.code();
  message.failed = awaited >= 0 ? awaited : why.failed_rank();
  message.body = why.message();
  tell(message);
}

Status Session::send_letter(int rank, std::string_view body) {
  if (size_ == 1) return {};
  if (body.size() > kMaxLetterBytes)
    return Status(Code::internal, fmt::format("{}: a letter to rank {} has {} bytes: allowed are {}", where_, rank,
                                              body.size(), kMaxLetterBytes));
  if (rank < 0 || rank >= size_)
    return Status(Code::internal, fmt::format("{}: a letter to rank {} in a world of {}", where_, rank, size_));
  Message message = make(Message::Type::letter);
  message.rank = rank;
  message.body = body;
  tell(message);
  return {};
}

void Session::serve(const std::function<void(const Event&)>& on_event) {
  if (size_ == 1) return;
  eventfd_t count = 0;
  eventfd_read(kick_.fd(), &count);
  {
    std::lock_guard lock(send_mutex_);
    if (!writer_.is_empty()) flush_locked();
  }
  read();
  while (auto message = reader_.next()) take_news(*message);
  settle();
  eventfd_read(kick_.fd(), &count);
  for (const Event& event : std::exchange(events_, {})) on_event(event);
}

// False: it is an answer.
bool Session::take_news(Message& message) {
  if (message.type == Message::Type::letter) {
    note({.kind = Event::Kind::letter, .rank = message.rank, .text = std::move(message.body)});
    return true;
  }
  if (message.type != Message::Type::event) return false;
  const auto kind = static_cast<Event::Kind>(message.count);
  if (kind >= Event::Kind::peer_failed && kind <= Event::Kind::store_lost)
    note({kind, message.rank, message.number, message.code, message.failed, std::move(message.body)});
  return true;
}

// News may lie behind the answer that was waited for, where the socket shows it no more.
void Session::wake_for_rest() {
  if (!reader_.bytes().empty()) eventfd_write(kick_.fd(), 1);
}

void Session::note(Event event) {
  using Kind = Event::Kind;
  if (event.rank < 0 || event.rank >= size_) return;
  if (event.kind == Kind::left) gone_in_order_.insert(event.rank);
  if (event.kind == Kind::store_lost) loss_told_ = true;
  if (event.kind == Kind::peer_failed && failed_.insert(event.rank).second && first_failure_.empty())
    first_failure_ = fmt::format("rank {} failed: {}", event.rank, event.text);
  events_.push_back(std::move(event));
  eventfd_write(kick_.fd(), 1);
}

// Rank 0 hosts the store: its end is rank 0's. Unless rank 0 had said goodbye, or the launcher is the host.
void Session::note_loss(const std::string& why) {
  if (lost_) return;
  lost_ = true;
  epoll_ctl(epoll_.fd(), EPOLL_CTL_DEL, socket_.fd(), nullptr);
  const bool is_death = served_by_rank_ && rank_ != 0 && !gone_in_order_.contains(0);
  const std::string text =
      is_death ? fmt::format("its {} is gone: {}", store_.substr(4), why) : fmt::format("{} is gone: {}", store_, why);
  if (first_failure_.empty()) first_failure_ = is_death ? "rank 0 failed: " + text : text;
  if (loss_told_) return;
  note({is_death ? Event::Kind::peer_failed : Event::Kind::store_lost, 0, 0, Code::peer_failed, 0, text});
}

void Session::say_goodbye(Deadline deadline) {
  if (lost_) return;
  loss_told_ = true;
  send(make(Message::Type::goodbye));
  while (!lost_ && !deadline.passed()) {
    bool unsent = false;
    {
      std::lock_guard lock(send_mutex_);
      flush_locked();
      unsent = !writer_.is_empty();
      if (!unsent) shutdown(socket_.fd(), SHUT_WR);
    }
    wait_for(socket_.fd(), static_cast<short>(POLLIN | (unsent ? POLLOUT : 0)), deadline);
    read();
    reader_.take(reader_.bytes().size());
    settle();
  }
}

Status Session::leave(Deadline deadline) {
  if (size_ == 1) return {};
  // A store that reads no more cannot keep this rank: the goodbye is under way, and the kernel delivers it.
  say_goodbye(std::min(deadline, Deadline::after_us(kGoodbyeUs)));
  if (!server_) return {};
  Status left = server_->wait_until_left(rank_, deadline);
  if (!left.ok()) {
    server_->announce_end(rank_, fmt::format("rank {}, which hosted the store, has left and waited no longer", rank_));
    left = Status(left.code(), fmt::format("{}: {}", where_, left.message()));
  }
  server_.reset();
  return left;
}

}  // namespace tutti::internal
