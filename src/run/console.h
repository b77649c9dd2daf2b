// The outside of a supervisor on the user's own machine: standard output and standard error. Ranks write to them
// directly, or, with tags, through a printer.
#pragma once

#include <memory>
#include <optional>

#include "src/run/outside.h"
#include "src/run/printer.h"

namespace tutti::internal {

class Console : public Outside {
 public:
  static Result<std::unique_ptr<Console>> create(bool tag);

  Result<UniqueFd> stream_of(int rank, Stream stream) override;
  void say(const std::string& message) override;
  void fail(int status, const std::string& message, int running_count) override;
  void add_polls(std::vector<pollfd>& polls) const override;
  std::vector<Order> serve() override;
  void take_rest() override;
  bool is_flushed() const override { return !tagged_ || tagged_->printer.is_flushed(); }

 private:
  struct Tagged {
    RankPipes pipes;
    Printer printer;
  };
  std::optional<Tagged> tagged_;
};

}  // namespace tutti::internal
