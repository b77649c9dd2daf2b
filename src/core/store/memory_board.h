// Where ranks that are threads of one process find their store: a table in memory. Any thread.
#pragma once

#include <cstdint>
#include <map>
#include <mutex>
#include <optional>
#include <string>

namespace tutti::internal {

class MemoryBoard {
 public:
  struct Notice {
    uint16_t port = 0;
    std::string secret;
  };

  static MemoryBoard& instance();

  // Replaces what stood there; the id lets `remove` take away this notice and no later one.
  uint64_t put(const std::string& name, Notice notice);
  void remove(const std::string& name, uint64_t id);
  std::optional<Notice> find(const std::string& name);

 private:
  std::mutex mutex_;
  uint64_t next_id_ = 1;
  std::map<std::string, std::pair<uint64_t, Notice>> notices_;
};

}  // namespace tutti::internal
