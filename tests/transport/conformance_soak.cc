// Random programs from a seed: sends to several peers, receives and reductions of all ranks, in any order, with one
// channel that is cancelled on the way. Every result is checked, and that cancelled memory stays.
#include <algorithm>
#include <array>
#include <atomic>
#include <map>
#include <random>
#include <vector>

#include "tests/transport/conformance.h"

namespace tutti::internal::conformance {
namespace {

constexpr uint64_t kVictim = 1'000;  // the channel that is cancelled
constexpr std::array<size_t, 10> kSizes{0, 8, 32, 40, 48, 512, 4096, 20'000, 65'544, 600'000};

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
  Soak(World& world, std::mt19937_64& random, int requests)
      : world_(world), programs_(static_cast<size_t>(world.size())) {
    for (int i = 0; i < requests; ++i) add_receive(random);
    make_sends(random);
    for (Program& program : programs_) {
      program.order.resize(program.sends.size() + program.receives.size());
      for (size_t i = 0; i < program.order.size(); ++i) program.order[i] = static_cast<int>(i);
      program.order.push_back(-1);
      std::shuffle(program.order.begin(), program.order.end(), random);
    }
  }
  ~Soak() {
    for (const auto& [rank, window] : windows_) EXPECT_TRUE(world_[rank].transport().release(window).ok());
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
      self_.transport().cancel(kVictim);
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

  Run run(int rank) { return Run(world_[rank], programs_[static_cast<size_t>(rank)]); }

 private:
  struct Message {
    int to;
    uint64_t match;
    uint64_t* seed;  // of its receiver's plan
  };
  using MessageKind = std::tuple<int, uint64_t, size_t>;  // from, channel, bytes

  void add_receive(std::mt19937_64& random) {
    const auto ranks = static_cast<size_t>(world_.size());
    const auto self = static_cast<int>(random() % ranks);
    ReceiveAction action;
    action.channel = random() % 5 == 0 ? kVictim : random() % 3;
    action.bytes = kSizes[random() % (random() % 4 == 0 ? kSizes.size() : kSizes.size() - 3)];
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
          const auto is_taken = [&](const Endpoint& end) { return end.peer == messages[i].to; };
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
    if (window && send.bytes > 0) {
      auto made = world_[rank].transport().allocate(send.bytes);
      if (!made) throw std::runtime_error(made.status().message());
      windows_.emplace_back(rank, *made);
      send.data = static_cast<std::byte*>(*made);
    } else {
      send.heap.resize(send.bytes);
      send.data = send.heap.data();
    }
    fill({send.data, send.bytes}, seed);
  }

  World& world_;
  std::vector<Program> programs_;
  std::vector<std::pair<int, void*>> windows_;
  uint64_t next_match_ = 1;
};

TEST_P(Conformance, RandomProgramsPolledFromOneThreadAreRight) {
  std::mt19937_64 random = seeded();
  for (const int ranks : {2, 3, 5, 8}) {
    const auto world = connected(ranks);
    Soak soak(*world, random, 600);
    std::vector<Soak::Run> runs;
    for (int rank = 0; rank < ranks; ++rank) runs.push_back(soak.run(rank));
    const Deadline deadline = Deadline::after_us(60'000'000);
    const auto is_done = [](const Soak::Run& run) { return run.is_done(); };
    while (!std::all_of(runs.begin(), runs.end(), is_done)) {
      Soak::Run& run = runs[random() % runs.size()];
      if (!run.is_started()) run.step();
      if (random() % 4 == 0) (*world)[static_cast<int>(random() % runs.size())].poll();
      ASSERT_FALSE(deadline.passed()) << "requests do not complete";
    }
    world->settle();
    for (Soak::Run& run : runs) run.check();
    if (HasFailure()) return;
  }
}

TEST_P(Conformance, RandomProgramsOfRanksThatAreThreadsAreRight) {
  std::mt19937_64 random = seeded();
  for (const int ranks : {2, 4, 7}) {
    const auto world = connected(ranks);
    Soak soak(*world, random, 600);
    std::atomic<int> finished{0};
    std::vector<Soak::Run> runs;
    for (int rank = 0; rank < ranks; ++rank) runs.push_back(soak.run(rank));
    world->run_threads([&](Rank& self) {
      Soak::Run& run = runs[static_cast<size_t>(self.index())];
      while (!run.is_started()) {
        run.step();
        self.progress();
      }
      const Deadline deadline = Deadline::after_us(60'000'000);
      while (!run.is_done() && !deadline.passed()) self.progress();
      EXPECT_TRUE(run.is_done()) << "requests of rank " << self.index() << " do not complete";
      finished.fetch_add(1);
      while (finished.load() < ranks) self.progress();  // others may need our polls
    });
    world->settle();
    for (Soak::Run& run : runs) run.check();
    if (HasFailure()) return;
  }
}

// Waiting by idle loses nothing: a message wakes the sleeper, or it looks again soon.
TEST_P(Conformance, RanksThatSleepAreWoken) {
  const auto world = connected(2);
  world->run_threads([](Rank& self) {
    const int other = 1 - self.index();
    for (uint64_t round = 0; round < 300; ++round) {
      uint64_t found = 0;
      const Ticket received = self.recv(1, other, round, &found, 8);
      Ticket sent = 0;
      const auto send = [&] { sent = self.send(1, other, round, &round, 8); };
      if (self.index() == 0) send();
      const Deadline deadline = Deadline::after_us(20'000'000);
      while (!self.result(received)) {
        self.transport().idle(Deadline::after_us(2'000));
        self.poll();
        ASSERT_FALSE(deadline.passed());
      }
      if (self.index() == 1) send();
      ASSERT_EQ(self.wait(sent).code, Code::ok);
      ASSERT_EQ(found, round);
    }
  });
}

}  // namespace
}  // namespace tutti::internal::conformance
