// What rank 0 of tutti-p2p shows: perftest's table on stdout, and the same rows as JSON lines.
#pragma once

#include <nlohmann/json.hpp>
#include <string>

#include "json_lines.h"
#include "p2p_measure.h"

namespace tutti::perf {

class P2pReport {
 public:
  // `world` is what tutti_describe says. Throws std::runtime_error for a JSON file that cannot be written.
  P2pReport(const P2pOptions& options, const nlohmann::json& world);

  void begin() const;
  void add(const P2pRow& row);

 private:
  void print(const P2pRow& row) const;
  nlohmann::ordered_json object_of(const P2pRow& row) const;

  const P2pOptions& options_;
  nlohmann::ordered_json common_;  // in every JSON row
  JsonLines json_;
};

}  // namespace tutti::perf
