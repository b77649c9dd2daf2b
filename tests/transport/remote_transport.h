// A rank of the other guest: each call goes over a line to the servant there (remote_servant.h), which has the rank's
// true transport. As far as messages are concerned nothing is here but copies: what a request reads goes along with it,
// what it has written comes back with its completion.
#pragma once

#include <map>
#include <mutex>
#include <string>
#include <unordered_map>
#include <vector>

#include "tests/transport/make_verbs.h"
#include "tests/transport/remote_calls.h"
#include "tests/transport/remote_line.h"
#include "transport/transport.h"

namespace tutti::internal::conformance {

// Where a servant runs, as long as this lives.
class OtherGuest {
 public:
  explicit OtherGuest(std::string ip) : ip_(std::move(ip)), session_(line()) {}
  Line line() const { return Line::to(ip_, kServantPort); }

 private:
  const std::string ip_;
  const Line session_;
};

class RemoteTransport final : public Transport {
 public:
  RemoteTransport(const OtherGuest& guest, int rank, int ranks, const VerbsWay& way, Mail& mail);
  ~RemoteTransport() override;

  const char* name() const override { return "verbs"; }
  std::string address() const override { return address_; }
  Status reachable(std::string_view peer_address) const override;
  Status answers(std::string_view peer_address, Deadline deadline) const override;
  Status connect(int peer, std::string_view peer_address, Deadline deadline) override;
  std::vector<Watch> watches() override { return {{.fd = letters_.fd(), .key = 0}}; }
  void serve(uint64_t key) override;
  void deliver(int peer, std::string_view letter) override;
  void gets_no_letters(int peer) override;
  Result<void*> allocate(size_t bytes) override;
  Status release(void* memory) override;
  Status register_memory(void* memory, size_t bytes) override;
  Status unregister_memory(void* memory) override;
  Post post_send(const SendRequest& request) override;
  Post post_recv(const RecvRequest& request) override;
  Post post_reduce(const ReduceRequest& request) override;
  size_t poll(std::span<Completion> completions) override;
  void cancel(uint64_t channel) override;
  void forget(uint64_t channel) override;
  void disconnect(int peer) override;
  PeerFailure take_failure() override;
  void idle(Deadline deadline) override;

 private:
  struct Request {
    uint64_t channel = 0;
    Ticket ticket = 0;
    void* result = nullptr;  // null: it only reads
  };
  // Memory that the servant has too.
  struct Region {
    size_t bytes = 0;
    uint64_t place = 0;
  };

  template <class... Parts>
  Reader call(Call call, const Parts&... parts) const {
    return exchange(frame_of(call, parts...));
  }
  Reader exchange(Frame frame) const;
  Line take_line() const;
  void post_on(Reader& letter);
  Post post(Frame frame, const Request& request);
  // Where this memory lies in the other guest; 0: nowhere.
  uint64_t place_of(const void* memory) const;

  const OtherGuest& guest_;
  Mail& mail_;
  Line letters_;
  uint64_t number_ = 0;
  std::string address_;
  uint64_t next_request_ = 0;
  std::unordered_map<uint64_t, Request> requests_;
  std::map<const std::byte*, Region> regions_;
  mutable std::mutex mutex_;
  mutable std::vector<Line> lines_;  // those that no call uses now: as many as ever ran at once
};

}  // namespace tutti::internal::conformance
