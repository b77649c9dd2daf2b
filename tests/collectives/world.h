// Worlds for tests: ranks as threads of this process, each with a handle of its own.
#pragma once

#include <gtest/gtest.h>
#include <tutti/tutti.h>

#include <atomic>
#include <functional>
#include <string>
#include <thread>
#include <vector>

namespace tutti_test {

#define EXPECT_TUTTI_OK(call) EXPECT_EQ(call, TUTTI_OK) << tutti_last_error()
#define ASSERT_TUTTI_OK(call) ASSERT_EQ(call, TUTTI_OK) << tutti_last_error()

// A name that no other world of this process has.
inline std::string fresh_store() {
  static std::atomic<int> next{0};
  return "memory:world-" + std::to_string(next.fetch_add(1));
}

// Joins as rank `rank` of `size`; null where that failed, and then the test has failed too.
inline tutti_group* join(const std::string& store, int rank, int size, const std::vector<std::string>& settings = {}) {
  std::vector<const char*> list;
  for (const std::string& setting : settings) list.push_back(setting.c_str());
  list.push_back(nullptr);
  tutti_init_options options = TUTTI_INIT_OPTIONS;
  options.rank = rank;
  options.size = size;
  options.store = store.c_str();
  options.settings = list.data();
  tutti_group* world = nullptr;
  EXPECT_EQ(tutti_init(&options, &world), TUTTI_OK) << tutti_last_error();
  return world;
}

// Runs body(world, rank) on `size` ranks and waits for all of them.
inline void run_world(int size, const std::function<void(tutti_group*, int)>& body,
                      const std::vector<std::string>& settings = {}) {
  const std::string store = fresh_store();
  std::vector<std::thread> threads;
  for (int rank = 0; rank < size; ++rank) {
    threads.emplace_back([&, rank] {
      tutti_group* world = join(store, rank, size, settings);
      if (!world) return;
      body(world, rank);
      EXPECT_EQ(tutti_group_free(world), TUTTI_OK) << tutti_last_error();
    });
  }
  for (std::thread& thread : threads) thread.join();
}

}  // namespace tutti_test
