#include "p2p_exchange.h"

#include <memory>
#include <vector>

#include "operation.h"

namespace tutti::perf {
namespace {

// One message is on its way while the receive for the next stands.
constexpr size_t kReceivesAhead = 2;

struct FreeWork {
  void operator()(tutti_work* work) const { static_cast<void>(tutti_work_free(work)); }
};
using Work = std::unique_ptr<tutti_work, FreeWork>;

// No string on the way of a call that succeeds: these are inside the measured time.
void must(tutti_status status, const char* what) {
  if (status != TUTTI_OK) [[unlikely]]
    require(status, what);
}

void send(const Side& side, uint64_t message) {
  must(tutti_send(side.group, side.send_slot(message), side.bytes, TUTTI_UINT8, side.peer(), nullptr), "send");
}

// The messages of one direction, as many under way as there are slots, taken in their order.
class Stream {
 public:
  Stream(uint64_t messages, size_t slots) : messages_(messages), works_(slots) {}

  bool is_open() const { return taken_ < messages_; }

 protected:
  bool has_room() const { return posted_ < messages_ && posted_ - taken_ < works_.size(); }
  uint64_t next() const { return posted_; }
  void post(tutti_work* work) { works_[posted_++ % works_.size()].reset(work); }
  // The oldest has ended. Its work is given back when its place is used again: then nothing waits for us.
  uint64_t wait(const char* what) {
    must(tutti_work_wait(works_[taken_ % works_.size()].get()), what);
    return taken_;
  }
  void free_slot() { ++taken_; }

 private:
  uint64_t messages_;
  uint64_t posted_ = 0, taken_ = 0;
  std::vector<Work> works_;
};

class Receives : public Stream {
 public:
  Receives(const Side& side, uint64_t messages) : Stream(messages, side.depth), side_(side) {}

  void fill() {
    while (has_room()) {
      tutti_work* work = nullptr;
      must(tutti_recv_async(side_.group, side_.recv_slot(next()), side_.bytes, TUTTI_UINT8, side_.peer(), nullptr,
                            &work),
           "recv_async");
      post(work);
    }
  }
  void take(Watcher& watcher) {
    watcher.after_recv(wait("recv"));
    free_slot();
  }

 private:
  const Side& side_;
};

class Sends : public Stream {
 public:
  Sends(const Side& side, uint64_t messages) : Stream(messages, side.depth), side_(side) {}

  void fill(Watcher& watcher) {
    while (has_room()) {
      watcher.before_send(next());
      tutti_work* work = nullptr;
      must(tutti_send_async(side_.group, side_.send_slot(next()), side_.bytes, TUTTI_UINT8, side_.peer(), nullptr,
                            &work),
           "send_async");
      post(work);
    }
  }
  void take() {
    wait("send");
    free_slot();
  }

 private:
  const Side& side_;
};

void begin(const Side& side, Watcher& watcher) {
  watcher.ready();
  must(tutti_barrier(side.group, nullptr), "barrier");
  watcher.started();
}

// Rank 0: send, post the receive after the one that stands, wait. Rank 1: wait, send, post. So a receive always stands
// before its message can leave, and posting one is done while a message is on its way.
void ping_pong_ahead(const Side& side, uint64_t messages, Watcher& watcher) {
  Receives in(side, messages);
  in.fill();
  begin(side, watcher);
  for (uint64_t i = 0; i < messages; ++i) {
    if (!side.starts()) in.take(watcher);
    watcher.before_send(i);
    send(side, i);
    in.fill();
    if (side.starts()) in.take(watcher);
  }
}

void ping_pong_blocking(const Side& side, uint64_t messages, Watcher& watcher) {
  const auto receive = [&](uint64_t message) {
    must(tutti_recv(side.group, side.recv_slot(message), side.bytes, TUTTI_UINT8, side.peer(), nullptr), "recv");
    watcher.after_recv(message);
  };
  begin(side, watcher);
  for (uint64_t i = 0; i < messages; ++i) {
    if (!side.starts()) receive(i);
    watcher.before_send(i);
    send(side, i);
    if (side.starts()) receive(i);
  }
}

// A send may end before its message has arrived, so the receiver says when it has everything.
void say_all_is_here(const Side& side, bool sent, bool received) {
  std::byte said{};
  tutti_work* work = nullptr;
  if (sent)
    must(tutti_recv_async(side.group, &said, 1, TUTTI_UINT8, side.peer(), nullptr, &work), "recv_async of the end");
  const Work end(work);
  const std::byte saying{};
  if (received) must(tutti_send(side.group, &saying, 1, TUTTI_UINT8, side.peer(), nullptr), "send of the end");
  if (sent) must(tutti_work_wait(end.get()), "recv of the end");
}

void stream(Test test, const Side& side, uint64_t messages, Watcher& watcher) {
  const bool sent = sends(test, side.rank);
  const bool received = receives(test, side.rank);
  Receives in(side, received ? messages : 0);
  Sends out(side, sent ? messages : 0);
  in.fill();
  begin(side, watcher);
  out.fill(watcher);
  while (in.is_open() || out.is_open()) {
    if (in.is_open()) {
      in.take(watcher);
      in.fill();
    }
    if (out.is_open()) {
      out.take();
      out.fill(watcher);
    }
  }
  say_all_is_here(side, sent, received);
}

}  // namespace

bool sends(Test test, int rank) { return test != Test::write_bw || rank == 0; }

bool receives(Test test, int rank) { return test != Test::write_bw || rank == 1; }

size_t under_way(const P2pOptions& options, uint64_t bytes) {
  switch (options.kind->test) {
    case Test::write_lat: return kReceivesAhead;
    case Test::send_lat: return 1;
    case Test::write_bw:
    case Test::bidirectional_bw: break;
  }
  return depth_for(options, bytes);
}

void exchange(Test test, const Side& side, uint64_t messages, Watcher& watcher) {
  switch (test) {
    case Test::write_lat: ping_pong_ahead(side, messages, watcher); break;
    case Test::send_lat: ping_pong_blocking(side, messages, watcher); break;
    case Test::write_bw:
    case Test::bidirectional_bw: stream(test, side, messages, watcher); break;
  }
  watcher.ended();
}

}  // namespace tutti::perf
