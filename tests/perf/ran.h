// Programs as a user starts them, by the launcher and a shell: their status and what they print.
#pragma once

#include <gtest/gtest.h>
#include <sys/wait.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <nlohmann/json.hpp>
#include <sstream>
#include <string>
#include <vector>

namespace tutti::perf {

struct Ran {
  int status;
  std::string out, err;
};

inline std::string read_file(const std::filesystem::path& path) {
  std::ifstream file(path);
  std::ostringstream text;
  text << file.rdbuf();
  return text.str();
}

// A folder that goes with the test.
class Folder {
 public:
  Folder() {
    std::string name = (std::filesystem::temp_directory_path() / "tutti_perf_XXXXXX").string();
    if (mkdtemp(name.data()) == nullptr) std::abort();
    path_ = name;
  }
  ~Folder() { std::filesystem::remove_all(path_); }
  Folder(const Folder&) = delete;
  Folder& operator=(const Folder&) = delete;
  std::filesystem::path operator/(const char* name) const { return path_ / name; }

 private:
  std::filesystem::path path_;
};

inline Ran shell(const std::string& command) {
  const Folder folder;
  const int status = std::system(
      (command + " >" + (folder / "out").string() + " 2>" + (folder / "err").string() + " </dev/null").c_str());
  return {WIFEXITED(status) ? WEXITSTATUS(status) : -1, read_file(folder / "out"), read_file(folder / "err")};
}

// TUTTI_RUN, the launcher's path, is given by CMake.
inline Ran run_ranks(int ranks, const std::string& command) {
  return shell(std::string(TUTTI_RUN) + " -n " + std::to_string(ranks) + " " + command);
}

// Each line an object.
inline std::vector<nlohmann::json> json_lines(const std::string& text) {
  std::vector<nlohmann::json> all;
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);) all.push_back(nlohmann::json::parse(line));
  return all;
}

// The rows that a run writes as JSON; empty, with a failure noted, when the run fails.
inline std::vector<nlohmann::json> json_rows(int ranks, const std::string& command) {
  const Folder folder;
  const auto path = folder / "rows.json";
  const Ran ran = run_ranks(ranks, command + " --json " + path.string());
  EXPECT_EQ(ran.status, 0) << command << "\n" << ran.out << ran.err;
  return json_lines(read_file(path));
}

// The words of each line that is no comment ("#...").
inline std::vector<std::vector<std::string>> table_of(const std::string& out) {
  std::vector<std::vector<std::string>> table;
  std::istringstream lines(out);
  for (std::string line; std::getline(lines, line);) {
    if (line.starts_with('#')) continue;
    std::istringstream words(line);
    table.emplace_back(std::istream_iterator<std::string>(words), std::istream_iterator<std::string>());
  }
  return table;
}

inline size_t count_of(const std::string& text, const std::string& part) {
  size_t count = 0;
  for (size_t at = text.find(part); at != std::string::npos; at = text.find(part, at + 1)) ++count;
  return count;
}

}  // namespace tutti::perf
