// What the messages hold, and whether it came. Every checked message has random bytes of its own, which differ by rank
// and by number; no number is used for two sizes.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

#include "p2p_exchange.h"
#include "pattern.h"

namespace tutti::perf {

// The bytes of messages of one size.
class Content {
 public:
  explicit Content(size_t bytes);

  void fill(int rank, uint64_t number, std::byte* out) const;
  // How many bytes of `found` are not those; *first names the first of all, if it is "".
  uint64_t count_wrong(int rank, uint64_t number, const std::byte* found, std::string* first) const;

 private:
  Pattern pattern_;
  size_t bytes_;
};

// Gives each message that goes its bytes, and looks at those of each that comes. Message k has number first + k.
class Checker : public Watcher {
 public:
  // Rank `flip_rank` spoils one bit of each before it looks.
  Checker(const Side& side, uint64_t first, int flip_rank);

  void before_send(uint64_t message) override;
  void after_recv(uint64_t message) override;

  // For messages that all are number `first`, sent from one slot: gives it its bytes, and looks into the first `slots`
  // of those that received them.
  void prepare(uint64_t slots);
  void look_at_all(uint64_t slots);

  uint64_t wrong() const { return wrong_; }
  uint64_t checked() const { return checked_; }
  // The first wrong byte, or "".
  const std::string& fault() const { return fault_; }

 private:
  void look(uint64_t number, std::byte* slot);

  const Side& side_;
  Content content_;
  uint64_t first_;
  int flip_rank_;
  uint64_t wrong_ = 0, checked_ = 0;
  std::string fault_;
};

}  // namespace tutti::perf
