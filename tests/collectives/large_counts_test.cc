// More elements than 32 bits can count.
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <sys/sysinfo.h>

#include "world.h"

namespace tutti_test {
namespace {

TEST(LargeCounts, MoreThanTwoToThe31Elements) {
  constexpr size_t kCount = (size_t{1} << 31) + 3;
  struct sysinfo info {};
  sysinfo(&info);
  const uint64_t needed = 3 * kCount;
  if (info.freeram + info.bufferram < needed)
    GTEST_SKIP() << "needs " << (needed >> 30) << " GiB of free memory, there are " << (info.freeram >> 30);
  run_world(2, [&](tutti_group* world, int rank) {
    auto* data = static_cast<int8_t*>(
        mmap(nullptr, kCount, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0));
    ASSERT_NE(static_cast<void*>(data), MAP_FAILED);
    for (size_t i : {size_t{0}, kCount / 2, size_t{1} << 31, kCount - 1}) data[i] = static_cast<int8_t>(rank + 1);
    ASSERT_TUTTI_OK(tutti_all_reduce(world, data, data, kCount, TUTTI_INT8, TUTTI_SUM, nullptr));
    for (size_t i : {size_t{0}, kCount / 2, size_t{1} << 31, kCount - 1}) EXPECT_EQ(data[i], 3) << i;
    for (size_t i : {size_t{1}, kCount / 2 - 1, (size_t{1} << 31) - 1, kCount - 2}) EXPECT_EQ(data[i], 0) << i;
    munmap(data, kCount);
  });
}

}  // namespace
}  // namespace tutti_test
