// tutti for C++20: a header-only layer over <tutti/tutti.h> with the same names. What holds for all functions - shapes,
// in place, threads, results, errors - stands at the top of tutti.h; here stands what differs.
//
//   tutti::Group world = tutti::init();
//   std::vector<float> gradient(1000, 1.0F);
//   world.all_reduce(gradient, tutti::Op::average);                          // in place, blocking
//   tutti::Work work = world.all_reduce_async(gradient, tutti::Op::max);     // goes on until work.wait()
//
// Memory is any contiguous range - std::span, std::vector, std::array, tutti::Buffer - of the element types of TypeOf;
// the count of elements comes from its length. In the comments [n] is a length and `size` the group's; a length that
// does not fit is an invalid_argument before anything is sent. A buffer that is ignored on a rank may be an empty span
// there. The form with one buffer is the one in place. Whatever does not succeed throws tutti::Error.
#ifndef TUTTI_TUTTI_HPP
#define TUTTI_TUTTI_HPP

#if __cplusplus < 202002L
#error "tutti.hpp needs C++20 (-std=c++20); tutti.h is for C and for older C++"
#endif

#include <initializer_list>
#include <span>
#include <string>
#include <tutti/exchanges.hpp>
#include <tutti/handles.hpp>
#include <tutti/values.hpp>
#include <vector>

namespace tutti {

// One rank's handle to a group. It moves; the group is left when it and the works and buffers that came from it have
// ended. An empty one stands for a group that this rank is no member of: it converts to false.
//
// The operations stand in <tutti/reductions.hpp> and <tutti/exchanges.hpp>: barrier, broadcast, send, recv, reduce,
// all_reduce, reduce_scatter; scatter, gather, all_gather, all_to_all and their _list forms. Each blocks until this
// rank's part is done, and has an _async form that returns a Work at once.
class Group : public detail::Exchanges {
 public:
  Group() = default;
  // Takes over a handle of tutti.h.
  explicit Group(tutti_group* group) : Exchanges(group) {}
  Group(Group&&) noexcept = default;
  Group& operator=(Group&&) noexcept = default;

  // The world rank of rank `rank` of this group, or -1.
  int world_rank(int rank) const { return tutti_group_world_rank(handle(), rank); }

  // How long one operation may take from now on; groups made later from this one inherit it. max(): no deadline.
  void set_timeout(std::chrono::microseconds timeout) {
    detail::check(tutti_group_set_timeout(handle(), timeout.count()));
  }

  // Gives up all operations on this group and on those made from it, on all ranks: they throw aborted. From any thread.
  void abort(const std::string& reason) { detail::check(tutti_group_abort(handle(), reason.c_str())); }

  // ---- Groups: all ranks of this group call it, and it blocks -------------------------------------------------------

  // The given ranks of this group in the given order; all pass the same list. Empty on a rank that is not in it.
  Group subgroup(std::span<const int> ranks) {
    tutti_group* made = nullptr;
    detail::check(tutti_subgroup(handle(), ranks.data(), ranks.size(), &made));
    return Group(made);
  }
  Group subgroup(std::initializer_list<int> ranks) { return subgroup(std::span(ranks.begin(), ranks.size())); }

  // One group for each color, its ranks ordered by key, then by rank. Empty for TUTTI_NO_COLOR.
  Group split(int color, int key) {
    tutti_group* made = nullptr;
    detail::check(tutti_split(handle(), color, key, &made));
    return Group(made);
  }

  // The same ranks, with an operation sequence of its own.
  Group dup() {
    tutti_group* made = nullptr;
    detail::check(tutti_dup(handle(), &made));
    return Group(made);
  }

  // ---- Memory: not collective ---------------------------------------------------------------------------------------

  // A window of `count` zeroed elements. It keeps this group.
  template <Element T>
  Buffer<T> alloc(std::size_t count) {
    return Buffer<T>(group_, count);
  }

  // Makes the caller's memory known for direct transfers until unregister_memory; it must stay where it is until then.
  template <Output B>
  void register_memory(B&& memory) {
    detail::check(tutti_register(handle(), detail::data(memory), detail::length(memory) * sizeof(ElementOf<B>)));
  }
  template <Output B>
  void unregister_memory(B&& memory) {
    detail::check(tutti_unregister(handle(), detail::data(memory)));
  }

  // ---- Explaining ---------------------------------------------------------------------------------------------------

  // The algorithm that an operation would take: explain<float>("all_reduce", 1024), the count per rank.
  template <Element T>
  std::string explain(const std::string& operation, std::size_t count) const {
    const char* algorithm = nullptr;
    detail::check(tutti_explain(handle(), operation.c_str(), count, TypeOf<std::remove_const_t<T>>::value, &algorithm));
    return algorithm;
  }

  // A JSON object: version, ranks, transport, host, and each setting with its value and source.
  std::string describe() const {
    std::size_t needed = 0;
    detail::check(tutti_describe(handle(), nullptr, 0, &needed));
    std::string text(needed, '\0');
    detail::check(tutti_describe(handle(), text.data(), text.size(), &needed));
    text.resize(std::char_traits<char>::length(text.c_str()));
    return text;
  }
};

// Joins the world, and gives its group of all ranks. Blocks until every rank has joined, or the joining time is over.
inline Group init(const InitOptions& options = {}) {
  std::vector<const char*> settings;
  for (const std::string& setting : options.settings) settings.push_back(setting.c_str());
  settings.push_back(nullptr);
  const tutti_init_options c_options{sizeof(tutti_init_options), options.rank, options.size,
                                     options.store.empty() ? nullptr : options.store.c_str(), settings.data()};
  tutti_group* world = nullptr;
  detail::check(tutti_init(&c_options, &world));
  return Group(world);
}

// "MAJOR.MINOR.PATCH" of the library that is loaded.
inline std::string version() { return tutti_version(); }

// "peer_failed" and so on.
inline const char* name(Status status) { return tutti_status_name(static_cast<tutti_status>(status)); }
inline const char* name(Op op) { return tutti_op_name(static_cast<tutti_op>(op)); }

}  // namespace tutti

#endif
