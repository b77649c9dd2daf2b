// A work: one run of a plan. It knows where the buffers are and how far each step is. Made once per plan and degree of
// concurrency, then used again and again. Guarded by the context's lock.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <memory>
#include <vector>

#include "src/base/clock.h"
#include "src/base/status.h"
#include "src/core/plan.h"
#include "transport/list.h"

namespace tutti::internal {

class Group;

// Where the operation's buffers are, for one run.
struct Buffers {
  const void* base[3] = {};           // by Buffer
  const void* const* pieces[2] = {};  // input and output, where they are lists
};

class Work : public Links<Work> {
 public:
  // States of a step beside "waits for n others".
  static constexpr uint32_t kPosted = std::numeric_limits<uint32_t>::max() - 1;
  static constexpr uint32_t kDone = std::numeric_limits<uint32_t>::max();

  Work(Plan& plan, Group& group, uint32_t id, void* scratch);
  ~Work();

  Plan& plan() const { return plan_; }
  Group& group() const { return group_; }
  uint32_t id() const { return id_; }
  void* scratch() const { return scratch_; }

  // Ready for a new run on a group of `size` ranks. Lists of pieces are copied.
  void reset(const Buffers& buffers, int size) {
    buffers_ = buffers;
    buffers_.base[static_cast<int>(Buffer::scratch)] = scratch_;
    if (buffers.pieces[0] || buffers.pieces[1]) [[unlikely]]
      copy_lists(size);
    if (!status.ok()) [[unlikely]]
      status = Status();
    done = false;
    has_deadline = false;
    warned = false;
    then = nullptr;
    remaining = static_cast<uint32_t>(state.size());
    std::ranges::copy(plan_.dependency_counts(), state.begin());
  }

  // The group's channel in the transport.
  uint64_t channel() const { return channel_; }
  // The address of a slice.
  std::byte* at(const Slice& slice) const {
    const int buffer = static_cast<int>(slice.buffer);
    const void* address = slice.buffer != Buffer::scratch && buffers_.pieces[buffer]
                              ? in_list(slice)
                              : static_cast<const std::byte*>(buffers_.base[buffer]) + slice.offset;
    return static_cast<std::byte*>(const_cast<void*>(address));
  }

  uintptr_t handle = 0;  // that a caller holds, while the group's list has this

  Status status;  // of a work that is done
  bool done = true;
  uint64_t match_base = 0;  // what the messages' numbers are added to
  uint32_t sequence = 0;    // the operation's number in its group, for people
  int64_t timeout_us = 0;
  Deadline deadline = Deadline::never();
  bool has_deadline = false;  // false: not taken yet from timeout_us
  bool warned = false;
  int64_t started_us = 0;
  uint32_t remaining = 0;       // steps that are not done
  std::vector<uint32_t> state;  // per step: how many it waits for, kPosted or kDone

  // Room for one step's request with this run's match values.
  std::vector<ReduceOperand> operands;
  std::vector<const void*> sources;

  // Runs when this one has ended well: an operation behind the comparison of its signatures.
  Work* then = nullptr;
  // The operation that this is about, for people.
  const Work& shown() const { return then ? *then : *this; }
  // Copies of the lists of pieces, since the caller's arrays are his again when the call returns.
  std::vector<const void*> piece_lists[2];
  // Where the running list has it.
  size_t running_index = 0;
  // This rank's signature and then every rank's, while they are compared.
  std::vector<std::byte> comparison;

 private:
  void copy_lists(int size);
  const void* in_list(const Slice& slice) const;

  Plan& plan_;
  Group& group_;
  uint32_t id_;
  uint64_t channel_;
  void* scratch_;
  Buffers buffers_;
};

}  // namespace tutti::internal
