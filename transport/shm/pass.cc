// The receiver's half that moves bytes: one pass over the operands of a request, in pieces.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>

#include "transport/shm/message.h"
#include "transport/shm/receiver.h"
#include "transport/shm/tuning.h"

namespace tutti::internal::shm {
namespace {

// Where an operand's bytes are only to be had through the kernel.
bool needs_kernel(const Operand& operand) { return operand.source == nullptr; }

}  // namespace

Receiver::Progress Receiver::advance(Request& request) {
  const size_t bytes = std::min(kPieceBytes, request.bytes - request.done_bytes);
  if (bytes > 0) {
    const Progress progress =
        request.reduction.kernel == nullptr ? advance_receive(request, bytes) : advance_reduce(request, bytes);
    if (progress == Progress::stopped) return progress;
    request.done_bytes += bytes;
  }
  return request.done_bytes == request.bytes ? Progress::finished : Progress::more;
}

Receiver::Progress Receiver::advance_receive(Request& request, size_t bytes) {
  Operand& operand = request.operands[0];
  std::byte* const to = request.dst + request.done_bytes;
  if (!needs_kernel(operand)) {
    copy_bytes(to, operand.source + request.done_bytes, bytes, request.bytes);
    return Progress::more;
  }
  const uint64_t from = body<OfferBody>(operand.message).where + request.done_bytes;
  const int error = read_process(operand.peer->access().pid, from, to, bytes);
  return error == 0 ? Progress::more : on_read_error(operand, error);
}

Receiver::Progress Receiver::advance_reduce(Request& request, size_t bytes) {
  const std::span operands(request.operands.get(), static_cast<size_t>(request.operand_count));
  const bool read = std::any_of(operands.begin(), operands.end(), needs_kernel);
  const size_t step = read ? kReadChunkBytes : bytes;
  for (size_t offset = 0; offset < bytes; offset += step) {
    const Progress progress = reduce_range(request, request.done_bytes + offset, std::min(step, bytes - offset), read);
    // Ranges that were reduced before the stop are not to be reduced again: dst may be an operand.
    if (progress == Progress::stopped) {
      request.done_bytes += offset;
      return progress;
    }
  }
  return Progress::more;
}

Receiver::Progress Receiver::reduce_range(Request& request, size_t offset, size_t bytes, bool read) {
  std::array<const void*, kMaxOperands> sources;
  const auto count = static_cast<size_t>(request.operand_count);
  for (size_t i = 0; i < count; ++i) {
    Operand& operand = request.operands[i];
    if (!read || !needs_kernel(operand)) {
      sources[i] = operand.source + offset;
      continue;
    }
    std::byte* const chunk = scratch_.get() + i * kReadChunkBytes;
    const int error =
        read_process(operand.peer->access().pid, body<OfferBody>(operand.message).where + offset, chunk, bytes);
    if (error != 0) return on_read_error(operand, error);
    sources[i] = chunk;
  }
  const Reduction& reduction = request.reduction;
  reduction.kernel(request.dst + offset, sources.data(), request.operand_count, bytes / reduction.element_bytes,
                   reduction.divisor);
  return Progress::more;
}

Receiver::Progress Receiver::on_read_error(Operand& operand, int error) {
  if (error == ESRCH) {
    connector_.fail(*operand.peer, fmt::format("process_vm_readv: {}", strerrordesc_np(error)));
    return Progress::stopped;
  }
  // Forbidden since the probe, or memory that the kernel does not give out: the owner can read it, and streams it. It
  // starts from the beginning, so its bytes are gathered aside and used from where the pass stopped.
  Request& request = *operand.request;
  operand.bounce.resize(request.bytes);
  operand.arrived = false;
  ++request.missing;
  const auto index = static_cast<uint32_t>(&operand - request.operands.get());
  operand.peer->write(CellKind::go,
                      GoBody{body<OfferBody>(operand.message).id, {request.index, request.generation, index}});
  return Progress::stopped;
}

bool Receiver::on_chunk(Peer& peer, const ChunkBody& chunk) {
  if (chunk.slot >= kSlotCount || chunk.bytes > kSlotClasses[class_of_slot(chunk.slot)].slot_bytes ||
      chunk.to.request >= requests_.size())
    return false;
  Request& request = requests_[chunk.to.request];
  if (!request.live || request.generation != chunk.to.generation) {  // cancelled meanwhile
    peer.release_slot(chunk.slot);
    return true;
  }
  if (chunk.to.operand >= static_cast<uint32_t>(request.operand_count)) return false;
  Operand& operand = request.operands[chunk.to.operand];
  if (operand.peer != &peer || operand.streamed_bytes != chunk.offset || chunk.bytes > request.bytes - chunk.offset)
    return false;
  const std::byte* const data = peer.slot(chunk.slot);
  const bool aside = !operand.bounce.empty();
  if (aside)
    std::memcpy(operand.bounce.data() + chunk.offset, data, chunk.bytes);
  else
    apply_chunk(request, operand, chunk.offset, data, chunk.bytes);
  peer.release_slot(chunk.slot);
  operand.streamed_bytes += chunk.bytes;
  if (operand.streamed_bytes < request.bytes) return true;
  operand.arrived = true;
  operand.source = operand.bounce.data();
  if (--request.missing > 0) return true;
  if (aside)
    on_all_arrived(request);
  else
    complete(request, settle(request), 0);
  return true;
}

void Receiver::apply_chunk(Request& request, const Operand& operand, size_t offset, const std::byte* data,
                           size_t bytes) {
  if (request.reduction.kernel == nullptr) {
    std::memcpy(request.dst + offset, data, bytes);
    return;
  }
  std::array<const void*, kMaxOperands> sources;
  const auto count = static_cast<size_t>(request.operand_count);
  for (size_t i = 0; i < count; ++i)
    sources[i] = &request.operands[i] == &operand ? data : request.operands[i].source + offset;
  const Reduction& reduction = request.reduction;
  reduction.kernel(request.dst + offset, sources.data(), request.operand_count, bytes / reduction.element_bytes,
                   reduction.divisor);
}

}  // namespace tutti::internal::shm
