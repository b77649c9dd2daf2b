// The library loaded by a program that does not link it, and unloaded again.
#include <dlfcn.h>
#include <gtest/gtest.h>

#include "tutti/tutti.h"

namespace tutti_test {
namespace {

TEST(Loading, AndUnloadingAHundredTimes) {
  for (int round = 0; round < 100; ++round) {
    void* library = dlopen(TUTTI_LIBRARY, RTLD_NOW | RTLD_LOCAL);
    ASSERT_NE(library, nullptr) << dlerror();
    const auto init = reinterpret_cast<decltype(&tutti_init)>(dlsym(library, "tutti_init"));
    const auto barrier = reinterpret_cast<decltype(&tutti_barrier)>(dlsym(library, "tutti_barrier"));
    const auto free_group = reinterpret_cast<decltype(&tutti_group_free)>(dlsym(library, "tutti_group_free"));
    tutti_init_options options = TUTTI_INIT_OPTIONS;
    options.rank = 0;
    options.size = 1;
    tutti_group* world = nullptr;
    ASSERT_EQ(init(&options, &world), TUTTI_OK);
    EXPECT_EQ(barrier(world, nullptr), TUTTI_OK);
    EXPECT_EQ(free_group(world), TUTTI_OK);
    EXPECT_EQ(dlclose(library), 0);
  }
}

}  // namespace
}  // namespace tutti_test
