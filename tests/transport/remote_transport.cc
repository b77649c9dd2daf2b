#include "tests/transport/remote_transport.h"

#include <sys/mman.h>

#include <cstring>
#include <iterator>
#include <stdexcept>
#include <utility>

namespace tutti::internal::conformance {
namespace {

std::span<const std::byte> content(const void* data, size_t bytes) {
  return {static_cast<const std::byte*>(data), bytes};
}

void take_content(Reader& answer, void* memory) {
  const auto found = answer.bytes();
  if (!found.empty()) std::memcpy(memory, found.data(), found.size());
}

}  // namespace

RemoteTransport::RemoteTransport(const OtherGuest& guest, int rank, int ranks, const VerbsWay& way, Mail& mail)
    : guest_(guest), mail_(mail), letters_(guest.line()) {
  letters_.send(frame_of(Hello::transport, rank, ranks, way.cache, way.through_rdmacm));
  Reader answer = letters_.receive_answer();
  number_ = answer.get<uint64_t>();
  address_ = answer.text();
}

RemoteTransport::~RemoteTransport() {
  letters_.finish();
  while (auto letter = letters_.receive()) post_on(*letter);
}

Line RemoteTransport::take_line() const {
  {
    const std::scoped_lock lock(mutex_);
    if (!lines_.empty()) {
      Line line = std::move(lines_.back());
      lines_.pop_back();
      return line;
    }
  }
  Line line = guest_.line();
  line.send(frame_of(Hello::calls, number_));
  return line;
}

Reader RemoteTransport::exchange(Frame frame) const {
  Line line = take_line();
  line.send(std::move(frame));
  Reader answer = line.receive_answer();
  const std::scoped_lock lock(mutex_);
  lines_.push_back(std::move(line));
  return answer;
}

Status RemoteTransport::reachable(std::string_view peer_address) const {
  return call(Call::reachable, peer_address).status();
}

Status RemoteTransport::answers(std::string_view peer_address, Deadline deadline) const {
  return call(Call::answers, peer_address, deadline.remaining_us()).status();
}

Status RemoteTransport::connect(int peer, std::string_view peer_address, Deadline deadline) {
  return call(Call::connect, peer, peer_address, deadline.remaining_us()).status();
}

void RemoteTransport::serve(uint64_t) {
  Reader letter = letters_.receive_answer();
  post_on(letter);
}

void RemoteTransport::post_on(Reader& letter) {
  const auto to = letter.get<int>();
  mail_.send(to, letter.text());
}

void RemoteTransport::deliver(int peer, std::string_view letter) {
  letters_.send(frame_of(peer, Notice::letter, letter));
}

void RemoteTransport::gets_no_letters(int peer) { letters_.send(frame_of(peer, Notice::no_more_letters)); }

uint64_t RemoteTransport::place_of(const void* memory) const {
  const auto* const data = static_cast<const std::byte*>(memory);
  const auto next = regions_.upper_bound(data);
  if (next == regions_.begin()) return 0;
  const auto& [start, region] = *std::prev(next);
  const auto offset = static_cast<size_t>(data - start);
  return offset < region.bytes ? region.place + offset : 0;
}

Result<void*> RemoteTransport::allocate(size_t bytes) {
  Reader answer = call(Call::allocate, bytes);
  TUTTI_RETURN_IF_ERROR(answer.status());
  void* const window = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (window == MAP_FAILED) throw std::runtime_error("mmap of a window's copy");
  regions_[static_cast<const std::byte*>(window)] = {bytes, answer.get<uint64_t>()};
  return window;
}

Status RemoteTransport::release(void* memory) {
  TUTTI_RETURN_IF_ERROR(call(Call::release, place_of(memory)).status());
  const auto region = regions_.extract(static_cast<const std::byte*>(memory));
  munmap(memory, region.mapped().bytes);
  return {};
}

Status RemoteTransport::register_memory(void* memory, size_t bytes) {
  Reader answer = call(Call::register_memory, bytes);
  TUTTI_RETURN_IF_ERROR(answer.status());
  regions_[static_cast<const std::byte*>(memory)] = {bytes, answer.get<uint64_t>()};
  return {};
}

Status RemoteTransport::unregister_memory(void* memory) {
  TUTTI_RETURN_IF_ERROR(call(Call::unregister_memory, place_of(memory)).status());
  regions_.erase(static_cast<const std::byte*>(memory));
  return {};
}

Post RemoteTransport::post_send(const SendRequest& request) {
  Frame frame = frame_of(Call::post_send, next_request_, request.channel, request.match_base, place_of(request.data),
                         content(request.data, request.bytes), request.to.size());
  for (const Endpoint& to : request.to) frame << to.peer << to.match;
  return post(std::move(frame), {request.channel, request.ticket, nullptr});
}

Post RemoteTransport::post_recv(const RecvRequest& request) {
  return post(frame_of(Call::post_recv, next_request_, request.channel, request.from.peer, request.from.match,
                       place_of(request.data), request.bytes),
              {request.channel, request.ticket, request.data});
}

Post RemoteTransport::post_reduce(const ReduceRequest& request) {
  if (request.reduction.kernel != digits_kernel) throw std::runtime_error("the servant knows only digits_kernel");
  const size_t bytes = request.element_count * request.reduction.element_bytes;
  Frame frame = frame_of(Call::post_reduce, next_request_, request.channel, request.element_count,
                         request.reduction.element_bytes, request.reduction.divisor, request.operands.size());
  int dst_operand = -1;
  for (const ReduceOperand& operand : request.operands) {
    frame << operand.from.peer;
    if (operand.from.peer >= 0) {
      frame << operand.from.match;
      continue;
    }
    if (operand.local == request.dst) dst_operand = static_cast<int>(&operand - request.operands.data());
    frame << place_of(operand.local) << content(operand.local, bytes);
  }
  frame << dst_operand << place_of(request.dst);
  return post(std::move(frame), {request.channel, request.ticket, request.dst});
}

Post RemoteTransport::post(Frame frame, const Request& request) {
  Reader answer = exchange(std::move(frame));
  add_pass_count(answer);
  const auto post = answer.get<Post>();
  if (post == Post::done) take_content(answer, request.result);
  if (post == Post::posted) requests_[next_request_++] = request;
  return post;
}

size_t RemoteTransport::poll(std::span<Completion> completions) {
  Reader answer = call(Call::poll, completions.size());
  add_pass_count(answer);
  const auto count = answer.get<size_t>();
  for (Completion& completion : completions.first(count)) {
    const auto request = requests_.extract(answer.get<uint64_t>());
    completion = {request.mapped().ticket, answer.get<Code>(), answer.get<size_t>()};
    take_content(answer, request.mapped().result);
  }
  return count;
}

void RemoteTransport::cancel(uint64_t channel) {
  call(Call::cancel, channel);
  std::erase_if(requests_, [&](const auto& entry) { return entry.second.channel == channel; });
}

void RemoteTransport::forget(uint64_t channel) { call(Call::forget, channel); }

void RemoteTransport::disconnect(int peer) { call(Call::disconnect, peer); }

PeerFailure RemoteTransport::take_failure() {
  Reader answer = call(Call::take_failure);
  return {answer.get<int>(), answer.text()};
}

void RemoteTransport::idle(Deadline deadline) { call(Call::idle, deadline.remaining_us()); }

}  // namespace tutti::internal::conformance
