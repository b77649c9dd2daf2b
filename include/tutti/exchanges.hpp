// The operations of tutti::Group where one buffer holds a block for each rank: scatter, gather, all_gather, all_to_all.
// Each has a _list form, where a list of `size` separate pieces of one length stands for that buffer; a rank may use it
// where its peers use the other. Conventions: the top of tutti.hpp.
#ifndef TUTTI_EXCHANGES_HPP
#define TUTTI_EXCHANGES_HPP

#include <tutti/reductions.hpp>

namespace tutti::detail {

class Exchanges : public Reductions {
 public:
  using Reductions::Reductions;

  // output [count] = block `rank` of root's input [size*count]. Elsewhere input is ignored.
  template <Memory I, Output O>
  requires SameElement<I, O>
  void scatter(I&& input, O&& output, int root, Options options = {}) {
    if (rank() == root) require_blocks("scatter", "input", length(input), size(), length(output));
    call(tutti_scatter, options, data(input), data(output), length(output), kType<O>, root);
  }
  template <LastingMemory I, Output O>
  requires SameElement<I, O> Work scatter_async(I&& input, O&& output, int root, Options options = {}) {
    if (rank() == root) require_blocks("scatter", "input", length(input), size(), length(output));
    return start(tutti_scatter_async, options, data(input), data(output), length(output), kType<O>, root);
  }
  // In place: on root buffer [size*count], whose own block stays; elsewhere buffer [count] is the output.
  template <Output B>
  void scatter(B&& buffer, int root, Options options = {}) {
    const Blocks blocks = blocks_at_root("scatter", length(buffer), root);
    call(tutti_scatter, options, data(buffer), data(buffer) + blocks.own, blocks.count, kType<B>, root);
  }
  template <Output B>
  Work scatter_async(B&& buffer, int root, Options options = {}) {
    const Blocks blocks = blocks_at_root("scatter", length(buffer), root);
    return start(tutti_scatter_async, options, data(buffer), data(buffer) + blocks.own, blocks.count, kType<B>, root);
  }
  template <MemoryList L, Output O>
  requires SameListElement<L, O>
  void scatter_list(L&& inputs, O&& output, int root, Options options = {}) {
    const auto list = inputs_at_root("scatter_list", inputs, length(output), root);
    call(tutti_scatter_list, options, list.data(), data(output), length(output), kType<O>, root);
  }
  template <MemoryList L, Output O>
  requires SameListElement<L, O> Work scatter_list_async(L&& inputs, O&& output, int root, Options options = {}) {
    const auto list = inputs_at_root("scatter_list", inputs, length(output), root);
    return start(tutti_scatter_list_async, options, list.data(), data(output), length(output), kType<O>, root);
  }

  // root's output [size*count] = the ranks' input [count], one after the other. Elsewhere output is ignored.
  template <Memory I, Output O>
  requires SameElement<I, O>
  void gather(I&& input, O&& output, int root, Options options = {}) {
    if (rank() == root) require_blocks("gather", "output", length(output), size(), length(input));
    call(tutti_gather, options, data(input), data(output), length(input), kType<I>, root);
  }
  template <LastingMemory I, Output O>
  requires SameElement<I, O> Work gather_async(I&& input, O&& output, int root, Options options = {}) {
    if (rank() == root) require_blocks("gather", "output", length(output), size(), length(input));
    return start(tutti_gather_async, options, data(input), data(output), length(input), kType<I>, root);
  }
  // In place: on root buffer [size*count], whose own block is the input; elsewhere buffer [count] is the input.
  template <Output B>
  void gather(B&& buffer, int root, Options options = {}) {
    const Blocks blocks = blocks_at_root("gather", length(buffer), root);
    call(tutti_gather, options, data(buffer) + blocks.own, data(buffer), blocks.count, kType<B>, root);
  }
  template <Output B>
  Work gather_async(B&& buffer, int root, Options options = {}) {
    const Blocks blocks = blocks_at_root("gather", length(buffer), root);
    return start(tutti_gather_async, options, data(buffer) + blocks.own, data(buffer), blocks.count, kType<B>, root);
  }
  template <Memory I, OutputList L>
  requires SameListElement<L, I>
  void gather_list(I&& input, L&& outputs, int root, Options options = {}) {
    const auto list = outputs_at_root("gather_list", outputs, length(input), root);
    call(tutti_gather_list, options, data(input), list.data(), length(input), kType<I>, root);
  }
  template <LastingMemory I, OutputList L>
  requires SameListElement<L, I> Work gather_list_async(I&& input, L&& outputs, int root, Options options = {}) {
    const auto list = outputs_at_root("gather_list", outputs, length(input), root);
    return start(tutti_gather_list_async, options, data(input), list.data(), length(input), kType<I>, root);
  }

