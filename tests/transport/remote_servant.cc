#include "tests/transport/remote_servant.h"

#include <poll.h>

#include <algorithm>
#include <map>
#include <memory>
#include <mutex>
#include <thread>
#include <unordered_map>
#include <utility>
#include <vector>

#include "tests/transport/make_verbs.h"
#include "tests/transport/remote_calls.h"
#include "tests/transport/remote_line.h"

namespace tutti::internal::conformance {
namespace {

using Bytes = std::vector<std::byte>;

// What a request reads and writes, until it is complete or cancelled.
struct Request {
  uint64_t channel = 0;
  std::vector<Bytes> own;       // memory of it that has no place
  std::span<std::byte> result;  // what goes back; empty: it only reads

  std::byte* room(uint64_t place, size_t bytes) {
    return place != 0 ? reinterpret_cast<std::byte*>(place) : own.emplace_back(bytes).data();
  }
  std::byte* copy(uint64_t place, std::span<const std::byte> content) {
    std::byte* const memory = room(place, content.size());
    std::ranges::copy(content, memory);
    return memory;
  }
};

// One rank. Its letters are sent by any thread, its calls answered by those of its lines.
class Servant final : public Mail {
 public:
  Servant(Reader& hello, Line letters) : letters_(std::move(letters)) {
    const auto rank = hello.get<int>();
    const auto ranks = hello.get<int>();
    const auto cache = hello.get<bool>();
    transport_ = make_verbs(rank, ranks, {.cache = cache, .through_rdmacm = hello.get<bool>()}, *this);
  }

  void introduce(uint64_t number) { letters_.send(frame_of(number, transport_->address())); }
  // Its watches and letters, until its line ends: then it leaves.
  void serve();
  Frame answer(Reader call);
  void send(int peer, std::string_view letter) override {
    const std::scoped_lock lock(mutex_);
    letters_.send(frame_of(peer, letter));
  }

 private:
  bool take_letter();
  Frame allocate(size_t bytes);
  Frame register_memory(size_t bytes);
  Frame unregister_memory(void* memory);
  Frame post_send(Reader& call);
  Frame post_recv(Reader& call);
  Frame post_reduce(Reader& call);
  template <class PostOnce>
  Frame post(uint64_t number, Request request, PostOnce post_once);
  Frame poll(size_t room);
  Frame cancel(uint64_t channel);
  Frame take_failure();

