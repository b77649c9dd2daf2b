// Receives and reductions of a rank, and how messages meet them: what every transport does alike that sends short
// messages at once and announces long ones by an offer. How the bytes of a long message come is the transport's own: it
// derives from Receives.
//
// A Request is a posted receive or reduction; each of its messages is an Operand. Owner's thread.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <memory>
#include <span>
#include <unordered_set>
#include <vector>

#include "src/base/kernel.h"
#include "transport/completions.h"
#include "transport/list.h"
#include "transport/transport.h"

namespace tutti::internal {

struct Request;
struct Correspondent;

// A long send of its sender's.
struct SendId {
  uint32_t index = 0;
  uint32_t generation = 0;
  bool operator==(const SendId&) const = default;
};

struct Offer {
  uint64_t bytes = 0;
  SendId id;
};

struct Operand : Links<Operand> {
  Request* request = nullptr;
  Correspondent* from = nullptr;  // null: local memory
  uint64_t match = 0;
  const std::byte* source = nullptr;  // of local memory, and of a short message that has come
  std::vector<std::byte> kept;        // a short message that waits for the others
  bool posted = false;                // in its sender's list of operands that wait
  bool offered = false;               // its sender has announced it
  bool arrived = false;               // short: it is here
  SendId offer;
};

// A part of a long message (of each of them, when they are reduced) that is staged in chunks of memory.
struct Part {
  bool under_way = false;
  uint64_t offset = 0;
  uint64_t bytes = 0;
  int missing = 0;          // operands whose bytes have not come
  std::vector<int> chunks;  // by operand; -1 for local memory
};
// Parts of one message that are under way at a time: one is reduced while the next ones arrive.
inline constexpr int kPartsUnderWay = 4;

struct Request : Links<Request> {
  bool live = false;
  bool hungry = false;  // in the list of requests that want chunks
  uint64_t channel = 0;
  Ticket ticket = 0;
  std::byte* dst = nullptr;
  size_t bytes = 0;
  Reduction reduction;  // no kernel: a plain receive
  int operand_count = 0;
  int message_count = 0;
  int missing = 0;           // short messages that have not come
  uint64_t asked_bytes = 0;  // long: so much is on its way, or here
  uint64_t done_bytes = 0;
  size_t capacity = 0;
  std::unique_ptr<Operand[]> operands;
  std::array<Part, kPartsUnderWay> parts;

  bool reduces() const { return reduction.kernel != nullptr; }
  std::span<Operand> all_operands() const { return {operands.get(), static_cast<size_t>(operand_count)}; }
};

// Came before its receive: a short message with its bytes, or an offer.
struct Unexpected : Links<Unexpected> {
  uint64_t channel = 0;
  uint64_t match = 0;
  bool is_offer = false;
  Offer offer;
  std::vector<std::byte> data;
};

// Whom messages come from: what of his waits here. A transport's peers derive from it.
struct Correspondent {
  List<Operand> posted;
  List<Unexpected> unexpected;

  Unexpected* find_unexpected(uint64_t channel, uint64_t match) const;
  // What he sent before he went may still be taken, if it came whole.
  bool has_left_behind(uint64_t channel, uint64_t match) const;
};

class Receives {
 public:
  // Messages of more than `short_bytes` are long. Both references outlive it.
  Receives(size_t short_bytes, Completions& completions, const std::unordered_set<uint64_t>& cancelled);
  virtual ~Receives() = default;

  // `from[i]` stands for operand i, null for local memory.
  Post receive(const RecvRequest& request, Correspondent& from);
  Post reduce(const ReduceRequest& request, std::span<Correspondent* const> from);

  void on_message(Correspondent& from, const Tag& tag, std::span<const std::byte> data);
  void on_offer(Correspondent& from, const Tag& tag, const Offer& offer);

  bool has_heard(const Correspondent& from, uint64_t channel, uint64_t first, uint64_t count) const;
  bool waits_for(const Correspondent& from) const { return !from.posted.empty(); }

 protected:
  // A long request was posted, or one of its messages was offered.
  virtual void move(Request& request) = 0;
  // To an offer: the message was dropped (ok), or has another length than is wanted.
  virtual void answer(Correspondent& from, const Tag& tag, const SendId& id, Code code, uint64_t wanted_bytes) = 0;
  // The request ends before its time: what is on its way for it is wanted no more.
  virtual void give_up(Request& request) = 0;

  // Ends the request, and tells the owner.
  void complete(Request& request, Code code, size_t found_bytes);
  // Ends it before its time, and tells nobody here.
  void drop(Request& request);
  void drop_all(uint64_t channel);
  void drop_unexpected(Correspondent& from, uint64_t channel, bool tell);

  std::deque<Request>& requests() { return requests_; }

 private:
  void add_request(size_t capacity);
  Request& acquire(size_t operand_count);
  void release(Request& request);
  // The message of one operand of a request that is being posted: there already, or waited for.
  void expect(Request& request, Operand& operand, Correspondent& from, uint64_t match);
  Post begin(Request& request);
  void take_message(Operand& operand, std::span<const std::byte> data);
  static void reduce_short(Request& request);
  // Whether it has the length that is wanted; if not, the request has ended.
  bool take_offer(Operand& operand, const Offer& offer);
  void fail_length(Operand& operand, uint64_t found_bytes);
  static void unpost(Operand& operand);
  static void unpost_all(Request& request);

  const size_t short_bytes_;
  Completions& completions_;
  const std::unordered_set<uint64_t>& cancelled_;
  std::deque<Request> requests_;
  std::vector<Request*> free_small_, free_large_;  // with room for few operands, and for the most
  Pool<Unexpected> unexpected_;
};

}  // namespace tutti::internal
