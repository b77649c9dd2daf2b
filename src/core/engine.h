// The executor: posts the steps of works that wait for nothing, and lets completions release the steps that waited for
// them. One per context; the context's lock is held in every call.
//
// Nothing here allocates in steady state, and no call waits.
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <utility>
#include <vector>

#include "src/core/work.h"
#include "transport/transport.h"

namespace tutti::internal {

// What the executor tells about works; the calls come from inside start and poll.
class EngineEvents {
 public:
  virtual ~EngineEvents() = default;
  // All steps are done. The work may be started again from inside the call.
  virtual void work_ended(Work& work) = 0;
  // A step cannot be done. The owner ends the work (and its group) by `end`.
  virtual void work_failed(Work& work, Status status) = 0;
};

class Engine {
 public:
  Engine(Transport& transport, EngineEvents& events);

  // Works are known to completions by number.
  uint32_t add(Work* work);
  void set(uint32_t id, Work* work) { works_[id] = work; }
  void remove(uint32_t id);

  // Starts a work that was reset.
  void start(Work& work);
  // Moves everything that can move. False when nothing did.
  bool poll();
  // Ends a running work that cannot go on; its channel has been cancelled in the transport.
  void end(Work& work, const Status& status);

  // Whether the transport has refused a post because a peer is gone, since the last time this was asked. The step
  // waits: who is gone, and in which order, the owner learns elsewhere, and then ends the work.
  bool was_refused() { return std::exchange(refused_, false); }

  // Works that are not done.
  std::span<Work* const> running() const { return running_; }

 private:
  struct StepRef {
    Work* work;
    uint32_t step;
  };

  void post(StepRef ref);
  Post post_step(Work& work, uint32_t index);
  Post post_send(Work& work, const Step& step, Ticket ticket);
  Post post_recv(Work& work, const Step& step, Ticket ticket);
  Post post_reduce(Work& work, const Step& step, Ticket ticket);
  void complete(StepRef ref);
  void on_completion(const Completion& completion);
  void run_ready();
  bool retry_later();
  void stop_running(Work& work);

  Transport& transport_;
  EngineEvents& events_;
  std::vector<Work*> works_;
  std::vector<uint32_t> free_ids_;
  std::vector<Work*> running_;
  std::vector<StepRef> ready_;  // steps that wait for nothing, oldest first from ready_head_
  size_t ready_head_ = 0;
  bool running_ready_ = false;
  std::array<Completion, 64> completions_;
  std::vector<StepRef> later_;  // steps that the transport could not take yet
  std::vector<StepRef> retry_;
  bool refused_ = false;
};

}  // namespace tutti::internal
