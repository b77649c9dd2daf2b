// Tries by pings whether packets go between our ports and those of other ranks: datagrams, as long as the longest
// packets of the connections would be, on each path, both ways.
//
// Each end sends one every few milliseconds until it has heard the other and has been told that the other has heard it.
// Nobody's end depends on the last word: what counts is what each has heard, and a rank that has heard all and does not
// know whether it was heard only sends longer than it needs to. What came before probe() counts too, since the queues
// take it from the moment when the address is made: ranks need not begin at the same time.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <unordered_map>
#include <vector>

#include "src/base/clock.h"
#include "transport/prober.h"
#include "transport/verbs/address.h"
#include "transport/verbs/ping_queue.h"
#include "transport/verbs/port.h"
#include "transport/verbs/settings.h"

namespace tutti::internal::verbs {

class Pinger final : public Prober {
 public:
  // Tells in `own`, which is not published yet, where pings can be sent to. A port that has no queue for them is
  // logged, and its paths are not tried. The ports outlive the pinger.
  static std::unique_ptr<Pinger> create(std::span<const std::unique_ptr<Port>> ports, Address& own,
                                        const Settings& settings);

  std::vector<Hearing> probe(std::span<const Peer> peers, Deadline deadline) override;
  std::vector<Hearing> listen() override;

 private:
  // A path to a peer.
  struct Track {
    size_t peer = 0;  // index in targets_
    int number = 0;   // of those to this peer
    Path path;
    uint32_t pair_number = 0;  // at the other end
    AddressHandle handle;
    std::string untried;  // why nothing is sent
    std::string refusal;  // the device's, of the last that should have been sent
    bool has_heard = false;
    bool is_heard = false;
    int more = 0;  // are sent now
    int64_t due_us = 0;

    bool is_tried() const { return untried.empty(); }
    bool is_done() const { return !is_tried() || handle == nullptr || (has_heard && is_heard && more == 0); }
  };
  struct Target {
    Address address;
    std::vector<Track> tracks;
    std::string trouble;  // its address cannot be used
  };

  Pinger(const Settings& settings) : settings_(settings) {}
  Target target_of(const Peer& peer) const;
  std::string why_untried(const Track& track, const Address& peer, bool by_cm) const;
  void prepare(Target& target);
  bool is_done() const;
  bool take();
  void on_ping(size_t port, std::span<const std::byte> bytes);
  void send_due(Target& target);
  std::vector<Hearing> hearings() const;
  Hearing hearing_of(const Target& target) const;
  PingQueue& queue(const Track& track) { return *queues_[static_cast<size_t>(track.path.own_port)]; }

  const Settings settings_;
  Address own_;
  std::vector<std::unique_ptr<PingQueue>> queues_;  // by port; null: it has none
  std::vector<Target> targets_;
  std::unordered_map<int, size_t> target_of_rank_;
  int64_t every_us_ = 0;
  int64_t limit_us_ = 0;
};

}  // namespace tutti::internal::verbs
