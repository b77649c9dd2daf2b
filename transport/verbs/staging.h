// Registered memory in chunks, for parts of messages that cannot be written or read in place. Taken from the system
// when it is first needed. Owner's thread.
#pragma once

#include <cstddef>
#include <vector>

#include "src/base/status.h"
#include "transport/verbs/registrar.h"
#include "transport/verbs/tuning.h"

namespace tutti::internal::verbs {

class Staging {
 public:
  explicit Staging(Registrar& registrar) : registrar_(registrar) {}
  ~Staging();

  // Errors: out_of_resources. Idempotent.
  Status prepare();
  bool is_ready() const { return memory_ != nullptr; }
  size_t available() const { return free_.size(); }
  // -1: none is free.
  int take();
  void give(int chunk) { free_.push_back(chunk); }
  std::byte* data(int chunk) const { return memory_ + static_cast<size_t>(chunk) * kChunkBytes; }
  const Registration& registration() const { return *registration_; }

 private:
  Registrar& registrar_;
  std::byte* memory_ = nullptr;
  const Registration* registration_ = nullptr;
  std::vector<int> free_;
};

}  // namespace tutti::internal::verbs
