// The rows of a run as JSON, one object a line, and what every row says about where it comes from.
#pragma once

#include <tutti/tutti.h>

#include <fstream>
#include <nlohmann/json.hpp>
#include <string>

namespace tutti::perf {

class JsonLines {
 public:
  // Into the file `path`, onto stdout for "-", nowhere for "". Throws std::runtime_error for a file that cannot be
  // written, here and in write.
  explicit JsonLines(const std::string& path);

  // stdout then has no table.
  bool is_stdout() const { return path_ == "-"; }
  // A row is whole in the file as soon as it is known: a sweep that is cut short keeps what it measured.
  void write(const nlohmann::ordered_json& row);

 private:
  std::string path_;
  std::ofstream file_;
};

// What tutti_describe says.
nlohmann::json describe(tutti_group* group);
// ranks, transport, host, cores_shared, machine and version of a world that describes itself so.
nlohmann::ordered_json origin_of(const nlohmann::json& world, int size);
// What a table says above its figures where ranks share processors; nothing elsewhere.
void print_shared_cores(const nlohmann::ordered_json& origin);

}  // namespace tutti::perf
