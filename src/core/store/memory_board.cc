#include "src/core/store/memory_board.h"

namespace tutti::internal {

MemoryBoard& MemoryBoard::instance() {
  static auto* board = new MemoryBoard;  // never destroyed: a thread may still join while the process exits
  return *board;
}

uint64_t MemoryBoard::put(const std::string& name, Notice notice) {
  std::lock_guard lock(mutex_);
  notices_[name] = {next_id_, std::move(notice)};
  return next_id_++;
}

void MemoryBoard::remove(const std::string& name, uint64_t id) {
  std::lock_guard lock(mutex_);
  const auto found = notices_.find(name);
  if (found != notices_.end() && found->second.first == id) notices_.erase(found);
}

std::optional<MemoryBoard::Notice> MemoryBoard::find(const std::string& name) {
  std::lock_guard lock(mutex_);
  const auto found = notices_.find(name);
  if (found == notices_.end()) return std::nullopt;
  return found->second.second;
}

}  // namespace tutti::internal
