// What rank 0 shows: the table on stdout, the same rows as JSON lines in a file, and a progress line on stderr where
// that is a terminal.
#pragma once

#include <cstdint>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>

#include "json_lines.h"
#include "options.h"

namespace tutti::perf {

struct Row {
  uint64_t bytes;
  uint64_t count;
  std::string type, op;
  std::optional<int> root;
  std::string algorithm;
  double min_us, p50_us, p99_us, loop_us;
  std::optional<double> algbw, busbw;  // none: no data moved, or one rank
  std::optional<uint64_t> wrong;       // none: not checked
  uint64_t iterations;
};

class Report {
 public:
  // `world` is what tutti_describe says. Throws std::runtime_error for a JSON file that cannot be written.
  Report(const Options& options, int size, const nlohmann::json& world);

  void begin();
  void progress(size_t done, size_t sizes, uint64_t bytes);
  void add(const Row& row);

 private:
  void print(const Row& row);
  void write(const Row& row);
  void clear_progress();

  const Options& options_;
  int size_;
  nlohmann::ordered_json common_;  // in every JSON row
  JsonLines json_;
  bool has_terminal_;
  bool shows_progress_ = false;
};

}  // namespace tutti::perf
