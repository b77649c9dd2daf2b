// Staging memory with its keys. Owner's thread.
#pragma once

#include "transport/staging.h"
#include "transport/verbs/registrar.h"

namespace tutti::internal::verbs {

class Staging {
 public:
  explicit Staging(Registrar& registrar) : registrar_(registrar), chunks_(registrar) {}
  ~Staging() {
    if (registration_ != nullptr) registrar_.release(registration_);
  }

  // As in transport/staging.h.
  Status prepare() {
    if (chunks_.is_ready()) return {};
    TUTTI_RETURN_IF_ERROR(chunks_.prepare());
    registration_ = registrar_.acquire(chunks_.data(0), internal::Staging::kBytes, true, nullptr);
    return {};
  }
  size_t available() const { return chunks_.available(); }
  int take() { return chunks_.take(); }
  void give(int chunk) { chunks_.give(chunk); }
  std::byte* data(int chunk) const { return chunks_.data(chunk); }

  const Registration& registration() const { return *registration_; }

 private:
  Registrar& registrar_;
  internal::Staging chunks_;
  const Registration* registration_ = nullptr;
};

}  // namespace tutti::internal::verbs
