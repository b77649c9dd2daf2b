#include "src/core/store/store_server.h"

#include <fmt/core.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <array>
#include <cerrno>

#include "src/base/thread.h"
#include "src/core/store/descriptors.h"
#include "src/core/store/rank_list.h"

namespace tutti::internal {
namespace {

constexpr uint64_t kWakeId = 0;  // then the listeners, then the connections
constexpr int kAcceptAtOnce = 32;
constexpr int64_t kFinishUs = 1'000'000;
constexpr int64_t kRestUs = 100'000;  // short of descriptors: accept again after this

uint64_t random_number() {
  uint64_t number = 0;
  fill_random(&number, sizeof number);
  return number;
}

}  // namespace

StoreServer::StoreServer(StoreOptions options, Listeners listeners)
    : credentials_(std::move(options.credentials)),
      listeners_(std::move(listeners)),
      port_(listeners_.port),
      roster_(options.size, random_number(), *this, std::move(options.on_complete)),
      next_id_(1 + listeners_.sockets.size()) {}

Result<std::unique_ptr<StoreServer>> StoreServer::start(StoreOptions options, Listeners listeners) {
  TUTTI_RETURN_IF_ERROR(reserve_descriptors(options.size));
  std::unique_ptr<StoreServer> server(new StoreServer(std::move(options), std::move(listeners)));
  TUTTI_RETURN_IF_ERROR(server->open());
  auto thread = start_thread("the store's thread", [raw = server.get()] { raw->run(); });
  if (!thread) return thread.status();
  server->thread_ = std::move(*thread);
  return server;
}

Status StoreServer::open() {
  epoll_ = Socket(epoll_create1(EPOLL_CLOEXEC));
  if (!epoll_) return Status::system(Code::out_of_resources, "epoll_create1 for the store", errno);
  wake_ = Socket(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
  if (!wake_) return Status::system(Code::out_of_resources, "eventfd for the store", errno);
  epoll_event event{};
  event.events = EPOLLIN;
  event.data.u64 = kWakeId;
  if (epoll_ctl(epoll_.fd(), EPOLL_CTL_ADD, wake_.fd(), &event) != 0)
    return Status::system(Code::out_of_resources, "epoll_ctl for the store", errno);
  for (size_t i = 0; i < listeners_.sockets.size(); ++i) {
    event.data.u64 = 1 + i;
    if (epoll_ctl(epoll_.fd(), EPOLL_CTL_ADD, listeners_.sockets[i].fd(), &event) != 0)
      return Status::system(Code::out_of_resources, "epoll_ctl for the store", errno);
  }
  return {};
}

StoreServer::~StoreServer() {
  if (!thread_.joinable()) return;
  {
    std::lock_guard lock(mutex_);
    stop_ = true;
  }
  wake();
  thread_.join();
}

void StoreServer::wake() {
  while (eventfd_write(wake_.fd(), 1) != 0 && errno == EINTR) {
  }
}

void StoreServer::run() {
  std::array<epoll_event, 64> events;
  while (true) {
    const int count = epoll_wait(epoll_.fd(), events.data(), static_cast<int>(events.size()), wait_ms());
    std::lock_guard lock(mutex_);
    for (int i = 0; i < count; ++i)
      handle(events[static_cast<size_t>(i)].data.u64, events[static_cast<size_t>(i)].events);
    drop_expired();
    write_dirty();
    if (rest_until_.passed()) watch_listeners(true);
    changed_.notify_all();
    if (stop_) break;
  }
  finish_writing(Deadline::after_us(kFinishUs));
}

// Until the first of those with limited time must go, or the rest is over.
int StoreServer::wait_ms() {
  std::lock_guard lock(mutex_);
  Deadline first = rest_until_;
  for (const auto& [id, deadline] : limited_) first = std::min(first, deadline);
  return first.is_never() ? -1 : first.poll_ms(60'000);
}

void StoreServer::handle(uint64_t id, uint32_t events) {
  if (id == kWakeId) {
    eventfd_t count = 0;
    eventfd_read(wake_.fd(), &count);
    return;
  }
  if (id <= listeners_.sockets.size()) return accept_some(listeners_.sockets[id - 1].fd());
  const auto found = connections_.find(id);
  if (found == connections_.end()) return;
  if (events & EPOLLOUT) dirty_.insert(id);
  if (events & ~static_cast<uint32_t>(EPOLLOUT)) read(id, found->second);
}

// A few at a time: strangers who come without end must not keep the store from its ranks.
void StoreServer::accept_some(int listener) {
  for (int i = 0; i < kAcceptAtOnce; ++i) {
    Socket socket(accept4(listener, nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK));
    if (socket) {
      if (limited_.size() >= kMaxStrangers) make_room();
      add(std::move(socket));
      continue;
    }
    if (errno == EINTR || errno == ECONNABORTED) continue;
    const bool is_full = errno == EMFILE || errno == ENFILE || errno == ENOBUFS || errno == ENOMEM;
    if (!is_full) return;
    if (!make_room()) return watch_listeners(false);
  }
}

// Drops the oldest connection that nobody would miss. False where there is none.
bool StoreServer::make_room() {
  if (limited_.empty()) return false;
  drop(limited_.begin()->first, "too many strangers");
  return true;
}

// Without a free descriptor a listener that is watched would be ready for ever.
void StoreServer::watch_listeners(bool on) {
  rest_until_ = on ? Deadline::never() : Deadline::after_us(kRestUs);
  for (size_t i = 0; i < listeners_.sockets.size(); ++i) {
    epoll_event event{};
    if (on) event.events = EPOLLIN;
    event.data.u64 = 1 + i;
    epoll_ctl(epoll_.fd(), EPOLL_CTL_MOD, listeners_.sockets[i].fd(), &event);
  }
}

void StoreServer::add(Socket socket) {
  const uint64_t id = next_id_++;
  epoll_event event{};
  event.events = EPOLLIN;
  event.data.u64 = id;
  if (epoll_ctl(epoll_.fd(), EPOLL_CTL_ADD, socket.fd(), &event) != 0) return;  // closed: its end may try again
  set_connection_options(socket.fd());
  Connection& connection = connections_[id];
  connection.from = remote_address(socket.fd()).text();
  connection.socket = std::move(socket);
  limited_.emplace(id, Deadline::after_us(kHandshakeTimeoutUs));
}

void StoreServer::read(uint64_t id, Connection& connection) {
  const bool is_member = roster_.is_member(id);
  const size_t most = is_member ? kLengthBytes + kMaxFrameBytes : kMaxStrangerBytes;
  const bool open = connection.reader.read_available(connection.socket.fd(), most);
  if (connection.phase == Phase::closing || connection.phase == Phase::draining) {
    connection.reader.take(connection.reader.bytes().size());
    if (!open) drop(id, connection.reader.why());
    return;
  }
  // What arrived before the end still counts: a goodbye, for one.
  if (!advance(id, connection)) return drop(id, "it sent what no rank sends");
  if (!open && connection.phase != Phase::draining) drop(id, connection.reader.why());
}

// Takes in what has arrived. False when it breaks the rules.
bool StoreServer::advance(uint64_t id, Connection& connection) {
  if (connection.phase == Phase::greeting && !greet(connection)) return false;
  if (connection.phase == Phase::proof && !check_proof(connection)) return false;
  dirty_.insert(id);
  return connection.phase != Phase::trusted || take_messages(id, connection);
}

bool StoreServer::greet(Connection& connection) {
  const Greeting theirs = parse_greeting(connection.reader.bytes());
  if (theirs.kind == Greeting::Kind::foreign) return false;
  if (theirs.kind == Greeting::Kind::partial) return true;
  connection.reader.take(kGreetingBytes);
  connection.of_rank = theirs.nonce;
  connection.of_store = fresh_nonce();
  connection.writer.put(std::make_shared<const std::string>(greeting(connection.of_store)));
  // Of another version no more is understood: it learns ours from the greeting.
  connection.phase = theirs.version == kProtocolVersion ? Phase::proof : Phase::closing;
  return true;
}

bool StoreServer::check_proof(Connection& connection) {
  const std::string_view bytes = connection.reader.bytes();
  if (bytes.size() < kProofBytes) return true;
  Proof theirs, ours{};
  std::copy_n(bytes.begin(), kProofBytes, reinterpret_cast<char*>(theirs.data()));
  connection.reader.take(kProofBytes);
  const bool known = is_equal(theirs, prove(credentials_, Role::rank, connection.of_rank, connection.of_store));
  if (known) ours = prove(credentials_, Role::store, connection.of_rank, connection.of_store);
  connection.writer.put(std::make_shared<const std::string>(ours.begin(), ours.end()));
  connection.phase = known ? Phase::trusted : Phase::closing;
  return true;
}

bool StoreServer::take_messages(uint64_t id, Connection& connection) {
  while (connection.phase == Phase::trusted) {
    auto message = connection.reader.next();
    if (!message) return !connection.reader.is_broken();
    if (!roster_.take(id, connection.from, std::move(*message))) return false;
    if (!roster_.is_member(id)) continue;
    limited_.erase(id);
    const Address near = local_address(connection.socket.fd());
    if (reached_at_.length == 0 && !near.is_loopback()) reached_at_ = near;
  }
  return true;
}

// Takes its own copy of `why`, which may lie in the connection that goes.
void StoreServer::drop(uint64_t id, std::string why) {
  connections_.erase(id);
  limited_.erase(id);
  dirty_.erase(id);
  roster_.lost(id, why);
}

void StoreServer::drop_expired() {
  std::vector<uint64_t> expired;
  for (const auto& [id, deadline] : limited_)
    if (deadline.passed()) expired.push_back(id);
  for (uint64_t id : expired) drop(id, "it took too long");
}

// The connection, if it is still written to: then it is dirty.
StoreServer::Connection* StoreServer::written_to(uint64_t id) {
  const auto found = connections_.find(id);
  if (found == connections_.end() || found->second.phase != Phase::trusted) return nullptr;
  dirty_.insert(id);
  return &found->second;
}

void StoreServer::send(uint64_t id, Frame frame) {
  if (Connection* connection = written_to(id)) connection->writer.put(std::move(frame));
}

void StoreServer::send_news(uint64_t id, Frame frame) {
  if (Connection* connection = written_to(id)) connection->writer.put_news(std::move(frame));
}

void StoreServer::close(uint64_t id) {
  const auto found = connections_.find(id);
  if (found == connections_.end()) return;
  found->second.phase = Phase::closing;
  limited_.insert_or_assign(id, Deadline::after_us(kHandshakeTimeoutUs));
  dirty_.insert(id);
}

// Losing one connection gives the others something to write: again until nothing is left.
void StoreServer::write_dirty() {
  while (!dirty_.empty()) {
    const uint64_t id = *dirty_.begin();
    dirty_.erase(dirty_.begin());
    const auto found = connections_.find(id);
    if (found == connections_.end()) continue;
    if (!write(id, found->second))
      drop(id, "it no longer takes messages");
    else if (found->second.writer.news_bytes() > kMaxNewsBytes)
      drop(id, fmt::format("it does not read: more than {} bytes wait for it", kMaxNewsBytes));
  }
}

// False when the connection has ended.
bool StoreServer::write(uint64_t id, Connection& connection) {
  const int fd = connection.socket.fd();
  if (!connection.writer.flush(fd)) return false;
  const bool watch = !connection.writer.is_empty();
  if (watch != connection.writable_watched) {
    epoll_event event{};
    event.events = EPOLLIN | (watch ? EPOLLOUT : 0u);
    event.data.u64 = id;
    if (epoll_ctl(epoll_.fd(), EPOLL_CTL_MOD, fd, &event) != 0) return false;
    connection.writable_watched = watch;
  }
  // Closing at once would cut off what is still under way: the other end closes, having read it.
  if (!watch && connection.phase == Phase::closing) {
    shutdown(fd, SHUT_WR);
    connection.phase = Phase::draining;
  }
  return true;
}

void StoreServer::finish_writing(Deadline deadline) {
  std::lock_guard lock(mutex_);
  write_dirty();
  for (auto& [id, connection] : connections_) {
    bool open = true;
    while (open && !connection.writer.is_empty() && !deadline.passed())
      open =
          wait_for(connection.socket.fd(), EPOLLOUT, deadline) != 0 && connection.writer.flush(connection.socket.fd());
  }
}

void StoreServer::tell(int rank, const Message& message) {
  std::lock_guard lock(mutex_);
  roster_.take_from_host(rank, message);
  write_dirty();
}

Status StoreServer::wait_until_left(int except, Deadline deadline) {
  std::unique_lock lock(mutex_);
  const auto is_done = [&] { return roster_.ranks_here(except).empty(); };
  while (!is_done()) {
    if (deadline.passed())
      return Status(Code::timeout,
                    fmt::format("{} had not left when the time was over", list_ranks(roster_.ranks_here(except))));
    changed_.wait_for(lock, std::chrono::microseconds(std::min<int64_t>(deadline.remaining_us(), 1'000'000)));
  }
  return {};
}

void StoreServer::wait_until_told(Deadline deadline) {
  std::unique_lock lock(mutex_);
  while (!roster_.all_told() && !deadline.passed())
    changed_.wait_for(lock, std::chrono::microseconds(std::min<int64_t>(deadline.remaining_us(), 1'000'000)));
}

void StoreServer::announce_end(int rank, const std::string& text) {
  std::lock_guard lock(mutex_);
  roster_.announce_end(rank, text);
  write_dirty();
}

Address StoreServer::reached_at() {
  std::lock_guard lock(mutex_);
  return reached_at_;
}

}  // namespace tutti::internal