  Line letters_;
  std::mutex mutex_;  // of who sends letters
  std::unordered_map<uint64_t, Request> requests_;
  std::unordered_map<void*, Bytes> registered_;
  std::unique_ptr<VerbsTransport> transport_;  // last: it goes before the memory that it uses
};

void Servant::serve() {
  std::vector<pollfd> entries;
  do {
    const std::vector<Watch> watches = transport_->watches();
    entries.assign(1, {letters_.fd(), POLLIN, 0});
    for (const Watch& watch : watches) entries.push_back({watch.fd, POLLIN, 0});
    ::poll(entries.data(), entries.size(), 5);
    for (size_t i = 0; i < watches.size(); ++i)
      if (entries[i + 1].revents != 0) transport_->serve(watches[i].key);
  } while (entries[0].revents == 0 || take_letter());
  transport_.reset();
  letters_.finish();
}

bool Servant::take_letter() {
  auto frame = letters_.receive();
  if (!frame) return false;
  const auto peer = frame->get<int>();
  if (frame->get<Notice>() == Notice::letter)
    transport_->deliver(peer, frame->text());
  else
    transport_->gets_no_letters(peer);
  return true;
}

void* memory_at(uint64_t place) { return reinterpret_cast<void*>(place); }
uint64_t place_of(const void* memory) { return reinterpret_cast<uint64_t>(memory); }

Frame Servant::answer(Reader call) {
  const auto deadline = [&] { return Deadline::after_us(call.get<int64_t>()); };
  switch (call.get<Call>()) {
    case Call::reachable: return frame_of(transport_->reachable(call.text()));
    case Call::answers: {
      const std::string address = call.text();
      return frame_of(transport_->answers(address, deadline()));
    }
    case Call::connect: {
      const auto peer = call.get<int>();
      const std::string address = call.text();
      return frame_of(transport_->connect(peer, address, deadline()));
    }
    case Call::allocate: return allocate(call.get<size_t>());
    case Call::release: return frame_of(transport_->release(memory_at(call.get<uint64_t>())));
    case Call::register_memory: return register_memory(call.get<size_t>());
    case Call::unregister_memory: return unregister_memory(memory_at(call.get<uint64_t>()));
    case Call::post_send: return post_send(call);
    case Call::post_recv: return post_recv(call);
    case Call::post_reduce: return post_reduce(call);
    case Call::poll: return poll(call.get<size_t>());
    case Call::cancel: return cancel(call.get<uint64_t>());
    case Call::forget: transport_->forget(call.get<uint64_t>()); return {};
    case Call::disconnect: transport_->disconnect(call.get<int>()); return {};
    case Call::take_failure: return take_failure();
    case Call::idle: transport_->idle(deadline()); return {};
  }
  give_up("a call that is none");
}

Frame Servant::allocate(size_t bytes) {
  auto window = transport_->allocate(bytes);
  return window ? frame_of(Status(), place_of(*window)) : frame_of(window.status());
}

Frame Servant::register_memory(size_t bytes) {
  Bytes memory(bytes);
  const Status status = transport_->register_memory(memory.data(), bytes);
  if (!status) return frame_of(status);
  void* const data = memory.data();
  registered_.emplace(data, std::move(memory));
  return frame_of(status, place_of(data));
}

Frame Servant::unregister_memory(void* memory) {
  const Status status = transport_->unregister_memory(memory);
  if (status.ok()) registered_.erase(memory);
  return frame_of(status);
}

Frame Servant::post_send(Reader& call) {
  const auto number = call.get<uint64_t>();
  Request request{.channel = call.get<uint64_t>(), .own = {}, .result = {}};
  const auto match_base = call.get<uint64_t>();
  const auto place = call.get<uint64_t>();
  const auto content = call.bytes();
  std::vector<Endpoint> to(call.get<size_t>());
  for (Endpoint& end : to) end = {call.get<int>(), call.get<uint64_t>()};
  const SendRequest send{.channel = request.channel,
                         .to = to,
                         .match_base = match_base,
                         .data = request.copy(place, content),
                         .bytes = content.size(),
                         .ticket = number};
  return post(number, std::move(request), [&] { return transport_->post_send(send); });
}

Frame Servant::post_recv(Reader& call) {
  const auto number = call.get<uint64_t>();
  Request request{.channel = call.get<uint64_t>(), .own = {}, .result = {}};
  const Endpoint from{call.get<int>(), call.get<uint64_t>()};
  const auto place = call.get<uint64_t>();
  const auto bytes = call.get<size_t>();
  request.result = {request.room(place, bytes), bytes};
  const RecvRequest receive{
      .channel = request.channel, .from = from, .data = request.result.data(), .bytes = bytes, .ticket = number};
  return post(number, std::move(request), [&] { return transport_->post_recv(receive); });
}

Frame Servant::post_reduce(Reader& call) {
  const auto number = call.get<uint64_t>();
  Request request{.channel = call.get<uint64_t>(), .own = {}, .result = {}};
  const auto element_count = call.get<size_t>();
  const auto element_bytes = call.get<uint32_t>();
  const auto divisor = call.get<uint32_t>();
  std::vector<ReduceOperand> operands(call.get<size_t>());
  for (ReduceOperand& operand : operands) {
    operand.from.peer = call.get<int>();
    const auto match_or_place = call.get<uint64_t>();
    if (operand.from.peer >= 0)
      operand.from.match = match_or_place;
    else
      operand.local = request.copy(match_or_place, call.bytes());
  }
  const auto dst_operand = call.get<int>();
  const auto place = call.get<uint64_t>();
  const size_t bytes = element_count * element_bytes;
  auto* const dst = dst_operand >= 0
                        ? static_cast<std::byte*>(const_cast<void*>(operands[static_cast<size_t>(dst_operand)].local))
                        : request.room(place, bytes);
  request.result = {dst, bytes};
  const ReduceRequest reduce{.channel = request.channel,
                             .operands = operands,
                             .dst = dst,
                             .element_count = element_count,
                             .reduction = {digits_kernel, element_bytes, divisor},
                             .ticket = number};
  return post(number, std::move(request), [&] { return transport_->post_reduce(reduce); });
}

template <class PostOnce>
Frame Servant::post(uint64_t number, Request request, PostOnce post_once) {
  pass_count = {};
  const Post post = post_once();
  Frame answer;
  put_pass_count(answer);
  answer << post;
  if (post == Post::done) answer << std::span<const std::byte>(request.result);
  if (post == Post::posted) requests_.emplace(number, std::move(request));
  return answer;
}

Frame Servant::poll(size_t room) {
  pass_count = {};
  std::vector<Completion> completions(room);
  completions.resize(transport_->poll(completions));
  Frame answer;
  put_pass_count(answer);
  answer << completions.size();
  for (const Completion& completion : completions) {
    const auto request = requests_.extract(completion.ticket);
    if (!request) give_up("a completion of no request that is open");
    std::span<const std::byte> content;
    if (completion.code == Code::ok) content = request.mapped().result;
    answer << completion.ticket << completion.code << completion.found_bytes << content;
  }
  return answer;
}

Frame Servant::cancel(uint64_t channel) {
  transport_->cancel(channel);
  std::erase_if(requests_, [&](const auto& entry) { return entry.second.channel == channel; });
  return {};
}

Frame Servant::take_failure() {
  const PeerFailure failure = transport_->take_failure();
  return frame_of(failure.peer, failure.reason);
}

// All ranks of this guest, by their numbers.
class Servants {
 public:
  void serve(Line line) {
    auto hello = line.receive();
    if (!hello) return;
    if (hello->get<Hello>() == Hello::transport) return serve_transport(*hello, std::move(line));
    const auto servant = at(hello->get<uint64_t>());
    while (auto call = line.receive()) line.send(servant->answer(std::move(*call)));
  }

 private:
  void serve_transport(Reader& hello, Line line) {
    const auto servant = std::make_shared<Servant>(hello, std::move(line));
    const uint64_t number = add(servant);
    servant->introduce(number);
    servant->serve();
    const std::scoped_lock lock(mutex_);
    servants_.erase(number);
  }
  uint64_t add(const std::shared_ptr<Servant>& servant) {
    const std::scoped_lock lock(mutex_);
    servants_.emplace(next_number_, servant);
    return next_number_++;
  }
  std::shared_ptr<Servant> at(uint64_t number) {
    const std::scoped_lock lock(mutex_);
    return servants_.at(number);
  }

  std::mutex mutex_;
  std::map<uint64_t, std::shared_ptr<Servant>> servants_;
  uint64_t next_number_ = 0;
};

}  // namespace

void serve_other_guest() {
  static LineListener listener(kServantPort);
  static Servants servants;
  Line session = listener.accept();
  std::thread([] {
    for (;;) std::thread([line = listener.accept()]() mutable { servants.serve(std::move(line)); }).detach();
  }).detach();
  session.receive();
  std::_Exit(EXIT_SUCCESS);
}

}  // namespace tutti::internal::conformance
