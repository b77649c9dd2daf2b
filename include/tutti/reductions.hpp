// The operations of tutti::Group whose buffers all have one length: barrier, broadcast, send, recv, reduce, all_reduce;
// and reduce_scatter. Conventions: the top of tutti.hpp.
#ifndef TUTTI_REDUCTIONS_HPP
#define TUTTI_REDUCTIONS_HPP

#include <tutti/group_base.hpp>

namespace tutti::detail {

class Reductions : public GroupBase {
 public:
  using GroupBase::GroupBase;

  // Returns when every rank has called it.
  void barrier(Options options = {}) {
    require_member("barrier");
    call(tutti_barrier, options);
  }
  Work barrier_async(Options options = {}) {
    require_member("barrier_async");
    return start(tutti_barrier_async, options);
  }

  // Everyone's buffer [count] = root's.
  template <Output B>
  void broadcast(B&& buffer, int root, Options options = {}) {
    call(tutti_broadcast, options, data(buffer), length(buffer), kType<B>, root);
  }
  template <Output B>
  Work broadcast_async(B&& buffer, int root, Options options = {}) {
    return start(tutti_broadcast_async, options, data(buffer), length(buffer), kType<B>, root);
  }

  // The k-th send from A to B meets the k-th recv of B from A; both have one length. A send may return earlier.
  template <Memory I>
  void send(I&& buffer, int to, Options options = {}) {
    call(tutti_send, options, data(buffer), length(buffer), kType<I>, to);
  }
  template <LastingMemory I>
  Work send_async(I&& buffer, int to, Options options = {}) {
    return start(tutti_send_async, options, data(buffer), length(buffer), kType<I>, to);
  }
  template <Output O>
  void recv(O&& buffer, int from, Options options = {}) {
    call(tutti_recv, options, data(buffer), length(buffer), kType<O>, from);
  }
  template <Output O>
  Work recv_async(O&& buffer, int from, Options options = {}) {
    return start(tutti_recv_async, options, data(buffer), length(buffer), kType<O>, from);
  }

  // root's output [count] = op over all ranks' input [count]. Elsewhere output is ignored.
  template <Memory I, Output O>
  requires SameElement<I, O>
  void reduce(I&& input, O&& output, Op op, int root, Options options = {}) {
    if (rank() == root) require_same("reduce", length(input), length(output));
    call(tutti_reduce, options, data(input), data(output), length(input), kType<I>, c_op(op), root);
  }
  template <LastingMemory I, Output O>
  requires SameElement<I, O> Work reduce_async(I&& input, O&& output, Op op, int root, Options options = {}) {
    if (rank() == root) require_same("reduce", length(input), length(output));
    return start(tutti_reduce_async, options, data(input), data(output), length(input), kType<I>, c_op(op), root);
  }
  // In place: on root buffer [count] is input and output, elsewhere it is the input.
  template <Output B>
  void reduce(B&& buffer, Op op, int root, Options options = {}) {
    call(tutti_reduce, options, data(buffer), data(buffer), length(buffer), kType<B>, c_op(op), root);
  }
  template <Output B>
  Work reduce_async(B&& buffer, Op op, int root, Options options = {}) {
    return start(tutti_reduce_async, options, data(buffer), data(buffer), length(buffer), kType<B>, c_op(op), root);
  }

  // output [count] = op over all ranks' input [count].
  template <Memory I, Output O>
  requires SameElement<I, O>
  void all_reduce(I&& input, O&& output, Op op, Options options = {}) {
    require_same("all_reduce", length(input), length(output));
    call(tutti_all_reduce, options, data(input), data(output), length(input), kType<I>, c_op(op));
  }
  template <LastingMemory I, Output O>
  requires SameElement<I, O> Work all_reduce_async(I&& input, O&& output, Op op, Options options = {}) {
    require_same("all_reduce", length(input), length(output));
    return start(tutti_all_reduce_async, options, data(input), data(output), length(input), kType<I>, c_op(op));
  }
  template <Output B>
  void all_reduce(B&& buffer, Op op, Options options = {}) {
    call(tutti_all_reduce, options, data(buffer), data(buffer), length(buffer), kType<B>, c_op(op));
  }
  template <Output B>
  Work all_reduce_async(B&& buffer, Op op, Options options = {}) {
    return start(tutti_all_reduce_async, options, data(buffer), data(buffer), length(buffer), kType<B>, c_op(op));
  }

  // output [count] = block `rank` of op over all ranks' input [size*count].
  template <Memory I, Output O>
  requires SameElement<I, O>
  void reduce_scatter(I&& input, O&& output, Op op, Options options = {}) {
    require_blocks("reduce_scatter", "input", length(input), ranks_for("reduce_scatter"), length(output));
    call(tutti_reduce_scatter, options, data(input), data(output), length(output), kType<I>, c_op(op));
  }
  template <LastingMemory I, Output O>
  requires SameElement<I, O> Work reduce_scatter_async(I&& input, O&& output, Op op, Options options = {}) {
    require_blocks("reduce_scatter", "input", length(input), ranks_for("reduce_scatter"), length(output));
    return start(tutti_reduce_scatter_async, options, data(input), data(output), length(output), kType<I>, c_op(op));
  }
  // In place: block `rank` of buffer [size*count] becomes the result; the other blocks keep what they hold.
  template <Output B>
  void reduce_scatter(B&& buffer, Op op, Options options = {}) {
    const Blocks blocks = blocks_of("reduce_scatter", length(buffer));
    call(tutti_reduce_scatter, options, data(buffer), data(buffer) + blocks.own, blocks.count, kType<B>, c_op(op));
  }
  template <Output B>
  Work reduce_scatter_async(B&& buffer, Op op, Options options = {}) {
    const Blocks blocks = blocks_of("reduce_scatter", length(buffer));
    return start(tutti_reduce_scatter_async, options, data(buffer), data(buffer) + blocks.own, blocks.count, kType<B>,
                 c_op(op));
  }
};

}  // namespace tutti::detail

#endif
