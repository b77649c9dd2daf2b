// What a caller can do wrong, and what the library says then: the object, the value found, the value allowed. Nothing
// hangs and nothing is half done: the group goes on after an invalid argument.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <climits>

#include "world.h"

namespace tutti_test {
namespace {

using ::testing::HasSubstr;

void expect_refused(tutti_status status, const std::string& text) {
  EXPECT_EQ(status, TUTTI_INVALID_ARGUMENT);
  EXPECT_THAT(tutti_last_error(), HasSubstr(text));
}

TEST(Misuse, BadValuesAreNamedAndTheGroupGoesOn) {
  run_world(2, [](tutti_group* world, int) {
    float in[4] = {1, 2, 3, 4}, out[4];
    expect_refused(tutti_broadcast(world, in, 4, TUTTI_FLOAT32, 2, nullptr), "root 2");
    expect_refused(tutti_broadcast(world, in, 4, TUTTI_FLOAT32, -1, nullptr), "root -1");
    for (int type : {12, 256, -1, INT_MAX})
      expect_refused(tutti_broadcast(world, in, 4, static_cast<tutti_type>(type), 0, nullptr),
                     "type " + std::to_string(type));
    for (int op : {8, 256, -1})
      expect_refused(tutti_all_reduce(world, in, out, 4, TUTTI_FLOAT32, static_cast<tutti_op>(op), nullptr),
                     "operator " + std::to_string(op));
    for (tutti_op op : {TUTTI_BIT_AND, TUTTI_BIT_OR, TUTTI_BIT_XOR})
      expect_refused(tutti_all_reduce(world, in, out, 4, TUTTI_FLOAT32, op, nullptr), "float32");
    expect_refused(tutti_all_reduce(world, nullptr, out, 4, TUTTI_FLOAT32, TUTTI_SUM, nullptr), "input is NULL");
    expect_refused(tutti_all_reduce(world, in, nullptr, 4, TUTTI_FLOAT32, TUTTI_SUM, nullptr), "output is NULL");
    expect_refused(tutti_all_reduce(world, in, out, SIZE_MAX / 2, TUTTI_FLOAT32, TUTTI_SUM, nullptr), "count");
    expect_refused(tutti_send(world, in, 4, TUTTI_FLOAT32, 7, nullptr), "peer 7");
    tutti_options options = TUTTI_OPTIONS;
    options.timeout_us = -5;
    expect_refused(tutti_barrier(world, &options), "timeout -5");
    options.struct_bytes = 3;
    expect_refused(tutti_barrier(world, &options), "struct_bytes");
    expect_refused(tutti_barrier_async(world, nullptr, nullptr), "NULL");
    EXPECT_TUTTI_OK(tutti_all_reduce(world, in, out, 4, TUTTI_FLOAT32, TUTTI_SUM, nullptr));
    EXPECT_EQ(out[3], 8);
  });
}

TEST(Misuse, OverlapThatIsNotInPlaceIsRefused) {
  run_world(2, [](tutti_group* world, int rank) {
    std::vector<int32_t> buffer(64);
    int32_t* at = buffer.data();
    expect_refused(tutti_all_reduce(world, at, at + 4, 16, TUTTI_INT32, TUTTI_SUM, nullptr), "overlap");
    expect_refused(tutti_all_gather(world, at + (rank == 0 ? 8 : 0), at, 8, TUTTI_INT32, nullptr), "overlap");
    void* pieces[2] = {at, at + 4};
    expect_refused(tutti_all_gather_list(world, at, pieces, 8, TUTTI_INT32, nullptr), "overlap");
    EXPECT_TUTTI_OK(tutti_all_gather(world, at + 8 * rank, at, 8, TUTTI_INT32, nullptr));
  });
}

TEST(Misuse, HandlesThatWereGivenBackAreRefused) {
  run_world(2, [](tutti_group* world, int) {
    tutti_group* copy = nullptr;
    ASSERT_TUTTI_OK(tutti_dup(world, &copy));
    tutti_work* work = nullptr;
    ASSERT_TUTTI_OK(tutti_barrier_async(copy, nullptr, &work));
    EXPECT_TUTTI_OK(tutti_group_free(copy));
    expect_refused(tutti_barrier(copy, nullptr), "given back");
    expect_refused(tutti_group_free(copy), "given back");
    expect_refused(tutti_work_wait(work), "given back");
    expect_refused(tutti_work_free(work), "given back");
    EXPECT_EQ(tutti_group_rank(copy), -1);
    expect_refused(tutti_barrier(nullptr, nullptr), "NULL");
    int nothing = 0;
    expect_refused(tutti_barrier(reinterpret_cast<tutti_group*>(&nothing), nullptr), "not the handle");
    EXPECT_TUTTI_OK(tutti_group_free(nullptr));
    EXPECT_TUTTI_OK(tutti_work_free(nullptr));
  });
}

TEST(Misuse, RankListsOfSubgroupsAreChecked) {
  run_world(2, [](tutti_group* world, int) {
    tutti_group* group = nullptr;
    const int twice[] = {1, 1}, beyond[] = {0, 2};
    expect_refused(tutti_subgroup(world, twice, 2, &group), "twice");
    expect_refused(tutti_subgroup(world, beyond, 2, &group), "2 is not a rank");
    expect_refused(tutti_split(world, -7, 0, &group), "color -7");
    expect_refused(tutti_split(world, 0, 0, nullptr), "NULL");
  });
}

TEST(Misuse, SettingsOfAnyBytesAreDescribedAndTheGroupIsFreed) {
  run_world(1,
            [](tutti_group* world, int) {
              char text[8192];
              size_t needed = 0;
              EXPECT_TUTTI_OK(tutti_describe(world, text, sizeof text, &needed));
              EXPECT_THAT(text, HasSubstr("TUTTI_STORE_FILE"));
            },
            {"TUTTI_STORE_FILE=/tmp/\xff"});
}

TEST(Misuse, JoiningWithBadSettingsIsRefusedAtOnce) {
  const auto refused_with = [](std::vector<const char*> settings, const std::string& text) {
    settings.push_back(nullptr);
    tutti_init_options options = TUTTI_INIT_OPTIONS;
    options.settings = settings.data();
    tutti_group* world = nullptr;
    expect_refused(tutti_init(&options, &world), text);
    EXPECT_EQ(world, nullptr);
  };
  refused_with({"TUTTI_TIMEOUT=-1"}, "TUTTI_TIMEOUT");
  refused_with({"TUTTI_ALGORITHM=all_reduce:rong"}, "ring");
  refused_with({"TUTTI_ALGORITHM=all_reduz:ring"}, "all_reduce");
  refused_with({"TUTTI_IB_DEVICES=mlx5_0,,mlx5_1"}, "a name is missing");
  refused_with({"TUTTI_TIMEOTU=3"}, "TUTTI_TIMEOUT");
  refused_with({"WORLD_SIZE=4x"}, "WORLD_SIZE");
  refused_with({"WORLD_SIZE=0"}, "WORLD_SIZE");
  refused_with({"WORLD_SIZE=4294967298"}, "WORLD_SIZE");
}

TEST(Mismatch, CheckingShowsBothCallsOnAllRanks) {
  struct Difference {
    const char* name;
    tutti_status (*call)(tutti_group*, int, float*, float*);
    const char *first, *other;
  };
  const Difference differences[] = {
      {"count",
       [](tutti_group* w, int r, float* in, float* out) {
         return tutti_all_reduce(w, in, out, r == 2 ? 8 : 4, TUTTI_FLOAT32, TUTTI_SUM, nullptr);
       },
       "all_reduce(count 4, float32, sum)", "all_reduce(count 8, float32, sum)"},
      {"type",
       [](tutti_group* w, int r, float* in, float* out) {
         return tutti_all_reduce(w, in, out, 4, r == 2 ? TUTTI_INT32 : TUTTI_FLOAT32, TUTTI_SUM, nullptr);
       },
       "float32", "int32"},
      {"operator",
       [](tutti_group* w, int r, float* in, float* out) {
         return tutti_all_reduce(w, in, out, 4, TUTTI_FLOAT32, r == 2 ? TUTTI_MAX : TUTTI_SUM, nullptr);
       },
       "sum", "max"},
      {"root",
       [](tutti_group* w, int r, float* in, float*) {
         return tutti_broadcast(w, in, 4, TUTTI_FLOAT32, r == 2 ? 1 : 0, nullptr);
       },
       "root 0", "root 1"},
      {"operation",
       [](tutti_group* w, int r, float* in, float* out) {
         return r == 2 ? tutti_barrier(w, nullptr) : tutti_all_gather(w, in, out, 2, TUTTI_FLOAT32, nullptr);
       },
       "all_gather(count 2, float32)", "barrier()"}};
  for (const Difference& difference : differences) {
    SCOPED_TRACE(difference.name);
    run_world(3,
              [&](tutti_group* world, int rank) {
                float in[16] = {}, out[16] = {};
                EXPECT_TUTTI_OK(tutti_barrier(world, nullptr));
                EXPECT_EQ(difference.call(world, rank, in, out), TUTTI_MISMATCH);
                EXPECT_THAT(tutti_last_error(), HasSubstr(difference.first));
                EXPECT_THAT(tutti_last_error(), HasSubstr(difference.other));
                EXPECT_EQ(tutti_barrier(world, nullptr), TUTTI_MISMATCH) << "the group takes no more operations";
              },
              {"TUTTI_CHECK=1", "TUTTI_TIMEOUT=20"});
  }
}

TEST(Mismatch, LengthsThatDifferAreFoundWithoutCheckingToo) {
  run_world(2,
            [](tutti_group* world, int rank) {
              std::vector<float> in(100), out(100);
              const size_t count = rank == 0 ? 50 : 100;
              EXPECT_EQ(tutti_all_reduce(world, in.data(), out.data(), count, TUTTI_FLOAT32, TUTTI_SUM, nullptr),
                        TUTTI_MISMATCH)
                  << tutti_last_error();
            },
            {"TUTTI_CHECK=0", "TUTTI_TIMEOUT=20"});
}

TEST(Timeout, AnOperationEndsAtItsOwnDeadlineAndNamesWhomItWaitsFor) {
  run_world(3, [](tutti_group* world, int rank) {
    tutti_group* copy = nullptr;
    ASSERT_TUTTI_OK(tutti_dup(world, &copy));
    if (rank != 1) {
      tutti_options options = TUTTI_OPTIONS;
      options.timeout_us = 100'000;
      EXPECT_EQ(tutti_barrier(copy, &options), TUTTI_TIMEOUT);
      EXPECT_THAT(tutti_last_error(), HasSubstr("rank 1"));
    }
    EXPECT_TUTTI_OK(tutti_barrier(world, nullptr)) << "other groups go on";
    if (rank == 1) {
      // What the others sent before they gave up may be all that one call needs; the next needs them.
      tutti_status late = tutti_barrier(copy, nullptr);
      if (late == TUTTI_OK) late = tutti_barrier(copy, nullptr);
      EXPECT_EQ(late, TUTTI_TIMEOUT) << "the late one learns of it";
    }
    EXPECT_TUTTI_OK(tutti_group_free(copy));
  });
}

class Missing : public ::testing::TestWithParam<std::tuple<const char*, size_t>> {};

// Ranks that wait for the same one as we do are not named, though more of their messages are to come.
TEST_P(Missing, OnlyTheRankThatHasNotComeIsNamed) {
  const auto [algorithm, count] = GetParam();
  run_world(4,
            [count = count](tutti_group* world, int rank) {
              std::vector<float> data(count);
              tutti_group* copy = nullptr;
              ASSERT_TUTTI_OK(tutti_dup(world, &copy));
              if (rank != 2) {
                EXPECT_TUTTI_OK(tutti_group_set_timeout(copy, 200'000));
                EXPECT_EQ(tutti_all_reduce(copy, data.data(), data.data(), count, TUTTI_FLOAT32, TUTTI_SUM, nullptr),
                          TUTTI_TIMEOUT);
                EXPECT_TRUE(std::string(tutti_last_error()).ends_with("waits for rank 2")) << tutti_last_error();
              }
              EXPECT_TUTTI_OK(tutti_barrier(world, nullptr));
              EXPECT_TUTTI_OK(tutti_group_free(copy));
            },
            {"TUTTI_ALGORITHM=all_reduce:" + std::string(algorithm)});
}
INSTANTIATE_TEST_SUITE_P(Forms, Missing,
                         ::testing::Combine(::testing::Values("one_shot", "linear"),
                                            ::testing::Values(4, 1000, 20'000, 200'000)));

// Who gives up first tells the others, and drops what was sent to it, which lets its sender go.
TEST(Timeout, RanksThatAllSendFirstWaitNoLongerThanTheirDeadline) {
  std::atomic<int> timeouts{0};
  run_world(3, [&](tutti_group* world, int rank) {
    std::vector<char> large(64 << 20);
    EXPECT_TUTTI_OK(tutti_group_set_timeout(world, 200'000));
    const tutti_status status = tutti_send(world, large.data(), large.size(), TUTTI_INT8, (rank + 1) % 3, nullptr);
    if (status == TUTTI_OK) return;
    EXPECT_EQ(status, TUTTI_TIMEOUT);
    EXPECT_THAT(tutti_last_error(), HasSubstr("waits for rank"));
    ++timeouts;
  });
  EXPECT_GE(timeouts, 1);
}

TEST(Timeout, VeryLongTimesMeanNever) {
  run_world(2, [](tutti_group* world, int) {
    for (int64_t timeout : {int64_t{INT_MAX} * 1'000'000, INT64_MAX - 1, INT64_MAX}) {
      EXPECT_TUTTI_OK(tutti_group_set_timeout(world, timeout));
      EXPECT_TUTTI_OK(tutti_barrier(world, nullptr));
    }
    EXPECT_EQ(tutti_group_set_timeout(world, -1), TUTTI_INVALID_ARGUMENT);
  });
}

TEST(Abort, EndsABlockedOperationOnAllRanksAndInGroupsMadeFromIt) {
  run_world(3, [](tutti_group* world, int rank) {
    tutti_group *parent = nullptr, *child = nullptr;
    ASSERT_TUTTI_OK(tutti_dup(world, &parent));
    ASSERT_TUTTI_OK(tutti_dup(parent, &child));
    EXPECT_TUTTI_OK(tutti_barrier(world, nullptr));
    if (rank == 1) {
      EXPECT_TUTTI_OK(tutti_group_abort(parent, "enough"));
      EXPECT_TUTTI_OK(tutti_group_abort(parent, "again"));
    }
    EXPECT_EQ(tutti_barrier(child, nullptr), TUTTI_ABORTED);
    EXPECT_THAT(tutti_last_error(), HasSubstr("enough"));
    EXPECT_EQ(tutti_barrier(parent, nullptr), TUTTI_ABORTED);
    EXPECT_TUTTI_OK(tutti_barrier(world, nullptr));
    EXPECT_TUTTI_OK(tutti_group_free(child));
    EXPECT_TUTTI_OK(tutti_group_free(parent));
  });
}

TEST(Abort, FromAnotherThreadWhileBlocked) {
  run_world(2, [](tutti_group* world, int rank) {
    tutti_group* copy = nullptr;
    ASSERT_TUTTI_OK(tutti_dup(world, &copy));
    if (rank == 0) {
      std::thread other([&] {
        std::this_thread::sleep_for(std::chrono::milliseconds(50));
        EXPECT_TUTTI_OK(tutti_group_abort(copy, "from the other thread"));
      });
      EXPECT_EQ(tutti_barrier(copy, nullptr), TUTTI_ABORTED);
      other.join();
    }
    EXPECT_TUTTI_OK(tutti_barrier(world, nullptr));
    EXPECT_TUTTI_OK(tutti_group_free(copy));
  });
}

TEST(Windows, AreZeroedAlignedAndCheckedWhenGivenBack) {
  run_world(1, [](tutti_group* world, int) {
    void* memory = nullptr;
    ASSERT_TUTTI_OK(tutti_alloc(world, 100'000, &memory));
    EXPECT_EQ(reinterpret_cast<uintptr_t>(memory) % 4096, 0u);
    const auto* bytes = static_cast<const unsigned char*>(memory);
    EXPECT_TRUE(std::all_of(bytes, bytes + 100'000, [](unsigned char byte) { return byte == 0; }));
    EXPECT_TUTTI_OK(tutti_free(world, memory));
    EXPECT_EQ(tutti_free(world, memory), TUTTI_INVALID_ARGUMENT);
    EXPECT_TUTTI_OK(tutti_free(world, nullptr));
    ASSERT_TUTTI_OK(tutti_alloc(world, 0, &memory));
    EXPECT_EQ(memory, nullptr);
    EXPECT_EQ(tutti_alloc(world, size_t{1} << 60, &memory), TUTTI_OUT_OF_RESOURCES);
  });
}

}  // namespace
}  // namespace tutti_test
