// The parts of shm by themselves: windows, slots, the ring, addresses.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <linux/mempolicy.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstring>
#include <map>
#include <random>
#include <thread>
#include <vector>

#include "src/base/clock.h"
#include "transport/shm/address.h"
#include "transport/shm/arena.h"
#include "transport/shm/copy.h"
#include "transport/shm/handshake.h"
#include "transport/shm/region.h"
#include "transport/shm/ring.h"
#include "transport/shm/window_allocator.h"

namespace tutti::internal::shm {
namespace {

using ::testing::HasSubstr;

TEST(WindowAllocator, GivesDisjointPagesAndJoinsWhatComesBack) {
  WindowAllocator windows(1 << 21, 1 << 24, 4096, 1 << 21);
  const size_t all = windows.largest_free();
  const auto small = windows.allocate(1);
  const auto large = windows.allocate(3 << 20);
  ASSERT_TRUE(small && large);
  EXPECT_EQ(*large % (1 << 21), 0u);
  EXPECT_FALSE(windows.allocate(all));
  EXPECT_EQ(windows.release(*small), 4096u);
  EXPECT_EQ(windows.release(*small), std::nullopt);
  EXPECT_EQ(windows.release(*large), size_t{3} << 20);
  EXPECT_EQ(windows.largest_free(), all);
}

TEST(WindowAllocator, StaysDisjointOverManyRandomRequests) {
  const unsigned seed = ::testing::UnitTest::GetInstance()->random_seed();
  SCOPED_TRACE(::testing::Message() << "seed " << seed);
  std::mt19937 random(seed);
  WindowAllocator windows(0, 1 << 26, 4096, 1 << 21);
  std::map<size_t, size_t> used;
  for (int i = 0; i < 5000; ++i) {
    if (used.empty() || random() % 3 != 0) {
      const size_t bytes = random() % (i % 10 == 0 ? 5'000'000 : 50'000) + 1;
      const auto offset = windows.allocate(bytes);
      if (!offset) continue;
      const auto next = used.lower_bound(*offset);
      if (next != used.end()) {
        ASSERT_LE(*offset + bytes, next->first);
      }
      if (next != used.begin()) {
        ASSERT_LE(std::prev(next)->first + std::prev(next)->second, *offset);
      }
      used[*offset] = round_up(bytes, 4096);
    } else {
      auto it = used.begin();
      std::advance(it, random() % used.size());
      ASSERT_EQ(windows.release(it->first), it->second);
      used.erase(it);
    }
  }
  for (const auto& [offset, bytes] : used) ASSERT_TRUE(windows.release(offset));
  EXPECT_EQ(windows.largest_free(), size_t{1} << 26);
}

TEST(Arena, ASlotIsFreeAgainAfterItsLastReader) {
  std::vector<std::byte> memory(kArenaBytes);
  Arena arena(memory.data());
  const uint32_t first = arena.take(100, 2);
  ASSERT_NE(first, kNoSlot);
  arena.release(first);
  EXPECT_EQ(arena.used(), 1u);
  EXPECT_NE(arena.take(100, 1), first);
  arena.release(first);
  EXPECT_EQ(arena.take(100, 1), first);  // the warm one
}

TEST(Arena, SlotsAreDisjointAndFitAndLargerOnesHelpOut) {
  std::vector<std::byte> memory(kArenaBytes);
  Arena arena(memory.data());
  std::map<std::byte*, size_t> taken;
  uint32_t slot = 0;
  while ((slot = arena.take(1, 1)) != kNoSlot) taken[arena.data(slot)] = kSlotClasses[class_of_slot(slot)].slot_bytes;
  EXPECT_EQ(taken.size(), slots_before(kChunkClass));
  EXPECT_NE(arena.take_chunk(1), kNoSlot);  // streams have their own
  const std::byte* end = memory.data();
  for (const auto& [at, bytes] : taken) {
    EXPECT_GE(at, end);
    end = at + bytes;
  }
  EXPECT_LE(end, memory.data() + memory.size());
}

TEST(Ring, CellsArriveOnceInOrderAndTheWriterNeverOvertakes) {
  constexpr uint64_t kCells = 200'000;
  alignas(kLine) static std::array<Cell, kRingCells> cells{};
  alignas(kLine) static uint64_t consumed = 0;
  RingWriter writer(cells.data(), &consumed);
  RingReader reader(cells.data(), &consumed);
  std::atomic<bool> stop{false};
  std::thread other([&] {
    for (uint64_t i = 0; i < kCells && !stop.load();) {
      if (!writer.has_room()) {
        std::this_thread::yield();
        continue;
      }
      writer.cell().match = i;
      std::memcpy(writer.cell().payload.data() + 32, &i, sizeof i);
      writer.publish();
      ++i;
    }
  });
  const Deadline deadline = Deadline::after_us(20'000'000);
  for (uint64_t i = 0; i < kCells;) {
    const Cell* const cell = reader.peek();
    if (cell == nullptr) {
      std::this_thread::yield();
      if (!deadline.passed()) continue;
      ADD_FAILURE() << "cell " << i << " does not come";
      break;
    }
    uint64_t payload = 0;
    std::memcpy(&payload, cell->payload.data() + 32, sizeof payload);
    if (cell->match != i || payload != i) {
      ADD_FAILURE() << "cell " << i << " says " << cell->match << " and " << payload;
      break;
    }
    reader.pop();
    ++i;
  }
  stop.store(true);
  other.join();
  EXPECT_EQ(reader.peek(), nullptr);
}

TEST(Ring, LinesGoWithTheirCellAcrossTheEnd) {
  alignas(kLine) std::array<Cell, kRingCells> cells{};
  alignas(kLine) uint64_t consumed = 0;
  RingWriter writer(cells.data(), &consumed);
  RingReader reader(cells.data(), &consumed);
  for (uint32_t i = 0; i < 10 * kRingCells; ++i) {  // 4 and 3 cells in turn: every position, also across the end
    const uint32_t lines = 3 - i % 2;
    ASSERT_TRUE(writer.has_room(1 + lines));
    for (uint32_t n = 0; n < lines; ++n) std::memset(writer.line(n), static_cast<int>(i + n), kLineBytes);
    writer.publish(lines);
    ASSERT_NE(reader.peek(), nullptr);
    for (uint32_t n = 0; n < lines; ++n)
      ASSERT_TRUE(std::all_of(reader.line(n), reader.line(n) + kLineBytes,
                              [&](std::byte b) { return b == static_cast<std::byte>(i + n); }));
    reader.pop(lines);
    ASSERT_EQ(reader.peek(), nullptr);
  }
}

TEST(Ring, AFullRingStopsTheWriterUntilAQuarterIsTaken) {
  alignas(kLine) std::array<Cell, kRingCells> cells{};
  alignas(kLine) uint64_t consumed = 0;
  RingWriter writer(cells.data(), &consumed);
  RingReader reader(cells.data(), &consumed);
  for (uint32_t i = 0; i < kRingCells; ++i) {
    ASSERT_TRUE(writer.has_room());
    writer.publish();
  }
  EXPECT_FALSE(writer.has_room());
  for (uint32_t i = 0; i < kRingCells / 4; ++i) {
    ASSERT_NE(reader.peek(), nullptr);
    reader.pop();
  }
  EXPECT_TRUE(writer.has_room());
}

TEST(CopySmall, CopiesExactlyTheBytes) {
  for (size_t bytes = 0; bytes <= kCellBytes; ++bytes) {
    std::vector<unsigned char> from(bytes);
    for (size_t i = 0; i < bytes; ++i) from[i] = static_cast<unsigned char>(i + 1);
    std::vector<unsigned char> to(kCellBytes + 8, 0xee);
    copy_small(to.data(), from.data(), bytes);
    EXPECT_TRUE(std::equal(from.begin(), from.end(), to.begin())) << bytes;
    EXPECT_TRUE(std::all_of(to.begin() + static_cast<ptrdiff_t>(bytes), to.end(), [](auto b) { return b == 0xee; }))
        << bytes;
  }
}

TEST(CopyBytes, CopiesExactlyTheBytesAtAnyAlignment) {
  for (const size_t message : {size_t{100}, size_t{64} << 20})  // by way of the cache, and past it
    for (const size_t shift : {0u, 1u, 31u, 63u})
      for (const size_t bytes : {0u, 1u, 63u, 64u, 65u, 1000u, 4096u, 70001u}) {
        std::vector<unsigned char> from(bytes + 64);
        for (size_t i = 0; i < from.size(); ++i) from[i] = static_cast<unsigned char>(i * 7 + 1);
        std::vector<unsigned char> to(bytes + 200, 0xee);
        copy_bytes(to.data() + shift, from.data() + 3, bytes, message);
        EXPECT_TRUE(std::equal(from.begin() + 3, from.begin() + 3 + static_cast<ptrdiff_t>(bytes),
                               to.begin() + static_cast<ptrdiff_t>(shift)));
        EXPECT_TRUE(
            std::all_of(to.begin(), to.begin() + static_cast<ptrdiff_t>(shift), [](auto b) { return b == 0xee; }));
        EXPECT_TRUE(std::all_of(to.begin() + static_cast<ptrdiff_t>(shift + bytes), to.end(),
                                [](auto b) { return b == 0xee; }));
      }
}

TEST(Address, ComesBackAsItWas) {
  const Address address = own_address(3, 77);
  auto decoded = Address::decode(address.encode());
  ASSERT_TRUE(decoded.ok());
  EXPECT_EQ(decoded->rank, 3);
  EXPECT_EQ(decoded->nonce, 77u);
  EXPECT_EQ(decoded->socket_name, address.socket_name);
  EXPECT_TRUE(same_node(address, *decoded).ok());
}

TEST(Address, WhatIsNoAddressIsRefused) {
  std::string bytes = own_address(3, 77).encode();
  EXPECT_THAT(Address::decode("").status().message(), HasSubstr("0 bytes"));
  EXPECT_EQ(Address::decode(bytes + "x").status().code(), Code::mismatch);
  EXPECT_EQ(Address::decode(std::string_view(bytes).substr(1)).status().code(), Code::mismatch);
  bytes[0] ^= 1;
  EXPECT_THAT(Address::decode(bytes).status().message(), HasSubstr("version"));
}

TEST(Address, AnotherMachineIsNotReachable) {
  const Address own = own_address(0, 1);
  Address other = own_address(1, 2);
  other.boot_id[0] ^= 1;
  EXPECT_EQ(same_node(own, other).code(), Code::unsupported);
}

TEST(Region, WindowsAreZeroedAlsoTheSecondTime) {
  auto made = Region::create(0, 2);
  ASSERT_TRUE(made.ok()) << made.status().message();
  Region& region = **made;
  for (const size_t bytes : {size_t{1}, size_t{4096}, (size_t{4} << 20) + 1}) {
    for (int round = 0; round < 2; ++round) {
      auto memory = region.allocate(bytes);
      ASSERT_TRUE(memory.ok()) << memory.status().message();
      auto* const data = static_cast<unsigned char*>(*memory);
      EXPECT_TRUE(std::all_of(data, data + bytes, [](auto b) { return b == 0; }));
      std::memset(data, 0xff, bytes);
      EXPECT_TRUE(region.release(data).ok());
    }
  }
}

// What the kernel answers of the policy at this address: its mode, and the nodes as bits.
std::pair<int, unsigned long> policy_at(const void* address) {
  int mode = -1;
  unsigned long nodes[16] = {};
  constexpr size_t kBits = sizeof nodes * 8;
  if (syscall(SYS_get_mempolicy, &mode, nodes, kBits, address, MPOL_F_ADDR) != 0) mode = -1;
  return {mode, nodes[0]};
}

TEST(Region, OfANumaNodeHasItsMemoryThere) {
  auto near = Region::create(0, 2, 0);
  auto anywhere = Region::create(1, 2);
  ASSERT_TRUE(near.ok() && anywhere.ok());
  const auto window_of = [](Region& region) { return region.allocate(4096).value(); };
  const auto anywhere_policy = policy_at(window_of(**anywhere));
  if (anywhere_policy.first < 0) GTEST_SKIP() << "the kernel does not tell: " << strerror(errno);
  EXPECT_EQ(anywhere_policy, std::pair(int{MPOL_DEFAULT}, 0UL));
  for (const void* memory : {window_of(**near), static_cast<void*>((*near)->base())})
    EXPECT_EQ(policy_at(memory), std::pair(int{MPOL_PREFERRED}, 1UL)) << "node 0, which is on every machine";
}

TEST(Region, MoreMemoryThanThereIsIsAnErrorNotASignal) {
  auto made = Region::create(0, 2);
  ASSERT_TRUE(made.ok());
  for (const size_t bytes : {size_t{1} << 62, size_t{1} << 45, (*made)->bytes()}) {
    auto memory = (*made)->allocate(bytes);
    ASSERT_FALSE(memory.ok());
    EXPECT_EQ(memory.status().code(), Code::out_of_resources);
    EXPECT_THAT(memory.status().message(), HasSubstr(std::to_string(bytes)));
  }
  EXPECT_TRUE((*made)->allocate(4096).ok());
}

TEST(Region, ReleasingWhatIsNoWindowIsRefused) {
  auto made = Region::create(0, 2);
  ASSERT_TRUE(made.ok());
  int local = 0;
  EXPECT_EQ((*made)->release(&local).code(), Code::invalid_argument);
  EXPECT_EQ((*made)->release((*made)->base()).code(), Code::invalid_argument);
  auto memory = (*made)->allocate(8192);
  ASSERT_TRUE(memory.ok());
  EXPECT_EQ((*made)->release(static_cast<std::byte*>(*memory) + 4096).code(), Code::invalid_argument);
  EXPECT_TRUE((*made)->release(*memory).ok());
  EXPECT_EQ((*made)->release(*memory).code(), Code::invalid_argument);
}

TEST(Handshake, PacketsOfAnotherShapeAreRefused) {
  Packet out;
  Packet packet;
  packet.kind = PacketKind::hello;
  const auto bytes = std::as_bytes(std::span(&packet, 1));
  EXPECT_TRUE(Handshake::parse(bytes, out).ok());
  EXPECT_EQ(Handshake::parse(bytes.first(bytes.size() - 1), out).code(), Code::mismatch);
  packet.version = kVersion + 1;
  EXPECT_EQ(Handshake::parse(bytes, out).code(), Code::mismatch);
}

}  // namespace
}  // namespace tutti::internal::shm
