// Inputs in every kind of memory that a program can hand in.
#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cstdlib>
#include <cstring>
#include <numeric>

#include "world.h"

namespace tutti_test {
namespace {

constexpr size_t kMany = 100'000;

// All ranks sum `input` (the same on each) and must get `size` times its elements.
void expect_sum(tutti_group* world, const int32_t* input, size_t count) {
  std::vector<int32_t> output(count);
  ASSERT_TUTTI_OK(tutti_all_reduce(world, input, output.data(), count, TUTTI_INT32, TUTTI_SUM, nullptr));
  for (size_t i = 0; i < count; ++i) {
    int32_t value;
    std::memcpy(&value, reinterpret_cast<const char*>(input) + 4 * i, 4);
    ASSERT_EQ(output[i], tutti_group_size(world) * value) << "element " << i;
  }
}

constexpr int32_t kReadOnly[5000] = {1, 2, 3, 4};
int32_t static_buffer[5000] = {7, 8, 9};

TEST(MemoryKinds, StackStaticAndReadOnly) {
  run_world(3, [](tutti_group* world, int rank) {
    int32_t stack[5000];
    std::iota(stack, stack + 5000, 1);
    expect_sum(world, stack, 5000);
    expect_sum(world, static_buffer, 5000);
    expect_sum(world, kReadOnly, 5000);
    int32_t constant[5000];
    const int32_t* root_buffer = kReadOnly;
    int32_t* buffer = rank == 1 ? const_cast<int32_t*>(root_buffer) : constant;
    ASSERT_TUTTI_OK(tutti_broadcast(world, buffer, 5000, TUTTI_INT32, 1, nullptr)) << "root only reads";
    EXPECT_EQ(buffer[3], 4);
  });
}

TEST(MemoryKinds, MappedFilesPrivateAndShared) {
  char path[] = "/tmp/tutti-mapped-XXXXXX";
  const int fd = mkstemp(path);
  ASSERT_GE(fd, 0);
  unlink(path);
  std::vector<int32_t> content(kMany);
  std::iota(content.begin(), content.end(), 5);
  ASSERT_EQ(write(fd, content.data(), kMany * 4), static_cast<ssize_t>(kMany * 4));
  run_world(2, [&](tutti_group* world, int) {
    for (int flags : {MAP_PRIVATE, MAP_SHARED}) {
      void* mapped = mmap(nullptr, kMany * 4, PROT_READ, flags, fd, 0);
      ASSERT_NE(mapped, MAP_FAILED);
      expect_sum(world, static_cast<int32_t*>(mapped), kMany);
      munmap(mapped, kMany * 4);
    }
  });
  close(fd);
}

// The last byte before an unmapped page is the last that may be read.
TEST(MemoryKinds, UnalignedAndAtTheEdgeOfAMapping) {
  const long page = sysconf(_SC_PAGESIZE);
  run_world(2, [&](tutti_group* world, int) {
    for (size_t count : {size_t{1}, size_t{9}, size_t{777}, kMany}) {
      const size_t bytes = (count * 4 / static_cast<size_t>(page) + 2) * static_cast<size_t>(page);
      auto* base = static_cast<char*>(
          mmap(nullptr, bytes + static_cast<size_t>(page), PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
      ASSERT_EQ(mprotect(base + bytes, static_cast<size_t>(page), PROT_NONE), 0);
      for (size_t shift : {0, 1, 3}) {
        char* at = base + bytes - count * 4 - shift;
        std::memset(at, 3, count * 4);
        expect_sum(world, reinterpret_cast<const int32_t*>(at), count);
      }
      munmap(base, bytes + static_cast<size_t>(page));
    }
  });
}

TEST(MemoryKinds, HugePagesWhereTheKernelGivesThem) {
  run_world(2, [](tutti_group* world, int) {
    constexpr size_t kBytes = size_t{4} << 20;
    void* base = mmap(nullptr, kBytes * 2, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    ASSERT_NE(base, MAP_FAILED);
    madvise(base, kBytes * 2, MADV_HUGEPAGE);
    auto* at = reinterpret_cast<int32_t*>(static_cast<char*>(base) + 4096 + 12);
    std::fill(at, at + kMany, 11);
    expect_sum(world, at, kMany);
    munmap(base, kBytes * 2);
  });
}

TEST(MemoryKinds, MemoryUnmappedAndMappedAgainWithOtherContents) {
  run_world(2, [](tutti_group* world, int) {
    void* const place = mmap(nullptr, kMany * 4, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    for (int round = 0; round < 20; ++round) {
      auto* at = static_cast<int32_t*>(
          mmap(place, kMany * 4, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0));
      std::fill(at, at + kMany, round);
      expect_sum(world, at, kMany);
    }
    munmap(place, kMany * 4);
  });
}

}  // namespace
}  // namespace tutti_test
