// What each rank finds in its environment: the launcher's own, the job's names, and what --env adds.
#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace tutti::internal {

// Whether the launcher gives the variable a value of its own for each rank.
bool is_set_by_launcher(std::string_view name);

struct JobAddress {
  int size = 0;
  int port = 0;  // of the launcher's store, on loopback
  std::string secret;
};

// One rank's environment as exec takes it. Moves keep the pointers valid.
class RankEnvironment {
 public:
  // `additions`: "NAME=value", the last of several counts.
  RankEnvironment(int rank, const JobAddress& job, std::span<const std::string> additions);
  RankEnvironment(RankEnvironment&&) = default;

  char* const* pointers() const { return pointers_.data(); }
  size_t bytes() const;

 private:
  void set(std::string assignment);

  std::vector<std::string> variables_;
  std::vector<char*> pointers_;
};

}  // namespace tutti::internal