  // output [size*count] = the ranks' input [count], one after the other.
  template <Memory I, Output O>
  requires SameElement<I, O>
  void all_gather(I&& input, O&& output, Options options = {}) {
    require_blocks("all_gather", "output", length(output), ranks_for("all_gather"), length(input));
    call(tutti_all_gather, options, data(input), data(output), length(input), kType<I>);
  }
  template <LastingMemory I, Output O>
  requires SameElement<I, O> Work all_gather_async(I&& input, O&& output, Options options = {}) {
    require_blocks("all_gather", "output", length(output), ranks_for("all_gather"), length(input));
    return start(tutti_all_gather_async, options, data(input), data(output), length(input), kType<I>);
  }
  // In place: block `rank` of buffer [size*count] is the input.
  template <Output B>
  void all_gather(B&& buffer, Options options = {}) {
    const Blocks blocks = blocks_of("all_gather", length(buffer));
    call(tutti_all_gather, options, data(buffer) + blocks.own, data(buffer), blocks.count, kType<B>);
  }
  template <Output B>
  Work all_gather_async(B&& buffer, Options options = {}) {
    const Blocks blocks = blocks_of("all_gather", length(buffer));
    return start(tutti_all_gather_async, options, data(buffer) + blocks.own, data(buffer), blocks.count, kType<B>);
  }
  template <Memory I, OutputList L>
  requires SameListElement<L, I>
  void all_gather_list(I&& input, L&& outputs, Options options = {}) {
    const auto list = outputs_of("all_gather_list", outputs, length(input));
    call(tutti_all_gather_list, options, data(input), list.data(), length(input), kType<I>);
  }
  template <LastingMemory I, OutputList L>
  requires SameListElement<L, I> Work all_gather_list_async(I&& input, L&& outputs, Options options = {}) {
    const auto list = outputs_of("all_gather_list", outputs, length(input));
    return start(tutti_all_gather_list_async, options, data(input), list.data(), length(input), kType<I>);
  }

  // Block r of output [size*count] = block `rank` of rank r's input [size*count].
  template <Memory I, Output O>
  requires SameElement<I, O>
  void all_to_all(I&& input, O&& output, Options options = {}) {
    require_same("all_to_all", length(input), length(output));
    call(tutti_all_to_all, options, data(input), data(output), blocks_of("all_to_all", length(input)).count, kType<I>);
  }
  template <LastingMemory I, Output O>
  requires SameElement<I, O> Work all_to_all_async(I&& input, O&& output, Options options = {}) {
    require_same("all_to_all", length(input), length(output));
    const size_t count = blocks_of("all_to_all", length(input)).count;
    return start(tutti_all_to_all_async, options, data(input), data(output), count, kType<I>);
  }
  template <Output B>
  void all_to_all(B&& buffer, Options options = {}) {
    const Blocks blocks = blocks_of("all_to_all", length(buffer));
    call(tutti_all_to_all, options, data(buffer), data(buffer), blocks.count, kType<B>);
  }
  template <Output B>
  Work all_to_all_async(B&& buffer, Options options = {}) {
    const Blocks blocks = blocks_of("all_to_all", length(buffer));
    return start(tutti_all_to_all_async, options, data(buffer), data(buffer), blocks.count, kType<B>);
  }
  template <MemoryList I, OutputList L>
  requires std::same_as<ElementOfList<I>, ElementOfList<L>>
  void all_to_all_list(I&& inputs, L&& outputs, Options options = {}) {
    const size_t count = piece_length(inputs);
    const auto from = inputs_of("all_to_all_list", inputs, count);
    const auto to = outputs_of("all_to_all_list", outputs, count);
    call(tutti_all_to_all_list, options, from.data(), to.data(), count, kListType<I>);
  }
  template <MemoryList I, OutputList L>
  requires std::same_as<ElementOfList<I>, ElementOfList<L>> Work all_to_all_list_async(I&& inputs, L&& outputs,
                                                                                       Options options = {}) {
    const size_t count = piece_length(inputs);
    const auto from = inputs_of("all_to_all_list", inputs, count);
    const auto to = outputs_of("all_to_all_list", outputs, count);
    return start(tutti_all_to_all_list_async, options, from.data(), to.data(), count, kListType<I>);
  }

 private:
  template <class List>
  std::vector<const void*> inputs_of(const char* operation, List&& list, size_t count) const {
    return addresses<const void*>(operation, "inputs", list, ranks_for(operation), count);
  }
  template <class List>
  std::vector<void*> outputs_of(const char* operation, List&& list, size_t count) const {
    return addresses<void*>(operation, "outputs", list, ranks_for(operation), count);
  }
  // Elsewhere than on root the list is ignored.
  template <class List>
  std::vector<const void*> inputs_at_root(const char* operation, List&& list, size_t count, int root) const {
    if (rank() != root) return {};
    return inputs_of(operation, list, count);
  }
  template <class List>
  std::vector<void*> outputs_at_root(const char* operation, List&& list, size_t count, int root) const {
    if (rank() != root) return {};
    return outputs_of(operation, list, count);
  }
};

}  // namespace tutti::detail

#endif
