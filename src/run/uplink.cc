#include "src/run/uplink.h"

#include <utility>

namespace tutti::internal {
namespace {

constexpr int64_t kJobSilenceUs = 30'000'000;  // until the job says how long it may be
constexpr int64_t kFinishUs = 5'000'000;
constexpr int kLongestWaitMs = 1000;

}  // namespace

Uplink::Uplink(UniqueFd in, UniqueFd out) : link_(Link::Side::agent, std::move(in), std::move(out), kJobSilenceUs) {}

Result<std::unique_ptr<Uplink>> Uplink::create(UniqueFd in, UniqueFd out) {
  auto pipes = RankPipes::create();
  TUTTI_RETURN_IF_ERROR(pipes.status());
  std::unique_ptr<Uplink> uplink(new Uplink(std::move(in), std::move(out)));
  uplink->pipes_ = std::move(*pipes);
  return uplink;
}

Result<AgentJob> Uplink::await_job() {
  while (true) {
    link_.serve(true);
    if (const auto message = link_.next()) {
      if (message->type != LinkMessage::Type::job) return Status(Code::mismatch, "what came is no job");
      auto job = decode_agent_job(message->text);
      if (job) link_.set_silence(job->silence_us);
      return job;
    }
    if (!link_.is_open()) return Status(Code::aborted, "the connection ended before a job came: " + link_.why());
    std::vector<pollfd> polls;
    link_.add_polls(polls, true);
    poll(polls.data(), polls.size(), link_.wake_at().poll_ms(kLongestWaitMs));
  }
}

Result<UniqueFd> Uplink::open_input() {
  UniqueFd reader;
  auto pipe = FeedPipe::create(reader);
  TUTTI_RETURN_IF_ERROR(pipe.status());
  input_ = std::move(*pipe);
  return reader;
}

void Uplink::finish() {
  put({.type = LinkMessage::Type::ended});
  for (const Deadline limit = Deadline::after_us(kFinishUs);
       link_.is_open() && !link_.is_flushed() && !limit.passed();) {
    std::vector<pollfd> polls;
    link_.add_polls(polls, false);
    poll(polls.data(), polls.size(), limit.poll_ms(kLongestWaitMs));
    link_.serve(false);
  }
}

void Uplink::fail(int status, const std::string& message, int running_count) {
  put({.type = LinkMessage::Type::fail, .rank = running_count, .number = status, .text = message});
}

void Uplink::add_polls(std::vector<pollfd>& polls) const {
  link_.add_polls(polls, true);
  if (!link_.is_full()) pipes_.add_polls(polls);
  input_.add_polls(polls);
}

std::vector<Order> Uplink::serve() {
  std::vector<Order> orders;
  pipes_.serve(*this);
  serve_input();
  link_.serve(true);
  while (auto message = link_.next()) obey(std::move(*message), orders);
  if (!link_.is_open() && !std::exchange(lost_, true)) {
    link_.close_out();
    broken_ = {true, true};
    orders.push_back({Order::Kind::kill, 0, ""});
  }
  return orders;
}

void Uplink::serve_input() {
  const bool was_open = input_.is_open();
  input_.serve();
  if (was_open && !input_.is_open()) return put({.type = LinkMessage::Type::input_closed});
  if (input_.is_open() && input_.is_empty() && !std::exchange(input_asked_, true))
    put({.type = LinkMessage::Type::want_input});
}

void Uplink::obey(LinkMessage message, std::vector<Order>& orders) {
  switch (message.type) {
    case LinkMessage::Type::input:
      input_asked_ = false;
      if (message.text.empty()) input_.end();
      input_.feed(message.text);
      return serve_input();
    case LinkMessage::Type::signal: return orders.push_back({Order::Kind::pass_on, message.number, ""});
    case LinkMessage::Type::end: return orders.push_back({Order::Kind::end, 0, ""});
    case LinkMessage::Type::output_broken:
      if (message.number == 0 || message.number == 1) broken_[static_cast<size_t>(message.number)] = true;
      return;
    default: return;
  }
}

void Uplink::take_rest() {
  pipes_.take_rest(*this);
  link_.serve(true);
}

void Uplink::take(int rank, Stream stream, std::string_view bytes) {
  put({.type = LinkMessage::Type::output,
       .rank = rank,
       .number = static_cast<int>(stream),
       .text = std::string(bytes)});
}

void Uplink::finish(int rank, Stream stream) {
  put({.type = LinkMessage::Type::output, .rank = rank, .number = static_cast<int>(stream)});
}

}  // namespace tutti::internal
