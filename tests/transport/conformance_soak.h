// Random programs from a seed: sends to several peers, receives and reductions of all ranks, each rank's in an order of
// its own, with one channel that is cancelled on the way. Every result is checked, and that cancelled memory stays.
//
// The program depends on the seed alone, so that ranks in processes of their own can make it each for itself.
#pragma once

#include <algorithm>
#include <array>
#include <functional>
#include <map>
#include <random>
#include <stdexcept>
#include <tuple>
#include <utility>
#include <vector>

#include "tests/transport/conformance_world.h"

namespace tutti::internal::conformance {

inline constexpr uint64_t kVictim = 1'000;  // the channel that is cancelled
inline constexpr std::array<size_t, 10> kSoakSizes{0, 8, 32, 40, 48, 512, 4096, 20'000, 65'544, 600'000};

struct SendAction {
  uint64_t channel;
  std::vector<Endpoint> to;
  std::vector<std::byte> heap;
  std::byte* data = nullptr;
  size_t bytes = 0;
};

struct OperandPlan {
  int from;  // -1: local
  uint64_t match;
  uint64_t seed;
};

struct ReceiveAction {
  uint64_t channel;
  std::vector<OperandPlan> operands;  // one from a peer, and `reduces` false: a plain receive
  bool reduces = false;
  bool into_local = false;  // dst is the first local operand
  size_t bytes = 0;
  std::vector<std::byte> dst;
  std::vector<std::vector<std::byte>> locals;
};

// What one rank does, in its own order: index into sends, then into receives, then -1: cancel the victim.
struct Program {
  std::vector<SendAction> sends;
  std::vector<ReceiveAction> receives;
  std::vector<int> order;
};

class Soak {
 public:
  // Gives rank `rank` memory for a send from a window; null: it lives elsewhere.
  using GiveWindow = std::function<std::byte*(int rank, size_t bytes)>;

  Soak(int ranks, std::mt19937_64& random, int requests, GiveWindow give_window)
      : give_window_(std::move(give_window)), programs_(static_cast<size_t>(ranks)) {
    for (int i = 0; i < requests; ++i) add_receive(random);
    make_sends(random);
    for (Program& program : programs_) {
      program.order.resize(program.sends.size() + program.receives.size());
      for (size_t i = 0; i < program.order.size(); ++i) program.order[i] = static_cast<int>(i);
      program.order.push_back(-1);
      std::shuffle(program.order.begin(), program.order.end(), random);
    }
  }

  // The course of one rank. Done in pieces, so that one thread can run several in turn.
  class Run {
   public:
    Run(Rank& self, Program& program) : self_(self), program_(program) {}

    bool is_started() const { return next_ == program_.order.size(); }
    bool is_done() const {
      return is_started() && std::all_of(tickets_.begin(), tickets_.end(),
                                         [&](Ticket ticket) { return self_.result(ticket).has_value(); });
    }
    void step() {
      const int action = program_.order[next_++];
      const int sends = static_cast<int>(program_.sends.size());
      if (action < 0)
        cancel();
      else if (action < sends)
        send(program_.sends[static_cast<size_t>(action)]);
      else
        receive(program_.receives[static_cast<size_t>(action - sends)]);
    }
    void check() {
      for (const Ticket ticket : tickets_) EXPECT_TRUE(self_.is_ok(ticket));
      for (ReceiveAction& action : program_.receives) {
        if (action.channel != kVictim) {
          EXPECT_TRUE(is_right(action));
          continue;
        }
        EXPECT_EQ(std::count(action.dst.begin(), action.dst.end(), kMark), static_cast<ptrdiff_t>(action.dst.size()))
            << "written after cancel";
      }
    }

   private:
    static constexpr std::byte kMark{0x77};

    void keep(uint64_t channel, Ticket ticket) { (channel == kVictim ? victims_ : tickets_).push_back(ticket); }
    void send(SendAction& action) {
      if (action.channel == kVictim && cancelled_) return;
      keep(action.channel, self_.send(action.channel, action.to, action.data, action.bytes));
    }
    void receive(ReceiveAction& action) {
      if (action.channel == kVictim && cancelled_) {
        std::fill(action.dst.begin(), action.dst.end(), kMark);
        return;
      }
      if (!action.reduces) {
        const OperandPlan& from = action.operands[0];
        return keep(action.channel, self_.recv(action.channel, from.from, from.match, action.dst.data(), action.bytes));
      }
      std::vector<ReduceOperand> operands;
      size_t local = 0;
      for (const OperandPlan& plan : action.operands) {
        if (plan.from >= 0) {
          operands.push_back({{plan.from, plan.match}, nullptr});
          continue;
        }
        const bool is_dst = action.into_local && local == 0;
        operands.push_back({{}, is_dst ? action.dst.data() : action.locals[local].data()});
        ++local;
      }
      keep(action.channel, self_.reduce(action.channel, operands, action.dst.data(), action.bytes / 8, kDigits));
    }
    void cancel() {
      self_.cancel(kVictim);  // others must answer
      cancelled_ = true;
      for (const Ticket ticket : victims_)
        if (!self_.result(ticket)) self_.give_up(ticket);
      for (ReceiveAction& action : program_.receives)
        if (action.channel == kVictim) std::fill(action.dst.begin(), action.dst.end(), kMark);
    }
    static ::testing::AssertionResult is_right(const ReceiveAction& action) {
      std::vector<uint64_t> expected(action.bytes / 8);
      std::vector<uint64_t> digits(action.bytes / 8);
      bool first = true;
      for (const OperandPlan& plan : action.operands) {
        fill(std::as_writable_bytes(std::span(digits)), plan.seed);
        for (size_t i = 0; i < digits.size(); ++i) expected[i] = first ? digits[i] : add_digit(expected[i], digits[i]);
        first = false;
      }
      if (std::ranges::equal(std::as_bytes(std::span(expected)), action.dst)) return ::testing::AssertionSuccess();
      return ::testing::AssertionFailure()
             << action.bytes << " bytes of " << action.operands.size() << " operands are wrong";
    }

    Rank& self_;
    Program& program_;
    size_t next_ = 0;
    bool cancelled_ = false;
    std::vector<Ticket> tickets_;
    std::vector<Ticket> victims_;
  };

  Run run(Rank& self) { return Run(self, programs_[static_cast<size_t>(self.index())]); }

 private:
  struct Message {
    int to;
    uint64_t match;
    uint64_t* seed;  // of its receiver's plan
  };
  using MessageKind = std::tuple<int, uint64_t, size_t>;  // from, channel, bytes

  void add_receive(std::mt19937_64& random) {
    const size_t ranks = programs_.size();
    const auto self = static_cast<int>(random() % ranks);
    ReceiveAction action;
    action.channel = random() % 5 == 0 ? kVictim : random() % 3;
    action.bytes = kSoakSizes[random() % (random() % 4 == 0 ? kSoakSizes.size() : kSoakSizes.size() - 3)];
    action.reduces = random() % 2 == 0;
    const size_t operands = action.reduces ? 1 + random() % 6 : 1;
    const size_t remote = random() % operands;  // at least this one
    for (size_t i = 0; i < operands; ++i) {
      const bool local = i != remote && random() % 3 == 0;
      const int peer = static_cast<int>((static_cast<size_t>(self) + 1 + random() % (ranks - 1)) % ranks);
      action.operands.push_back({local ? -1 : peer, next_match_++, random()});
      if (!local) continue;
      action.locals.emplace_back(action.bytes);
      fill(action.locals.back(), action.operands.back().seed);
    }
    action.into_local = !action.locals.empty() && random() % 2 == 0;
    if (action.into_local)
      action.dst = action.locals[0];
    else
      action.dst.resize(action.bytes);
    programs_[static_cast<size_t>(self)].receives.push_back(std::move(action));
  }

  // Messages of the same kind to different peers may be one send.
  void make_sends(std::mt19937_64& random) {
    std::map<MessageKind, std::vector<Message>> kinds;
    for (size_t to = 0; to < programs_.size(); ++to)
      for (ReceiveAction& action : programs_[to].receives)
        for (OperandPlan& plan : action.operands)
          if (plan.from >= 0)
            kinds[{plan.from, action.channel, action.bytes}].push_back({static_cast<int>(to), plan.match, &plan.seed});
    for (auto& [kind, messages] : kinds) {
      const auto& [from, channel, bytes] = kind;
      std::shuffle(messages.begin(), messages.end(), random);
      for (size_t i = 0; i < messages.size();) {
        SendAction send{.channel = channel, .to = {}, .heap = {}, .bytes = bytes};
        const uint64_t seed = *messages[i].seed;
        const size_t most = 1 + random() % 3;
        for (; i < messages.size() && send.to.size() < most; ++i) {
          const auto is_taken = [to = messages[i].to](const Endpoint& end) { return end.peer == to; };
          if (std::any_of(send.to.begin(), send.to.end(), is_taken)) break;
          send.to.push_back({messages[i].to, messages[i].match});
          *messages[i].seed = seed;
        }
        give_memory(send, from, seed, random() % 2 == 0);
        programs_[static_cast<size_t>(from)].sends.push_back(std::move(send));
      }
    }
  }

  void give_memory(SendAction& send, int rank, uint64_t seed, bool window) {
    if (window && send.bytes > 0) send.data = give_window_(rank, send.bytes);
    if (send.data == nullptr) {
      send.heap.resize(send.bytes);
      send.data = send.heap.data();
    }
    fill({send.data, send.bytes}, seed);
  }

  GiveWindow give_window_;
  std::vector<Program> programs_;
  uint64_t next_match_ = 1;
};

}  // namespace tutti::internal::conformance
