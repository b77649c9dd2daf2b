// Sizes, kinds of memory, several readers.
#include <sys/mman.h>
#include <unistd.h>

#include <array>
#include <cstdio>
#include <cstring>
#include <vector>

#include "tests/transport/conformance.h"

namespace tutti::internal::conformance {
namespace {

TEST_P(Conformance, ASendMeetsTheReceiveOfItsTag) {
  const auto world = connected(2);
  const uint64_t value = 42;
  uint64_t found = 0;
  const Ticket sent = (*world)[0].send(/*channel=*/1, /*to=*/1, /*match=*/7, &value, sizeof value);
  const Ticket received = (*world)[1].recv(1, /*from=*/0, 7, &found, sizeof found);
  EXPECT_EQ((*world)[1].wait(received).code, Code::ok);
  EXPECT_EQ((*world)[0].wait(sent).code, Code::ok);
  EXPECT_EQ(found, 42u);
}

constexpr size_t kKi = 1024;
constexpr size_t kMi = 1024 * kKi;
constexpr std::array<size_t, 19> kSizes{
    0,       1,  2,           7,       8,           39,           40,       41,           63,
    64,      65, 4 * kKi - 1, 4 * kKi, 4 * kKi + 1, 64 * kKi - 1, 64 * kKi, 64 * kKi + 1, kMi + 3,
    16 * kMi};

enum class Kind : uint8_t { window, heap, unaligned, read_only, file_shared, file_private };
constexpr std::array<Kind, 6> kKinds{Kind::window,    Kind::heap,        Kind::unaligned,
                                     Kind::read_only, Kind::file_shared, Kind::file_private};

// Memory of a kind, filled from the seed.
class Source {
 public:
  Source(Kind kind, Rank& rank, size_t bytes, uint64_t seed) : transport_(rank.transport()), bytes_(bytes) {
    if (bytes == 0) return;
    std::vector<std::byte> content(bytes);
    fill(content, seed);
    switch (kind) {
      case Kind::window: {
        auto window = transport_.allocate(bytes);
        EXPECT_TRUE(window.ok()) << window.status().message();
        window_ = window.ok() ? *window : nullptr;
        data_ = std::memcpy(window_, content.data(), bytes);
        return;
      }
      case Kind::heap: heap_ = std::move(content); return;
      case Kind::unaligned:
        heap_.resize(bytes + 13);
        data_ = std::memcpy(heap_.data() + 13, content.data(), bytes);
        return;
      case Kind::read_only: map(content, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1); return;
      case Kind::file_shared: map_file(content, MAP_SHARED); return;
      case Kind::file_private: map_file(content, MAP_PRIVATE); return;
    }
  }
  Source(const Source&) = delete;
  Source& operator=(const Source&) = delete;
  ~Source() {
    if (mapped_ != nullptr) munmap(mapped_, bytes_);
    if (window_ != nullptr) {
      const Status status = transport_.release(window_);
      EXPECT_TRUE(status.ok()) << status.message();
    }
  }
  const void* data() const { return data_ != nullptr ? data_ : heap_.data(); }

 private:
  void map(const std::vector<std::byte>& content, int protection, int flags, int fd) {
    mapped_ = mmap(nullptr, bytes_, protection, flags, fd, 0);
    if (mapped_ == MAP_FAILED) throw std::runtime_error("mmap");
    if (fd < 0) {
      std::memcpy(mapped_, content.data(), bytes_);
      mprotect(mapped_, bytes_, PROT_READ);
    }
    data_ = mapped_;
  }
  void map_file(const std::vector<std::byte>& content, int flags) {
    std::FILE* const file = std::tmpfile();
    if (file == nullptr || std::fwrite(content.data(), 1, bytes_, file) != bytes_ || std::fflush(file) != 0)
      throw std::runtime_error("tmpfile");
    map(content, PROT_READ, flags, fileno(file));
    std::fclose(file);
  }

  Transport& transport_;
  size_t bytes_;
  std::vector<std::byte> heap_;
  void* window_ = nullptr;
  void* mapped_ = nullptr;
  const void* data_ = nullptr;
};

// A destination with bytes around it that must stay.
class Target {
 public:
  explicit Target(size_t bytes, size_t shift = 0) : bytes_(bytes), shift_(kGuard + shift) {
    memory_.resize(bytes + shift_ + kGuard, kMark);
  }
  std::byte* data() { return memory_.data() + shift_; }
  std::span<const std::byte> bytes() { return {data(), bytes_}; }
  ::testing::AssertionResult is_framed() const {
    for (size_t i = 0; i < memory_.size(); ++i)
      if ((i < shift_ || i >= shift_ + bytes_) && memory_[i] != kMark)
        return ::testing::AssertionFailure() << "byte " << i << " outside the destination was written";
    return ::testing::AssertionSuccess();
  }

