// Worlds of ranks as threads, by the C++ interface.
#pragma once

#include <gtest/gtest.h>

#include <atomic>
#include <functional>
#include <string>
#include <thread>
#include <tutti/tutti.hpp>
#include <vector>

namespace tutti_test {

// Runs body(world) on `size` ranks. A rank that throws fails the test.
inline void on_ranks(int size, const std::function<void(tutti::Group&)>& body) {
  static std::atomic<int> next{0};
  const std::string store = "memory:cpp-" + std::to_string(next.fetch_add(1));
  std::vector<std::thread> threads;
  for (int rank = 0; rank < size; ++rank)
    threads.emplace_back([&, rank] {
      try {
        tutti::Group world = tutti::init({.rank = rank, .size = size, .store = store, .settings = {}});
        body(world);
      } catch (const std::exception& error) {
        ADD_FAILURE() << "rank " << rank << ": " << error.what();
      }
    });
  for (std::thread& thread : threads) thread.join();
}

}  // namespace tutti_test
