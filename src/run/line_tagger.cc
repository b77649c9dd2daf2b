#include "src/run/line_tagger.h"

#include <fmt/core.h>

#include <cstring>

namespace tutti::internal {

LineTagger::LineTagger(int rank) : tag_(fmt::format("[{}] ", rank)) {}

void LineTagger::feed(const char* bytes, size_t count, std::string& out) {
  while (count > 0) {
    const size_t room = kLongestLine - partial_.size();
    const size_t seen = count < room ? count : room;
    const char* newline = static_cast<const char*>(std::memchr(bytes, '\n', seen));
    const size_t taken = newline ? static_cast<size_t>(newline - bytes) : seen;
    partial_.append(bytes, taken);
    const size_t used = taken + (newline ? 1 : 0);
    bytes += used;
    count -= used;
    if (newline || (partial_.size() == kLongestLine && count > 0)) {
      out.append(tag_).append(partial_).append("\n");
      partial_.clear();
      // A full line whose own end follows is not continued.
      if (!newline && *bytes == '\n') {
        ++bytes;
        --count;
      }
    }
  }
}

void LineTagger::finish(std::string& out) {
  if (partial_.empty()) return;
  out.append(tag_).append(partial_).append("\n");
  partial_.clear();
}

}  // namespace tutti::internal
