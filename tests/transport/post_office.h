// Carries the letters of transports that live in one process: whoever serves the ranks delivers them.
#pragma once

#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "transport/transport.h"

namespace tutti::internal::conformance {

class PostOffice {
 public:
  struct Letter {
    int from = -1;
    int to = -1;
    std::string text;
  };

  explicit PostOffice(int ranks) {
    for (int rank = 0; rank < ranks; ++rank) boxes_.push_back(std::make_unique<Box>(*this, rank));
  }
  Mail& of(int rank) { return *boxes_[static_cast<size_t>(rank)]; }
  std::vector<Letter> take() {
    const std::scoped_lock lock(mutex_);
    return std::exchange(letters_, {});
  }

 private:
  class Box final : public Mail {
   public:
    Box(PostOffice& office, int rank) : office_(office), rank_(rank) {}
    void send(int peer, std::string_view letter) override {
      const std::scoped_lock lock(office_.mutex_);
      office_.letters_.push_back({rank_, peer, std::string(letter)});
    }

   private:
    PostOffice& office_;
    const int rank_;
  };

  std::mutex mutex_;
  std::vector<Letter> letters_;
  std::vector<std::unique_ptr<Box>> boxes_;
};

}  // namespace tutti::internal::conformance
