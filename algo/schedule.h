// A schedule: what one rank does for one operation, as data. Steps name slices of the operation's buffers, never
// addresses, and depend on earlier steps; it can therefore be cached, printed, compared, proved and simulated.
//
// Matching: the k-th message that A sends to B (in step order, and within a step in peer order) is the k-th that B
// takes from A. `reduce` takes one message from each operand that is a peer. Order: steps stand in an order in which
// each depends only on earlier ones.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

namespace tutti::internal {

// A step's index in its schedule; kNoStep where a step vanished.
using StepId = int32_t;
inline constexpr StepId kNoStep = -1;

// Of a reduction: whether its result has every contribution.
enum class Finish : bool { no, yes };

enum class Buffer : uint8_t { input, output, scratch };

struct Slice {
  Buffer buffer = Buffer::scratch;
  uint64_t offset = 0;
  uint64_t bytes = 0;
  bool operator==(const Slice&) const = default;
};

// An operand of a reduction: the next message of a peer, or local memory (peer == kLocal).
struct Operand {
  static constexpr int32_t kLocal = -1;
  int32_t peer = kLocal;
  Slice slice{};  // local operands only
  bool operator==(const Operand&) const = default;
};

enum class StepKind : uint8_t {
  send,    // offers `slice` to all peers of the step
  recv,    // takes a message of one peer into `slice`
  reduce,  // slice = operands combined in their order, in one pass; `slice` may be equal to a local operand
  copy,    // slice = source
};

struct Step {
  StepKind kind{};
  bool finish = false;                      // reduce: `slice` now has every contribution, and average divides here
  Slice slice{};                            // what is sent, or where the result goes
  Slice source{};                           // copy
  uint32_t first_peer = 0, peer_count = 0;  // into Schedule::peers: send, recv
  uint32_t first_operand = 0, operand_count = 0;      // into Schedule::operands: reduce
  uint32_t first_successor = 0, successor_count = 0;  // into Schedule::successors
  uint32_t dependency_count = 0;                      // how many earlier steps name this one as successor
};

struct Schedule {
  std::vector<Step> steps;
  std::vector<int32_t> peers;
  std::vector<Operand> operands;
  std::vector<uint32_t> successors;
  uint64_t scratch_bytes = 0;

  std::span<const int32_t> peers_of(const Step& step) const {
    return {peers.data() + step.first_peer, step.peer_count};
  }
  std::span<const Operand> operands_of(const Step& step) const {
    return {operands.data() + step.first_operand, step.operand_count};
  }
  std::span<const uint32_t> successors_of(const Step& step) const {
    return {successors.data() + step.first_successor, step.successor_count};
  }
};

// One line per step: "3 recv from 2 -> scratch[0,4096)  after 1 2".
std::string to_text(const Schedule& schedule);
// One step, without what it waits for: "3 recv from 2 -> scratch[0,4096)".
std::string to_text(const Schedule& schedule, StepId step);
// The dependency graph for Graphviz.
std::string to_dot(const Schedule& schedule, const std::string& title);

}  // namespace tutti::internal
