// Cuts one rank's stream into lines that begin with the rank's number: "[3] text". Pure.
#pragma once

#include <string>

namespace tutti::internal {

class LineTagger {
 public:
  // A longer line is continued on a tagged line of its own: memory stays bounded.
  static constexpr size_t kLongestLine = size_t{1} << 20;

  explicit LineTagger(int rank);
  // Appends to `out` the lines that are whole now.
  void feed(const char* bytes, size_t count, std::string& out);
  // Appends what is left, as a line.
  void finish(std::string& out);

 private:
  std::string tag_;
  std::string partial_;
};

}  // namespace tutti::internal
