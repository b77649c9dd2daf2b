// Windows: memory that the transport allocates.
#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <random>
#include <vector>

#include "tests/transport/conformance.h"

namespace tutti::internal::conformance {
namespace {

bool is_zero(const void* memory, size_t bytes) {
  const auto* const data = static_cast<const unsigned char*>(memory);
  return std::all_of(data, data + bytes, [](unsigned char byte) { return byte == 0; });
}

TEST_P(Conformance, WindowsAreZeroedAlignedAndWritable) {
  const auto world = unconnected(1);
  Transport& transport = (*world)[0].transport();
  const auto page = static_cast<size_t>(sysconf(_SC_PAGESIZE));
  for (const size_t bytes : {size_t{1}, size_t{7}, page - 1, page, page + 1, size_t{3} << 20, (size_t{16} << 20) + 1})
    for (int round = 0; round < 3; ++round) {  // the second time it may be the same memory
      auto window = transport.allocate(bytes);
      ASSERT_TRUE(window.ok()) << window.status().message();
      EXPECT_EQ(reinterpret_cast<uintptr_t>(*window) % page, 0u);
      EXPECT_TRUE(is_zero(*window, bytes)) << bytes;
      std::memset(*window, 0xff, bytes);
      EXPECT_TRUE(transport.release(*window).ok());
    }
}

TEST_P(Conformance, OnlyWhatIsAllocatedCanBeReleased) {
  const auto world = unconnected(2);
  Transport& transport = (*world)[0].transport();
  auto window = transport.allocate(100'000);
  auto foreign = (*world)[1].transport().allocate(100'000);
  ASSERT_TRUE(window.ok() && foreign.ok());
  int local = 0;
  for (void* const memory : {static_cast<void*>(nullptr), static_cast<void*>(&local),
                             static_cast<void*>(static_cast<char*>(*window) + 4096), *foreign}) {
    const Status status = transport.release(memory);
    EXPECT_EQ(status.code(), Code::invalid_argument);
    EXPECT_NE(status.message(), "");
  }
  EXPECT_TRUE(transport.release(*window).ok());
  EXPECT_EQ(transport.release(*window).code(), Code::invalid_argument) << "twice";
}

TEST_P(Conformance, WindowsDoNotOverlapAndComeBack) {
  std::mt19937_64 random = seeded();
  const auto world = unconnected(1);
  Transport& transport = (*world)[0].transport();
  struct Held {
    unsigned char* memory;
    size_t bytes;
    unsigned char mark;
  };
  std::vector<Held> held;
  for (int round = 0; round < 1000; ++round) {
    if (held.size() < 20 && random() % 5 < 3) {
      const size_t bytes = size_t{1} + random() % (random() % 4 == 0 ? 4'000'000 : 20'000);
      auto window = transport.allocate(bytes);
      ASSERT_TRUE(window.ok()) << window.status().message();
      ASSERT_TRUE(is_zero(*window, bytes));
      const auto mark = static_cast<unsigned char>(round % 255 + 1);
      std::memset(*window, mark, bytes);
      held.push_back({static_cast<unsigned char*>(*window), bytes, mark});
    } else if (!held.empty()) {
      std::swap(held[random() % held.size()], held.back());
      const Held& last = held.back();
      ASSERT_EQ(std::count(last.memory, last.memory + last.bytes, last.mark), static_cast<ptrdiff_t>(last.bytes));
      ASSERT_TRUE(transport.release(last.memory).ok());
      held.pop_back();
    }
  }
}

// A window that was released is not mistaken for its successor at the same place.
TEST_P(Conformance, WindowsAreUsedAgainForMessages) {
  const auto world = connected(2);
  std::vector<std::byte> to(300'000);
  for (uint64_t round = 0; round < 200; ++round) {
    const size_t bytes = 1 + round * 1499 % to.size();
    auto window = (*world)[0].transport().allocate(bytes);
    ASSERT_TRUE(window.ok()) << window.status().message();
    fill({static_cast<std::byte*>(*window), bytes}, round);
    const Ticket sent = (*world)[0].send(1, 1, round, *window, bytes);
    ASSERT_EQ((*world)[1].wait((*world)[1].recv(1, 0, round, to.data(), bytes)).code, Code::ok);
    ASSERT_EQ((*world)[0].wait(sent).code, Code::ok);
    ASSERT_TRUE(holds(std::span(to).first(bytes), round));
    ASSERT_TRUE((*world)[0].transport().release(*window).ok());
  }
}

// More than there is gives an error, never a crash on first touch.
TEST_P(Conformance, AWindowLargerThanTheMachineIsRefusedOrUsable) {
  const auto world = unconnected(1);
  Transport& transport = (*world)[0].transport();
  for (const size_t bytes : {size_t{1} << 40, size_t{1} << 46, size_t{1} << 62, ~size_t{0}, ~size_t{0} - 4095}) {
    SCOPED_TRACE(bytes);
    auto window = transport.allocate(bytes);
    if (!window.ok()) {
      EXPECT_EQ(window.status().code(), Code::out_of_resources);
      EXPECT_NE(window.status().message(), "");
      continue;
    }
    static_cast<char*>(*window)[0] = 1;
    static_cast<char*>(*window)[bytes - 1] = 1;
    EXPECT_TRUE(transport.release(*window).ok());
  }
  EXPECT_TRUE(transport.allocate(4096).ok());
}

TEST_P(Conformance, MemoryOfTheUserCanBeRegistered) {
  const auto world = connected(2);
  std::vector<std::byte> from(200'000);
  std::vector<std::byte> to(200'000);
  Transport& transport = (*world)[0].transport();
  for (uint64_t round = 0; round < 10; ++round) {
    ASSERT_TRUE(transport.register_memory(from.data(), from.size()).ok());
    fill(from, round);
    const Ticket sent = (*world)[0].send(1, 1, round, from.data() + 1, from.size() - 1);
    ASSERT_EQ((*world)[1].wait((*world)[1].recv(1, 0, round, to.data() + 1, to.size() - 1)).code, Code::ok);
    ASSERT_EQ((*world)[0].wait(sent).code, Code::ok);
    to[0] = from[0];
    ASSERT_TRUE(holds(to, round));
    ASSERT_TRUE(transport.unregister_memory(from.data()).ok());
  }
}

}  // namespace
}  // namespace tutti::internal::conformance
