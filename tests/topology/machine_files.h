// Files and folders that live as long as a test, and machines made for it.
#pragma once

#include <gtest/gtest.h>
#include <hwloc.h>
#include <sys/wait.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <string>

#include "topology/machine.h"

namespace tutti_test {

// A folder with a path of its own, removed with all in it.
class Folder {
 public:
  Folder() : path_(std::filesystem::temp_directory_path() / ("tutti-test-" + std::to_string(getpid()))) {
    std::filesystem::remove_all(path_);
    std::filesystem::create_directories(path_);
  }
  ~Folder() { std::filesystem::remove_all(path_); }
  Folder(const Folder&) = delete;
  Folder& operator=(const Folder&) = delete;

  std::string operator/(const std::string& name) const { return path_ / name; }
  std::string write(const std::string& name, const std::string& content) const {
    std::ofstream(path_ / name, std::ios::binary) << content;
    return path_ / name;
  }

 private:
  std::filesystem::path path_;
};

inline std::string content_of(const std::string& path) {
  std::ifstream stream(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(stream), {}};
}

// Writes a file of hwloc's about a machine of this description, as "core:2 pu:1(indexes=4,5)".
inline void record(const std::string& description, const std::string& path) {
  hwloc_topology_t topology = nullptr;
  ASSERT_EQ(hwloc_topology_init(&topology), 0);
  EXPECT_EQ(hwloc_topology_set_synthetic(topology, description.c_str()), 0) << description;
  EXPECT_EQ(hwloc_topology_load(topology), 0) << description;
  EXPECT_EQ(hwloc_topology_export_xml(topology, path.c_str(), 0), 0) << path;
  hwloc_topology_destroy(topology);
}

inline tutti::internal::Machine synthetic(const std::string& description) {
  using namespace tutti::internal;
  auto machine = Machine::read({MachineSource::Kind::synthetic, description});
  EXPECT_TRUE(machine.ok()) << machine.status().message();
  return machine.ok() ? machine.value() : Machine();
}

// Runs `body` in a child, whose binding and environment are its own. 0: it returned true.
template <class Body>
int in_child(Body body) {
  const pid_t pid = fork();
  if (pid == 0) _exit(body() ? 0 : 1);
  int status = 0;
  waitpid(pid, &status, 0);
  return status;
}

}  // namespace tutti_test
