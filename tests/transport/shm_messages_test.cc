// Messages of every form between ranks of one process.
#include <gtest/gtest.h>

#include <cstring>
#include <numeric>
#include <tuple>
#include <vector>

#include "tests/transport/shm_world.h"

namespace tutti::internal::testing {
namespace {

std::vector<std::byte> pattern(size_t bytes, unsigned seed) {
  std::vector<std::byte> data(bytes);
  for (size_t i = 0; i < bytes; ++i) data[i] = static_cast<std::byte>((i * 131 + seed * 17 + (i >> 8)) & 0xff);
  return data;
}

void add_u32(void* dst, const void* const* sources, int count, size_t elements, uint32_t) {
  for (size_t i = 0; i < elements; ++i) {
    uint32_t sum = 0;
    for (int s = 0; s < count; ++s) {
      uint32_t value = 0;
      std::memcpy(&value, static_cast<const std::byte*>(sources[s]) + 4 * i, 4);
      sum = sum * 3 + value;  // the order of the operands shows
    }
    std::memcpy(static_cast<std::byte*>(dst) + 4 * i, &sum, 4);
  }
}

TEST(ShmMessages, SendMeetsReceive) {
  ShmWorld world(2);
  const int value = 42;
  int found = 0;
  const Endpoint to{1, 7};
  EXPECT_EQ(world.rank(0).post_send({.channel = 1, .to = {&to, 1}, .data = &value, .bytes = sizeof value, .ticket = 1}),
            Post::done);
  EXPECT_EQ(world.rank(1).post_recv({.channel = 1, .from = {0, 7}, .data = &found, .bytes = sizeof found, .ticket = 2}),
            Post::posted);
  const auto done = world.wait(1, 1);
  EXPECT_EQ(done[0].ticket, 2u);
  EXPECT_EQ(done[0].code, Code::ok);
  EXPECT_EQ(found, 42);
}

// Bytes, and whether ranks may read each other's ordinary memory.
class ShmForms : public ::testing::TestWithParam<std::tuple<size_t, bool>> {};

TEST_P(ShmForms, EveryReaderGetsTheBytesWhetherItWaitsOrNot) {
  const auto [bytes, read_processes] = GetParam();
  for (const bool window : {false, true}) {
    for (const bool early : {false, true}) {
      ShmWorld world(3, read_processes);
      const auto expected = pattern(bytes, 1);
      std::vector<std::byte> own = expected;
      void* data = own.data();
      if (window && bytes > 0) {
        auto memory = world.rank(0).allocate(bytes);
        ASSERT_TRUE(memory.ok()) << memory.status().message();
        data = *memory;
        std::memcpy(data, expected.data(), bytes);
      }
      std::vector<std::vector<std::byte>> found(3, std::vector<std::byte>(bytes));
      const auto receive = [&] {
        for (int r = 1; r < 3; ++r)
          EXPECT_EQ(world.rank(r).post_recv(
                        {.channel = 5, .from = {0, 9}, .data = found[r].data(), .bytes = bytes, .ticket = 3}),
                    Post::posted);
      };
      if (early) receive();
      const std::array<Endpoint, 2> to{{{1, 9}, {2, 9}}};
      const Post sent = world.rank(0).post_send({.channel = 5, .to = to, .data = data, .bytes = bytes, .ticket = 4});
      if (!early) receive();
      for (int r = 1; r < 3; ++r) EXPECT_EQ(world.wait(r, 1).at(0).code, Code::ok);
      if (sent == Post::posted) {
        EXPECT_EQ(world.wait(0, 1).at(0).ticket, 4u);
      }
      EXPECT_EQ(found[1], expected);
      EXPECT_EQ(found[2], expected);
    }
  }
}

TEST_P(ShmForms, ReductionTakesOperandsInOrder) {
  const size_t elements = std::get<0>(GetParam()) / 4;
  ShmWorld world(4, std::get<1>(GetParam()));
  std::vector<std::vector<uint32_t>> in(4, std::vector<uint32_t>(elements));
  for (size_t r = 0; r < 4; ++r)
    for (size_t i = 0; i < elements; ++i) in[r][i] = static_cast<uint32_t>(r * 1000003 + i * 7);
  std::vector<uint32_t> expected(elements);
  for (size_t i = 0; i < elements; ++i)
    for (size_t r : {1u, 0u, 3u, 2u}) expected[i] = expected[i] * 3 + in[r][i];
  for (int r = 1; r < 4; ++r) {
    const Endpoint to{0, static_cast<uint64_t>(r)};
    ASSERT_NE(world.rank(r).post_send(
                  {.channel = 5, .to = {&to, 1}, .data = in[r].data(), .bytes = 4 * elements, .ticket = 4}),
              Post::later);
  }
  const std::array<ReduceOperand, 4> operands{
      {{{1, 1}, nullptr}, {{}, in[0].data()}, {{3, 3}, nullptr}, {{2, 2}, nullptr}}};
  const Post post = world.rank(0).post_reduce({.channel = 5,
                                               .operands = operands,
                                               .dst = in[0].data(),
                                               .element_count = elements,
                                               .reduction = {add_u32, 4, 0},
                                               .ticket = 8});
  ASSERT_EQ(post, Post::posted);
  EXPECT_EQ(world.wait(0, 1).at(0).ticket, 8u);
  EXPECT_EQ(in[0], expected);
}

INSTANTIATE_TEST_SUITE_P(Sizes, ShmForms,
                         ::testing::Combine(::testing::Values(0, 4, 40, 44, 100, 160, 220, 224, 512, 516, 32768, 32772,
                                                              65536, 100004, 1 << 20, (3 << 20) + 12),
                                            ::testing::Bool()));

TEST(ShmMessages, LengthsThatDifferAreToldToBothEnds) {
  ShmWorld world(2);
  std::vector<std::byte> data(200000), into(100000);
  const Endpoint to{1, 1};
  ASSERT_EQ(
      world.rank(0).post_send({.channel = 1, .to = {&to, 1}, .data = data.data(), .bytes = data.size(), .ticket = 1}),
      Post::posted);
  ASSERT_EQ(
      world.rank(1).post_recv({.channel = 1, .from = {0, 1}, .data = into.data(), .bytes = into.size(), .ticket = 2}),
      Post::posted);
  const Completion receiver = world.wait(1, 1).at(0);
  EXPECT_EQ(receiver.code, Code::mismatch);
  EXPECT_EQ(receiver.found_bytes, 200000u);
  const Completion sender = world.wait(0, 1).at(0);
  EXPECT_EQ(sender.code, Code::mismatch);
  EXPECT_EQ(sender.found_bytes, 100000u);
}

TEST(ShmMessages, FullRingsInBothDirectionsMoveOn) {
  ShmWorld world(2);
  constexpr size_t kMessages = 3000;
  std::vector<uint64_t> values(kMessages), found0(kMessages), found1(kMessages);
  std::iota(values.begin(), values.end(), 100u);
  std::array<size_t, 2> sent{};
  std::array<Completion, 16> out;
  while (sent[0] < kMessages || sent[1] < kMessages)
    for (int r = 0; r < 2; ++r) {
      while (sent[r] < kMessages) {
        const Endpoint to{1 - r, sent[r]};
        if (world.rank(r).post_send({.channel = 1, .to = {&to, 1}, .data = &values[sent[r]], .bytes = 8}) ==
            Post::later)
          break;
        ++sent[r];
      }
      world.rank(r).poll(out);
    }
  std::vector<std::vector<Completion>> done;
  for (size_t i = kMessages; i-- > 0;) {  // against the order of arrival
    ASSERT_EQ(world.rank(0).post_recv({.channel = 1, .from = {1, i}, .data = &found0[i], .bytes = 8}) == Post::failed,
              false);
    ASSERT_EQ(world.rank(1).post_recv({.channel = 1, .from = {0, i}, .data = &found1[i], .bytes = 8}) == Post::failed,
              false);
    world.poll(done);
  }
  for (int i = 0; i < 1000; ++i) world.poll(done);
  EXPECT_EQ(found0, values);
  EXPECT_EQ(found1, values);
}

}  // namespace
}  // namespace tutti::internal::testing
