// Asynchronous operations: many at once, waiting in any order, with and without patience.
#include <gtest/gtest.h>

#include <numeric>

#include "world.h"

namespace tutti_test {
namespace {

TEST(Async, OverlapsWithWorkAndWaitsAtTheEnd) {
  run_world(3, [](tutti_group* world, int rank) {
    std::vector<float> data(100'000, static_cast<float>(rank));
    tutti_work* work = nullptr;
    ASSERT_TUTTI_OK(
        tutti_all_reduce_async(world, data.data(), data.data(), data.size(), TUTTI_FLOAT32, TUTTI_MAX, nullptr, &work));
    EXPECT_TUTTI_OK(tutti_work_wait(work));
    EXPECT_EQ(data, std::vector<float>(100'000, 2));
    EXPECT_TUTTI_OK(tutti_work_wait(work)) << "the answer stays";
    EXPECT_TUTTI_OK(tutti_work_free(work));
  });
}

TEST(Async, TenThousandSmallOnesBeforeAnyWait) {
  run_world(2, [](tutti_group* world, int rank) {
    constexpr size_t kCount = 10'000;
    std::vector<int64_t> in(kCount), out(kCount);
    std::vector<tutti_work*> works(kCount);
    for (size_t i = 0; i < kCount; ++i) {
      in[i] = static_cast<int64_t>(i) + rank;
      ASSERT_TUTTI_OK(tutti_all_reduce_async(world, &in[i], &out[i], 1, TUTTI_INT64, TUTTI_SUM, nullptr, &works[i]));
    }
    for (size_t i = kCount; i-- > 0;) {
      ASSERT_TUTTI_OK(tutti_work_wait(works[i]));
      ASSERT_EQ(out[i], 2 * static_cast<int64_t>(i) + 1);
      ASSERT_TUTTI_OK(tutti_work_free(works[i]));
    }
  });
}

TEST(Async, MixedOperationsAndSizesInFlightTogether) {
  run_world(4, [](tutti_group* world, int rank) {
    constexpr int kRounds = 30;
    const std::vector<size_t> sizes{0, 1, 100, 5000, 70'000};
    std::vector<std::vector<int32_t>> buffers;
    std::vector<tutti_work*> works;
    for (int i = 0; i < kRounds; ++i) {
      const size_t count = sizes[static_cast<size_t>(i) % sizes.size()];
      auto& buffer = buffers.emplace_back(count, rank == i % 4 ? i : -1);
      tutti_work* work = nullptr;
      if (i % 3 == 0) {
        ASSERT_TUTTI_OK(tutti_barrier_async(world, nullptr, &work));
      } else {
        ASSERT_TUTTI_OK(tutti_broadcast_async(world, buffer.data(), count, TUTTI_INT32, i % 4, nullptr, &work));
      }
      works.push_back(work);
    }
    for (int i = 0; i < kRounds; ++i) {
      ASSERT_TUTTI_OK(tutti_work_wait(works[static_cast<size_t>(i)]));
      ASSERT_TUTTI_OK(tutti_work_free(works[static_cast<size_t>(i)]));
      if (i % 3 != 0) {
        EXPECT_EQ(buffers[static_cast<size_t>(i)], std::vector<int32_t>(buffers[static_cast<size_t>(i)].size(), i));
      }
    }
  });
}

TEST(Async, TestAndWaitForDoNotWaitLongerThanAsked) {
  run_world(2, [](tutti_group* world, int rank) {
    tutti_work* work = nullptr;
    int done = -1;
    if (rank == 0) {
      ASSERT_TUTTI_OK(tutti_barrier_async(world, nullptr, &work));
      EXPECT_TUTTI_OK(tutti_work_test(work, &done));
      EXPECT_EQ(done, 0);
      EXPECT_TUTTI_OK(tutti_work_wait_for(work, 20'000, &done));
      EXPECT_EQ(done, 0);
      EXPECT_EQ(tutti_work_wait_for(work, -1, &done), TUTTI_INVALID_ARGUMENT);
      int32_t go = 1;
      EXPECT_TUTTI_OK(tutti_send(world, &go, 1, TUTTI_INT32, 1, nullptr));
    } else {
      int32_t go = 0;
      EXPECT_TUTTI_OK(tutti_recv(world, &go, 1, TUTTI_INT32, 0, nullptr));
      ASSERT_TUTTI_OK(tutti_barrier_async(world, nullptr, &work));
    }
    while (done != 1) ASSERT_TUTTI_OK(tutti_work_test(work, &done));
    EXPECT_TUTTI_OK(tutti_work_free(work));
  });
}

TEST(Async, SendsAndReceivesMeetInOrder) {
  for (size_t bytes : {size_t{1}, size_t{4096}, size_t{300'000}, size_t{8} << 20})
    run_world(3, [&](tutti_group* world, int rank) {
      // A ring in which all send first, and then receive.
      const int right = (rank + 1) % 3, left = (rank + 2) % 3;
      std::vector<std::vector<uint8_t>> out, in;
      std::vector<tutti_work*> works;
      for (uint8_t i = 0; i < 4; ++i) {
        out.emplace_back(bytes, static_cast<uint8_t>(rank * 10 + i));
        in.emplace_back(bytes);
        tutti_work* work = nullptr;
        ASSERT_TUTTI_OK(tutti_send_async(world, out.back().data(), bytes, TUTTI_UINT8, right, nullptr, &work));
        works.push_back(work);
      }
      for (auto& buffer : in) ASSERT_TUTTI_OK(tutti_recv(world, buffer.data(), bytes, TUTTI_UINT8, left, nullptr));
      for (uint8_t i = 0; i < 4; ++i)
        EXPECT_EQ(in[i], std::vector<uint8_t>(bytes, static_cast<uint8_t>(left * 10 + i)));
      for (tutti_work* work : works) {
        EXPECT_TUTTI_OK(tutti_work_wait(work));
        EXPECT_TUTTI_OK(tutti_work_free(work));
      }
    });
}

TEST(Async, AListOfPiecesIsTheCallersAgainWhenTheCallReturns) {
  run_world(3, [](tutti_group* world, int rank) {
    const int32_t mine = rank * 5;
    int32_t got[3] = {-1, -1, -1};
    tutti_work* work = nullptr;
    {
      std::vector<void*> pieces{&got[2], &got[0], &got[1]};
      ASSERT_TUTTI_OK(tutti_all_gather_list_async(world, &mine, pieces.data(), 1, TUTTI_INT32, nullptr, &work));
      pieces.assign(3, nullptr);
    }
    EXPECT_TUTTI_OK(tutti_work_wait(work));
    EXPECT_EQ(got[2], 0);
    EXPECT_EQ(got[0], 5);
    EXPECT_EQ(got[1], 10);
    EXPECT_TUTTI_OK(tutti_work_free(work));
  });
}

}  // namespace
}  // namespace tutti_test
