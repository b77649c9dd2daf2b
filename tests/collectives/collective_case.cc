#include "collective_case.h"

#include <algorithm>
#include <cstdlib>

namespace tutti_test {
namespace {

constexpr unsigned char kGuard = 0xA5;
constexpr size_t kGuardBytes = 64;

// Memory of one kind with guard bytes on both sides.
class Region {
 public:
  Region(tutti_group* world, MemoryKind kind, size_t bytes) : world_(world), kind_(kind), bytes_(bytes) {
    const size_t all = bytes + 2 * kGuardBytes + 1;
    void* memory = nullptr;
    if (kind == MemoryKind::window) {
      EXPECT_TUTTI_OK(tutti_alloc(world, all, &memory));
    } else {
      memory = std::malloc(all);
    }
    memory_ = static_cast<unsigned char*>(memory);
    std::memset(memory_, kGuard, all);
  }
  ~Region() {
    if (kind_ == MemoryKind::window) {
      EXPECT_TUTTI_OK(tutti_free(world_, memory_));
    } else {
      std::free(memory_);
    }
  }
  Region(const Region&) = delete;
  Region& operator=(const Region&) = delete;

  unsigned char* data() { return memory_ + kGuardBytes + (kind_ == MemoryKind::unaligned ? 1 : 0); }
  bool guards_intact() {
    const auto intact = [](const unsigned char* at) {
      return std::all_of(at, at + kGuardBytes, [](unsigned char byte) { return byte == kGuard; });
    };
    return intact(data() - kGuardBytes) && intact(data() + bytes_);
  }

 private:
  tutti_group* world_;
  MemoryKind kind_;
  size_t bytes_;
  unsigned char* memory_ = nullptr;
};

class Runner {
 public:
  Runner(tutti_group* world, const Case& c)
      : world_(world),
        case_(c),
        rank_(tutti_group_rank(world)),
        size_(tutti_group_size(world)),
        element_(tutti_type_bytes(c.type)),
        block_(c.count * element_) {}

  void run() {
    const auto [inputs, outputs] = blocks();
    const bool shares = case_.in_place || case_.operation == Operation::broadcast;
    const size_t longest = std::max(inputs, outputs) * block_;
    Region first(world_, case_.memory, shares ? longest : inputs * block_);
    Region second(world_, case_.memory, shares ? 0 : outputs * block_);
    unsigned char* input = first.data();
    unsigned char* output = shares ? first.data() : second.data();
    if (shares && inputs < outputs) input += static_cast<size_t>(rank_) * block_;
    if (shares && outputs < inputs && outputs > 0) output += static_cast<size_t>(rank_) * block_;
    if (case_.operation != Operation::broadcast || rank_ == case_.root) fill(input, inputs);
    const bool nothing = case_.count == 0;
    EXPECT_TUTTI_OK(call(nothing ? nullptr : input, nothing ? nullptr : output));
    check_output(output, outputs);
    if (!shares) check_input(input, inputs);
    EXPECT_TRUE(first.guards_intact() && second.guards_intact()) << "written outside of the output";
  }

 private:
  // Blocks of `count` elements that this rank reads and writes.
  std::pair<size_t, size_t> blocks() const {
    const auto all = static_cast<size_t>(size_);
    const bool root = rank_ == case_.root;
    switch (case_.operation) {
      case Operation::reduce: return {1, root ? 1 : 0};
      case Operation::reduce_scatter: return {all, 1};
      case Operation::scatter: return {root ? all : 0, 1};
      case Operation::gather: return {1, root ? all : 0};
      case Operation::all_gather: return {1, all};
      case Operation::all_to_all: return {all, all};
      case Operation::barrier: return {0, 0};
      default: return {1, 1};
    }
  }

  void fill(unsigned char* input, size_t blocks) {
    for (uint64_t i = 0; i < blocks * case_.count; ++i) put_value(input + i * element_, case_.type, case_.op, rank_, i);
  }

  void expected(unsigned char* at, size_t block, uint64_t i) const {
    const uint64_t own = static_cast<uint64_t>(rank_) * case_.count + i;
    const auto from = static_cast<int>(block);
    switch (case_.operation) {
      case Operation::broadcast: return put_value(at, case_.type, case_.op, case_.root, i);
      case Operation::reduce:
      case Operation::all_reduce: return put_reduced(at, case_.type, case_.op, size_, i);
      case Operation::reduce_scatter: return put_reduced(at, case_.type, case_.op, size_, own);
      case Operation::scatter: return put_value(at, case_.type, case_.op, case_.root, own);
      case Operation::gather:
      case Operation::all_gather: return put_value(at, case_.type, case_.op, from, i);
      case Operation::all_to_all: return put_value(at, case_.type, case_.op, from, own);
      default: return;
    }
  }

  void check_output(const unsigned char* output, size_t blocks) {
    unsigned char right[8];
    for (size_t block = 0; block < blocks; ++block)
      for (uint64_t i = 0; i < case_.count; ++i) {
        const unsigned char* found = output + block * block_ + i * element_;
        expected(right, block, i);
        if (std::memcmp(found, right, element_) == 0) continue;
        ADD_FAILURE() << "wrong element " << i << " of block " << block << " on rank " << rank_;
        return;
      }
  }

