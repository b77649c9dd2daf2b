// How the messages of one test go between the two ranks. The same code moves the measured messages and the checked
// ones; what differs is who watches.
#pragma once

#include <tutti/tutti.h>

#include <cstddef>
#include <cstdint>

#include "p2p_options.h"

namespace tutti::perf {

// One rank's side. Messages lie in slots, `stride` bytes apart; message k in slot k modulo their number. Each of those
// that come at once has a slot of its own; those that go may share one, which is only read.
struct Side {
  tutti_group* group;
  int rank;
  size_t bytes;
  size_t stride;
  size_t depth;  // messages under way at once in each direction, and slots for those that come
  std::byte* recv_slots;
  std::byte* send_slots;
  size_t send_slot_count;

  bool starts() const { return rank == 0; }
  int peer() const { return 1 - rank; }
  std::byte* send_slot(uint64_t message) const { return send_slots + message % send_slot_count * stride; }
  std::byte* recv_slot(uint64_t message) const { return recv_slots + message % depth * stride; }
};

// Told what happens on this rank, in time. Messages are counted from 0, for each direction.
class Watcher {
 public:
  virtual ~Watcher() = default;
  // This rank has posted the receives that stand from the beginning; the other cannot have sent anything yet.
  virtual void ready() {}
  // Both ranks were ready, and this one has not sent anything. The other may have.
  virtual void started() {}
  virtual void before_send(uint64_t /*message*/) {}
  // Its slot is the watcher's until this returns.
  virtual void after_recv(uint64_t /*message*/) {}
  // This rank has received all that it shall, and of what it sent the other has said so (in the tests of latency the
  // last answer says it).
  virtual void ended() {}
};

// Whether messages of the test go out from, or come in to, this rank.
bool sends(Test test, int rank);
bool receives(Test test, int rank);
// Messages of the test that are under way at once in each direction, or may be.
size_t under_way(const P2pOptions& options, uint64_t bytes);

// `messages` in each direction that the test has, one or more. Both ranks call it. Throws std::runtime_error when the
// library fails.
void exchange(Test test, const Side& side, uint64_t messages, Watcher& watcher);

}  // namespace tutti::perf
