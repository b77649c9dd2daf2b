// How <tutti/tutti.hpp> turns ranges into what tutti.h takes: addresses, counts, and checks that the lengths fit
// together. Nothing here is for use from outside.
#ifndef TUTTI_SHAPES_HPP
#define TUTTI_SHAPES_HPP

#include <concepts>
#include <cstddef>
#include <ranges>
#include <string>
#include <tutti/values.hpp>
#include <vector>

namespace tutti::detail {

using std::size_t;
using std::ranges::data;

template <class I, class O>
concept SameElement = std::same_as<ElementOf<I>, ElementOf<O>>;
template <class L, class R>
concept SameListElement = std::same_as<ElementOfList<L>, ElementOf<R>>;

template <class R>
inline constexpr tutti_type kType = TypeOf<ElementOf<R>>::value;
template <class L>
inline constexpr tutti_type kListType = TypeOf<ElementOfList<L>>::value;

constexpr tutti_op c_op(Op op) { return static_cast<tutti_op>(op); }

// Lives to the end of the call that it is made in.
class COptions {
 public:
  explicit COptions(const Options& options) : options_{sizeof(tutti_options), options.timeout.count()} {}
  operator const tutti_options*() const { return options_.timeout_us == 0 ? nullptr : &options_; }

 private:
  tutti_options options_;
};

template <Memory R>
size_t length(const R& range) {
  return static_cast<size_t>(std::ranges::size(range));
}

// `operation`'s `what` must have `wanted` elements, because of `why`.
[[noreturn]] inline void wrong_length(const char* operation, const std::string& what, size_t found, size_t wanted,
                                      const std::string& why) {
  throw Error(Status::invalid_argument, std::string(operation) + ": " + what + " has " + std::to_string(found) +
                                            " elements, must have " + std::to_string(wanted) + " (" + why + ")");
}

inline void require_same(const char* operation, size_t input, size_t output) {
  if (output != input) wrong_length(operation, "output", output, input, "as many as the input");
}

// `what` holds a block of `count` elements for each of `ranks` ranks.
inline void require_blocks(const char* operation, const char* what, size_t found, int ranks, size_t count) {
  const size_t wanted = static_cast<size_t>(ranks) * count;
  if (found != wanted)
    wrong_length(operation, what, found, wanted, std::to_string(ranks) + " ranks times " + std::to_string(count));
}

// The addresses of the pieces, which are one for each rank and of `count` elements each.
template <class Pointer, class List>
std::vector<Pointer> addresses(const char* operation, const char* what, List&& list, int ranks, size_t count) {
  const auto pieces = static_cast<size_t>(std::ranges::size(list));
  if (pieces != static_cast<size_t>(ranks))
    throw Error(Status::invalid_argument, std::string(operation) + ": " + what + " has " + std::to_string(pieces) +
                                              " pieces, must have " + std::to_string(ranks) + ", one for each rank");
  std::vector<Pointer> pointers;
  pointers.reserve(pieces);
  for (auto&& piece : list) {
    if (length(piece) != count)
      wrong_length(operation, "piece " + std::to_string(pointers.size()) + " of " + what, length(piece), count,
                   "as many as in the other buffers");
    pointers.push_back(data(piece));
  }
  return pointers;
}

// The length of the first piece of a list.
template <class List>
size_t piece_length(List&& list) {
  for (auto&& piece : list) return length(piece);
  return 0;
}

}  // namespace tutti::detail

#endif