  void check_input(const unsigned char* input, size_t blocks) {
    unsigned char right[8];
    for (uint64_t i = 0; i < blocks * case_.count; ++i) {
      put_value(right, case_.type, case_.op, rank_, i);
      if (std::memcmp(input + i * element_, right, element_) == 0) continue;
      ADD_FAILURE() << "input element " << i << " has changed on rank " << rank_;
      return;
    }
  }

  tutti_status call(void* input, void* output) {
    if (!case_.async) return blocking(input, output);
    tutti_work* work = nullptr;
    if (const tutti_status started = async(input, output, &work); started != TUTTI_OK) return started;
    const tutti_status status = tutti_work_wait(work);
    EXPECT_TUTTI_OK(tutti_work_free(work));
    return status;
  }

  // The blocks of a buffer as a list of pieces.
  std::vector<void*> pieces(void* buffer) const {
    std::vector<void*> list;
    for (int r = 0; r < size_; ++r)
      list.push_back(buffer ? static_cast<unsigned char*>(buffer) + static_cast<size_t>(r) * block_ : nullptr);
    return list;
  }

  tutti_status blocking(void* in, void* out) {
    const auto [operation, n, t, op, root, place, list, async, memory] = case_;
    const auto ins = pieces(in), outs = pieces(out);
    switch (operation) {
      case Operation::barrier: return tutti_barrier(world_, nullptr);
      case Operation::broadcast: return tutti_broadcast(world_, in, n, t, root, nullptr);
      case Operation::reduce: return tutti_reduce(world_, in, out, n, t, op, root, nullptr);
      case Operation::all_reduce: return tutti_all_reduce(world_, in, out, n, t, op, nullptr);
      case Operation::reduce_scatter: return tutti_reduce_scatter(world_, in, out, n, t, op, nullptr);
      case Operation::scatter:
        return list ? tutti_scatter_list(world_, ins.data(), out, n, t, root, nullptr)
                    : tutti_scatter(world_, in, out, n, t, root, nullptr);
      case Operation::gather:
        return list ? tutti_gather_list(world_, in, outs.data(), n, t, root, nullptr)
                    : tutti_gather(world_, in, out, n, t, root, nullptr);
      case Operation::all_gather:
        return list ? tutti_all_gather_list(world_, in, outs.data(), n, t, nullptr)
                    : tutti_all_gather(world_, in, out, n, t, nullptr);
      case Operation::all_to_all:
        return list ? tutti_all_to_all_list(world_, ins.data(), outs.data(), n, t, nullptr)
                    : tutti_all_to_all(world_, in, out, n, t, nullptr);
      default: return TUTTI_UNSUPPORTED;
    }
  }

  tutti_status async(void* in, void* out, tutti_work** work) {
    const auto [operation, n, t, op, root, place, list, async, memory] = case_;
    const auto ins = pieces(in), outs = pieces(out);
    switch (operation) {
      case Operation::barrier: return tutti_barrier_async(world_, nullptr, work);
      case Operation::broadcast: return tutti_broadcast_async(world_, in, n, t, root, nullptr, work);
      case Operation::reduce: return tutti_reduce_async(world_, in, out, n, t, op, root, nullptr, work);
      case Operation::all_reduce: return tutti_all_reduce_async(world_, in, out, n, t, op, nullptr, work);
      case Operation::reduce_scatter: return tutti_reduce_scatter_async(world_, in, out, n, t, op, nullptr, work);
      case Operation::scatter:
        return list ? tutti_scatter_list_async(world_, ins.data(), out, n, t, root, nullptr, work)
                    : tutti_scatter_async(world_, in, out, n, t, root, nullptr, work);
      case Operation::gather:
        return list ? tutti_gather_list_async(world_, in, outs.data(), n, t, root, nullptr, work)
                    : tutti_gather_async(world_, in, out, n, t, root, nullptr, work);
      case Operation::all_gather:
        return list ? tutti_all_gather_list_async(world_, in, outs.data(), n, t, nullptr, work)
                    : tutti_all_gather_async(world_, in, out, n, t, nullptr, work);
      case Operation::all_to_all:
        return list ? tutti_all_to_all_list_async(world_, ins.data(), outs.data(), n, t, nullptr, work)
                    : tutti_all_to_all_async(world_, in, out, n, t, nullptr, work);
      default: return TUTTI_UNSUPPORTED;
    }
  }

  tutti_group* world_;
  const Case case_;
  const int rank_, size_;
  const size_t element_, block_;
};

}  // namespace

std::string to_string(const Case& c) {
  return std::string(name(c.operation)) + " count " + std::to_string(c.count) + " " + tutti_type_name(c.type) + " " +
         tutti_op_name(c.op) + " root " + std::to_string(c.root) + (c.in_place ? " in place" : "") +
         (c.as_list ? " list" : "") + (c.async ? " async" : "") +
         (c.memory == MemoryKind::window ? " window"
          : c.memory == MemoryKind::heap ? " heap"
                                         : " unaligned");
}

void run_case(tutti_group* world, const Case& c) {
  SCOPED_TRACE(to_string(c));
  Runner(world, c).run();
}

}  // namespace tutti_test