 private:
  static constexpr size_t kGuard = 64;
  static constexpr std::byte kMark{0xa5};
  size_t bytes_;
  size_t shift_;
  std::vector<std::byte> memory_;
};

TEST_P(Conformance, EverySizeArrivesFromEveryKindOfMemory) {
  const auto world = connected(2);
  Rank& sender = (*world)[0];
  Rank& receiver = (*world)[1];
  uint64_t match = 0;
  for (const Kind kind : kKinds)
    for (const size_t bytes : kSizes)
      for (const bool early : {false, true}) {
        if (bytes > 2 * kMi && kind != Kind::window && kind != Kind::heap) continue;
        SCOPED_TRACE(::testing::Message() << bytes << " bytes, kind " << static_cast<int>(kind) << ", early " << early);
        ++match;
        const Source source(kind, sender, bytes, match);
        Target target(bytes, match % 5);
        Ticket received = early ? receiver.recv(3, 0, match, target.data(), bytes) : 0;
        const Ticket sent = sender.send(3, 1, match, source.data(), bytes);
        if (!early) {
          if (match % 2 == 0) world->settle();
          received = receiver.recv(3, 0, match, target.data(), bytes);
        }
        EXPECT_EQ(receiver.wait(received).code, Code::ok);
        EXPECT_EQ(sender.wait(sent).code, Code::ok);
        EXPECT_TRUE(holds(target.bytes(), match));
        EXPECT_TRUE(target.is_framed());
      }
}

TEST_P(Conformance, StackMemoryCanBeSentFromAndReceivedInto) {
  const auto world = connected(2);
  std::array<std::byte, kMi + 3> from;
  std::array<std::byte, kMi + 3> to;
  fill(from, 1);
  const Ticket sent = (*world)[0].send(1, 1, 1, from.data(), from.size());
  const Ticket received = (*world)[1].recv(1, 0, 1, to.data(), to.size());
  EXPECT_EQ((*world)[1].wait(received).code, Code::ok);
  EXPECT_EQ((*world)[0].wait(sent).code, Code::ok);
  EXPECT_TRUE(holds(to, 1));
}

TEST_P(Conformance, WindowsCanBeReceivedInto) {
  const auto world = connected(2);
  for (const size_t bytes : kSizes) {
    if (bytes == 0) continue;
    SCOPED_TRACE(bytes);
    const Source source(Kind::window, (*world)[0], bytes, bytes);
    auto target = (*world)[1].transport().allocate(bytes + 1);
    ASSERT_TRUE(target.ok()) << target.status().message();
    auto* const data = static_cast<std::byte*>(*target) + 1;
    const Ticket received = (*world)[1].recv(1, 0, bytes, data, bytes);
    const Ticket sent = (*world)[0].send(1, 1, bytes, source.data(), bytes);
    EXPECT_EQ((*world)[1].wait(received).code, Code::ok);
    EXPECT_EQ((*world)[0].wait(sent).code, Code::ok);
    EXPECT_TRUE(holds({data, bytes}, bytes));
    EXPECT_TRUE((*world)[1].transport().release(*target).ok());
  }
}

// Part of a window can be sent as well as all of it.
TEST_P(Conformance, AnyPartOfAWindowCanBeSent) {
  const auto world = connected(2);
  std::vector<std::byte> content(100'000);
  fill(content, 5);
  const Source source(Kind::window, (*world)[0], content.size(), 5);
  uint64_t match = 0;
  for (const size_t offset : {1u, 7u, 64u, 4095u, 99'000u, 99'999u})
    for (const size_t bytes : {1u, 41u, 1000u, 70'001u}) {
      if (offset + bytes > content.size()) continue;
      ++match;
      std::vector<std::byte> found(bytes);
      const Ticket sent = (*world)[0].send(1, 1, match, static_cast<const std::byte*>(source.data()) + offset, bytes);
      const Ticket received = (*world)[1].recv(1, 0, match, found.data(), bytes);
      EXPECT_EQ((*world)[1].wait(received).code, Code::ok);
      EXPECT_EQ((*world)[0].wait(sent).code, Code::ok);
      EXPECT_EQ(std::memcmp(found.data(), content.data() + offset, bytes), 0) << offset << ' ' << bytes;
    }
}

// One send, readers of which some wait already, some come later, and with a match of its own for each.
TEST_P(Conformance, ASendReachesSeveralPeersWithTheirOwnMatches) {
  const auto world = connected(6);
  uint64_t match = 100;
  for (const Kind kind : {Kind::window, Kind::heap})
    for (const size_t bytes : {0u, 8u, 40u, 41u, 4097u, 65537u, 1048579u})
      for (int readers = 1; readers <= 5; ++readers) {
        SCOPED_TRACE(::testing::Message() << bytes << " bytes to " << readers);
        match += 10;
        const Source source(kind, (*world)[0], bytes, match);
        std::vector<Target> targets(static_cast<size_t>(readers), Target(bytes));
        std::vector<Endpoint> to;
        std::vector<Ticket> received(static_cast<size_t>(readers));
        const auto receive = [&](int reader) {
          received[static_cast<size_t>(reader)] = (*world)[reader + 1].recv(
              1, 0, match + static_cast<uint64_t>(reader), targets[static_cast<size_t>(reader)].data(), bytes);
        };
        for (int reader = 0; reader < readers; ++reader) {
          to.push_back({reader + 1, match + static_cast<uint64_t>(reader)});
          if (reader % 2 == 0) receive(reader);
        }
        const Ticket sent = (*world)[0].send(1, to, source.data(), bytes);
        if (match % 3 == 0) world->settle();
        for (int reader = 1; reader < readers; reader += 2) receive(reader);
        for (int reader = 0; reader < readers; ++reader) {
          EXPECT_EQ((*world)[reader + 1].wait(received[static_cast<size_t>(reader)]).code, Code::ok);
          EXPECT_TRUE(holds(targets[static_cast<size_t>(reader)].bytes(), match));
          EXPECT_TRUE(targets[static_cast<size_t>(reader)].is_framed());
        }
        EXPECT_EQ((*world)[0].wait(sent).code, Code::ok);
      }
}

// When a send is complete its memory may be changed, although nobody may have received it yet.
TEST_P(Conformance, MemoryMayBeChangedWhenItsSendIsComplete) {
  const auto world = connected(2);
  uint64_t match = 0;
  for (const size_t bytes : kSizes) {
    if (bytes == 0 || bytes > 2 * kMi) continue;
    for (const bool window : {false, true}) {
      SCOPED_TRACE(::testing::Message() << bytes << " bytes, window " << window);
      ++match;
      const Source source(window ? Kind::window : Kind::heap, (*world)[0], bytes, match);
      auto* const memory = const_cast<std::byte*>(static_cast<const std::byte*>(source.data()));
      const Ticket sent = (*world)[0].send(1, 1, match, memory, bytes);
      world->settle();
      const bool changed = (*world)[0].result(sent).has_value();
      if (changed) fill({memory, bytes}, 999);
      Target target(bytes);
      const Ticket received = (*world)[1].recv(1, 0, match, target.data(), bytes);
      EXPECT_EQ((*world)[1].wait(received).code, Code::ok);
      EXPECT_EQ((*world)[0].wait(sent).code, Code::ok);
      EXPECT_TRUE(holds(target.bytes(), match));
    }
  }
}

// poll gives no more than there is room for, and what is left later.
TEST_P(Conformance, CompletionsWaitForRoom) {
  const auto world = connected(2);
  constexpr size_t kMessages = 50;
  std::array<uint64_t, kMessages> found{};
  std::vector<bool> complete(kMessages, false);
  Transport& receiver = (*world)[1].transport();
  size_t missing = 0;
  for (size_t i = 0; i < kMessages; ++i) {
    Post post = Post::later;
    while (post == Post::later) {
      post = receiver.post_recv({.channel = 1, .from = {0, i}, .data = &found[i], .bytes = 8, .ticket = i});
      if (post == Post::later) receiver.poll({});
    }
    ASSERT_EQ(post, Post::posted);
    ++missing;
  }
  std::array<uint64_t, kMessages> values{};
  (*world)[0].set_alone(true);
  for (size_t i = 0; i < kMessages; ++i) {
    values[i] = i + 1000;
    (*world)[0].send(1, 1, i, &values[i], 8);
    EXPECT_EQ(receiver.poll({}), 0u);
  }
  const Deadline deadline = Deadline::after_us(20'000'000);
  while (missing > 0 && !deadline.passed()) {
    (*world)[0].poll();
    std::array<Completion, 3> room;
    const size_t count = receiver.poll(room);
    ASSERT_LE(count, room.size());
    for (size_t i = 0; i < count; ++i) {
      EXPECT_FALSE(complete[room[i].ticket]) << "ticket " << room[i].ticket << " twice";
      complete[room[i].ticket] = true;
      --missing;
    }
  }
  EXPECT_EQ(missing, 0u);
  EXPECT_EQ(found, values);
}

}  // namespace
}  // namespace tutti::internal::conformance
