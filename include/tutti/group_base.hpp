// What the parts of tutti::Group stand on: the handle, and how a function of tutti.h is called with it. Nothing here is
// for use from outside.
#ifndef TUTTI_GROUP_BASE_HPP
#define TUTTI_GROUP_BASE_HPP

#include <memory>
#include <string>
#include <tutti/handles.hpp>
#include <tutti/shapes.hpp>

namespace tutti::detail {

class GroupBase {
 public:
  explicit operator bool() const noexcept { return group_ != nullptr; }

  // For calls to tutti.h. Stays this object's.
  tutti_group* handle() const noexcept { return group_.get(); }

  // This process's rank in the group, and the number of its ranks; -1 if the group is empty.
  int rank() const { return tutti_group_rank(handle()); }
  int size() const { return tutti_group_size(handle()); }

 protected:
  GroupBase() = default;
  explicit GroupBase(tutti_group* group)
      : group_(group, [](tutti_group* g) { static_cast<void>(tutti_group_free(g)); }) {}

  // The number of ranks, for an operation that needs it to know its shape.
  int ranks_for(const char* operation) const {
    const int ranks = size();
    if (ranks < 1) refuse_empty(operation);
    return ranks;
  }
  void require_member(const char* operation) const {
    if (group_ == nullptr) refuse_empty(operation);
  }
  [[noreturn]] static void refuse_empty(const char* operation) {
    throw Error(Status::invalid_argument, std::string(operation) + ": the group is empty: this rank is no member");
  }

  // The blocks of a buffer in place: how many elements each has, and where this rank's begins.
  struct Blocks {
    size_t count = 0;
    size_t own = 0;
  };
  Blocks blocks_of(const char* operation, size_t elements) const {
    const auto ranks = static_cast<size_t>(ranks_for(operation));
    if (elements % ranks != 0)
      throw Error(Status::invalid_argument, std::string(operation) + ": buffer has " + std::to_string(elements) +
                                                " elements, must have a multiple of the " + std::to_string(ranks) +
                                                " ranks");
    return {elements / ranks, static_cast<size_t>(rank()) * (elements / ranks)};
  }
  // Elsewhere than on root the buffer is one block, this rank's.
  Blocks blocks_at_root(const char* operation, size_t elements, int root) const {
    return rank() == root ? blocks_of(operation, elements) : Blocks{elements, 0};
  }

  template <class Function, class... Arguments>
  void call(Function function, const Options& options, Arguments... arguments) {
    check(function(handle(), arguments..., COptions(options)));
  }
  template <class Function, class... Arguments>
  Work start(Function function, const Options& options, Arguments... arguments) {
    tutti_work* work = nullptr;
    check(function(handle(), arguments..., COptions(options), &work));
    return Work(group_, work);
  }

  std::shared_ptr<tutti_group> group_;  // shared with the works and buffers that came from it
};

}  // namespace tutti::detail

#endif
