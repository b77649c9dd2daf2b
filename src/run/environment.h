// What each rank finds in its environment: the launcher's own, the job's names, and what --env adds.
#pragma once

#include <cstddef>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace tutti::internal {

// Whether the launcher gives the variable a value of its own for each rank.
bool is_set_by_launcher(std::string_view name);

// "NAME=value" as this process has it.
std::optional<std::string> find_variable(std::string_view name);

// Those of tutti's settings among a job's variables that the launcher itself reads: they go before its environment, as
// they do for the ranks.
std::vector<std::string> settings_among(std::span<const std::string> variables);

struct JobAddress {
  int size = 0;
  std::string host = "127.0.0.1";  // of the launcher's store
  int port = 0;
  std::string secret;
};

struct RankNumber {
  int rank = 0;
  int local_rank = 0;
};

// One rank's environment as exec takes it. Moves keep the pointers valid.
class RankEnvironment {
 public:
  // `additions`: "NAME=value", the last of several counts.
  RankEnvironment(RankNumber number, const JobAddress& job, std::span<const std::string> additions);
  RankEnvironment(RankEnvironment&&) = default;

  char* const* pointers() const { return pointers_.data(); }
  size_t bytes() const;

 private:
  void set(std::string assignment);

  std::vector<std::string> variables_;
  std::vector<char*> pointers_;
};

}  // namespace tutti::internal
