#include "src/core/engine.h"

#include <fmt/core.h>

#include <cstring>

#include "src/core/trace.h"

namespace tutti::internal {
namespace {

// Steps that are ready or have to wait: room for so many from the start, so that a rare moment allocates nothing.
constexpr size_t kUsualSteps = 1024;

Ticket ticket_of(uint32_t work_id, uint32_t step) { return static_cast<uint64_t>(work_id) << 32 | step; }

}  // namespace

Engine::Engine(Transport& transport, EngineEvents& events) : transport_(transport), events_(events) {
  for (std::vector<StepRef>* steps : {&ready_, &later_, &retry_}) steps->reserve(kUsualSteps);
  running_.reserve(kUsualSteps);
}

uint32_t Engine::add(Work* work) {
  if (free_ids_.empty()) {
    works_.push_back(work);
    return static_cast<uint32_t>(works_.size() - 1);
  }
  const uint32_t id = free_ids_.back();
  free_ids_.pop_back();
  works_[id] = work;
  return id;
}

void Engine::remove(uint32_t id) {
  works_[id] = nullptr;
  free_ids_.push_back(id);
}

void Engine::start(Work& work) {
  work.running_index = running_.size();
  running_.push_back(&work);
  if (work.remaining == 0) {
    stop_running(work);
    events_.work_ended(work);
  }
  for (uint32_t root : work.plan().roots()) post({&work, root});
  run_ready();
}

bool Engine::poll() {
  const size_t count = transport_.poll(completions_);
  for (size_t i = 0; i < count; ++i) on_completion(completions_[i]);
  run_ready();
  const bool retried = !later_.empty() && retry_later();
  return count > 0 || retried;
}

void Engine::on_completion(const Completion& completion) {
  Work* work = works_[completion.ticket >> 32];
  const auto step = static_cast<uint32_t>(completion.ticket);
  // A completion in the same batch as its work's failure comes too late.
  if (!work || work->done || work->state[step] != Work::kPosted) return;
  if (completion.code == Code::ok) return complete({work, step});
  // The other end has given the operation up: its reason is on the way, through the store.
  if (completion.code == Code::aborted) return;
  events_.work_failed(*work, step_error(*work, step, completion));
}

// Steps become ready while steps complete; one loop at the outermost level keeps the stack flat.
void Engine::run_ready() {
  if (ready_.empty() || running_ready_) return;
  running_ready_ = true;
  while (ready_head_ < ready_.size()) post(ready_[ready_head_++]);
  ready_.clear();
  ready_head_ = 0;
  running_ready_ = false;
}

bool Engine::retry_later() {
  retry_.swap(later_);
  for (const StepRef& ref : retry_) post(ref);
  const bool moved = later_.size() < retry_.size();
  retry_.clear();
  run_ready();
  return moved;
}

void Engine::post(StepRef ref) {
  Work& work = *ref.work;
  if (work.done) return;
  work.state[ref.step] = Work::kPosted;
  switch (post_step(work, ref.step)) {
    case Post::done: complete(ref); return;
    case Post::posted: return;
    case Post::failed: refused_ = true; [[fallthrough]];
    case Post::later: work.state[ref.step] = 0; later_.push_back(ref);
  }
}

Post Engine::post_step(Work& work, uint32_t index) {
  const Step& step = work.plan().schedule().steps[index];
  const Ticket ticket = ticket_of(work.id(), index);
  switch (step.kind) {
    case StepKind::send: return post_send(work, step, ticket);
    case StepKind::recv: return post_recv(work, step, ticket);
    case StepKind::reduce: return post_reduce(work, step, ticket);
    case StepKind::copy: break;
  }
  std::memcpy(work.at(step.slice), work.at(step.source), step.slice.bytes);
  return Post::done;
}

Post Engine::post_send(Work& work, const Step& step, Ticket ticket) {
  return transport_.post_send(
      {work.channel(), work.plan().messages(step), work.match_base, work.at(step.slice), step.slice.bytes, ticket});
}

Post Engine::post_recv(Work& work, const Step& step, Ticket ticket) {
  const Endpoint& message = work.plan().messages(step)[0];
  return transport_.post_recv(
      {work.channel(), {message.peer, work.match_base + message.match}, work.at(step.slice), step.slice.bytes, ticket});
}

Post Engine::post_reduce(Work& work, const Step& step, Ticket ticket) {
  const Plan& plan = work.plan();
  const auto operands = plan.schedule().operands_of(step);
  Reduction reduction = plan.reduction();
  if (!step.finish) reduction.divisor = 0;
  const size_t element_count = step.slice.bytes / reduction.element_bytes;
  if (!plan.takes_messages(step)) {
    for (size_t i = 0; i < operands.size(); ++i) work.sources[i] = work.at(operands[i].slice);
    reduction.kernel(work.at(step.slice), work.sources.data(), static_cast<int>(operands.size()), element_count,
                     reduction.divisor);
    return Post::done;
  }
  const auto messages = plan.operand_messages(step);
  for (size_t i = 0; i < operands.size(); ++i) {
    const bool local = messages[i].peer < 0;
    work.operands[i].from = {messages[i].peer, work.match_base + messages[i].match};
    work.operands[i].local = local ? work.at(operands[i].slice) : nullptr;
  }
  return transport_.post_reduce(
      {work.channel(), {work.operands.data(), operands.size()}, work.at(step.slice), element_count, reduction, ticket});
}

void Engine::complete(StepRef ref) {
  Work& work = *ref.work;
  const Schedule& schedule = work.plan().schedule();
  work.state[ref.step] = Work::kDone;
  for (uint32_t successor : schedule.successors_of(schedule.steps[ref.step]))
    if (--work.state[successor] == 0) ready_.push_back({&work, successor});
  if (--work.remaining > 0) return;
  stop_running(work);
  events_.work_ended(work);
}

void Engine::end(Work& work, const Status& status) {
  if (work.done) return;
  stop_running(work);
  work.status = status;
  std::erase_if(later_, [&](const StepRef& ref) { return ref.work == &work; });
}

void Engine::stop_running(Work& work) {
  work.done = true;
  running_.back()->running_index = work.running_index;
  running_[work.running_index] = running_.back();
  running_.pop_back();
}

}  // namespace tutti::internal
