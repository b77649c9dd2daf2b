// tutti::Group: every operation in each of its forms, groups, windows, and what is thrown.
#include <array>
#include <cstdint>
#include <numeric>

#include "tests/cpp/ranks.h"

namespace tutti_test {
namespace {

using tutti::Group;
using tutti::Op;
using tutti::Work;
using Ints = std::vector<int32_t>;

constexpr int kRanks = 3;

TEST(Cpp, WorksAsTheReadmeShows) {
  on_ranks(4, [](Group& world) {
    std::vector<float> gradient(1 << 10, static_cast<float>(world.rank()));
    world.all_reduce(std::span(gradient), Op::sum);
    EXPECT_EQ(gradient, std::vector<float>(1 << 10, 6.0F));
    Work work = world.all_reduce_async(std::span(gradient), Op::max);
    work.wait();
    EXPECT_EQ(gradient.back(), 6.0F);
    Group even = world.split(world.rank() % 2, world.rank());
    even.barrier();
    EXPECT_EQ(even.size(), 2);
    EXPECT_EQ(even.world_rank(even.rank()), world.rank());
  });
}

// Each rank's input of `count` elements: 100 * rank + 0, 1, 2...
Ints input_of(int rank, int count) {
  Ints values(static_cast<size_t>(count));
  std::iota(values.begin(), values.end(), 100 * rank);
  return values;
}

TEST(Cpp, Broadcasts) {
  on_ranks(kRanks, [](Group& world) {
    const auto check = [&](const Ints& buffer) { EXPECT_EQ(buffer, input_of(1, 5)); };
    Ints buffer = input_of(world.rank(), 5);
    world.broadcast(buffer, 1);
    check(buffer);
    buffer = input_of(world.rank(), 5);
    world.broadcast_async(buffer, 1).wait();
    check(buffer);
  });
}

TEST(Cpp, SendsAndReceives) {
  on_ranks(2, [](Group& world) {
    Ints there(4), back(4);
    if (world.rank() == 0) {
      world.send(input_of(0, 4), 1);
      const Ints more = input_of(7, 4);
      world.send_async(more, 1).wait();
    } else {
      world.recv(there, 0);
      world.recv_async(back, 0).wait();
      EXPECT_EQ(there, input_of(0, 4));
      EXPECT_EQ(back, input_of(7, 4));
    }
  });
}

TEST(Cpp, Reduces) {
  on_ranks(kRanks, [](Group& world) {
    const Ints input = input_of(world.rank(), 2), wanted{300, 303};
    for (bool async : {false, true})
      for (bool in_place : {false, true}) {
        const bool is_root = world.rank() == 2;
        Ints output = in_place ? input : Ints(is_root ? 2 : 0);  // ignored elsewhere than on the root
        if (!async && !in_place) world.reduce(input, output, Op::sum, 2);
        if (!async && in_place) world.reduce(output, Op::sum, 2);
        if (async && !in_place) world.reduce_async(input, output, Op::sum, 2).wait();
        if (async && in_place) world.reduce_async(output, Op::sum, 2).wait();
        if (is_root) {
          EXPECT_EQ(output, wanted);
        }

        Ints all = in_place ? input : Ints(2);
        if (!async && !in_place) world.all_reduce(input, all, Op::sum);
        if (!async && in_place) world.all_reduce(all, Op::sum);
        if (async && !in_place) world.all_reduce_async(input, all, Op::sum).wait();
        if (async && in_place) world.all_reduce_async(all, Op::sum).wait();
        EXPECT_EQ(all, wanted);
      }
  });
}

TEST(Cpp, ReduceScatters) {
  on_ranks(kRanks, [](Group& world) {
    const Ints input = input_of(world.rank(), 2 * kRanks);
    const int first = 300 + 3 * 2 * world.rank();
    const Ints wanted{first, first + 3};
    const auto own = [&](const Ints& buffer) {
      return Ints(buffer.begin() + 2 * world.rank(), buffer.begin() + 2 * world.rank() + 2);
    };
    Ints output(2), in_place = input;
    world.reduce_scatter(input, output, Op::sum);
    EXPECT_EQ(output, wanted);
    world.reduce_scatter(in_place, Op::sum);
    EXPECT_EQ(own(in_place), wanted);
    output.assign(2, 0), in_place = input;
    world.reduce_scatter_async(input, output, Op::sum).wait();
    EXPECT_EQ(output, wanted);
    world.reduce_scatter_async(in_place, Op::sum).wait();
    EXPECT_EQ(own(in_place), wanted);
  });
}

// The blocks of a buffer, as pieces of their own and as spans.
struct Pieces {
  std::vector<Ints> blocks;
  explicit Pieces(const Ints& whole, size_t count) {
    for (size_t at = 0; at < whole.size(); at += count) {
      const auto begin = whole.begin() + static_cast<ptrdiff_t>(at);
      blocks.emplace_back(begin, begin + static_cast<ptrdiff_t>(count));
    }
  }
  std::vector<std::span<int32_t>> spans() { return {blocks.begin(), blocks.end()}; }
};

TEST(Cpp, Scatters) {
  on_ranks(kRanks, [](Group& world) {
    const bool is_root = world.rank() == 0;
    const Ints whole = is_root ? input_of(5, 2 * kRanks) : Ints{};
    const Ints wanted{500 + 2 * world.rank(), 501 + 2 * world.rank()};
    Pieces pieces(whole, 2);
    for (bool async : {false, true}) {
      Ints output(2), in_place = is_root ? whole : Ints(2), listed(2);
      if (async) {
        world.scatter_async(whole, output, 0).wait();
        world.scatter_async(in_place, 0).wait();
        world.scatter_list_async(pieces.spans(), listed, 0).wait();
      } else {
        world.scatter(whole, output, 0);
        world.scatter(in_place, 0);
        world.scatter_list(pieces.blocks, listed, 0);
      }
      in_place.resize(2);
      EXPECT_EQ(output, wanted);
      EXPECT_EQ(in_place, wanted);
      EXPECT_EQ(listed, wanted);
    }
  });
}

Ints gathered() {
  Ints all;
  for (int r = 0; r < kRanks; ++r)
    for (int value : input_of(r, 2)) all.push_back(value);
  return all;
}

TEST(Cpp, Gathers) {
  on_ranks(kRanks, [](Group& world) {
    const int root = kRanks - 1;
    const bool is_root = world.rank() == root;
    const Ints input = input_of(world.rank(), 2);
    for (bool async : {false, true}) {
      Ints output(is_root ? 2 * kRanks : 0), in_place = input;
      if (is_root) in_place.insert(in_place.begin(), 2 * root, 0);
      Pieces pieces(output, 2);
      if (async) {
        world.gather_async(input, output, root).wait();
        world.gather_async(in_place, root).wait();
        world.gather_list_async(input, pieces.spans(), root).wait();
      } else {
        world.gather(input, output, root);
        world.gather(in_place, root);
        world.gather_list(input, pieces.blocks, root);
      }
      if (!is_root) continue;
      EXPECT_EQ(output, gathered());
      EXPECT_EQ(in_place, gathered());
      EXPECT_EQ(pieces.blocks, Pieces(gathered(), 2).blocks);
    }
  });
}

TEST(Cpp, AllGathers) {
  on_ranks(kRanks, [](Group& world) {
    const Ints input = input_of(world.rank(), 2);
    for (bool async : {false, true}) {
      Ints output(2 * kRanks), in_place(2 * kRanks);
      std::copy(input.begin(), input.end(), in_place.begin() + 2 * world.rank());
      Pieces pieces(output, 2);
      if (async) {
        world.all_gather_async(input, output).wait();
        world.all_gather_async(in_place).wait();
        world.all_gather_list_async(input, pieces.spans()).wait();
      } else {
        world.all_gather(input, output);
        world.all_gather(in_place);
        world.all_gather_list(input, pieces.blocks);
      }
      EXPECT_EQ(output, gathered());
      EXPECT_EQ(in_place, gathered());
      EXPECT_EQ(pieces.blocks, Pieces(gathered(), 2).blocks);
    }
  });
}

TEST(Cpp, SendsAllToAll) {
  on_ranks(kRanks, [](Group& world) {
    const Ints input = input_of(world.rank(), 2 * kRanks);
    Ints wanted;
    for (int r = 0; r < kRanks; ++r)
      for (int i : {0, 1}) wanted.push_back(100 * r + 2 * world.rank() + i);
    Pieces from(input, 2);
    for (bool async : {false, true}) {
      Ints output(2 * kRanks), in_place = input;
      Pieces to(output, 2);
      if (async) {
        world.all_to_all_async(input, output).wait();
        world.all_to_all_async(in_place).wait();
        world.all_to_all_list_async(from.spans(), to.spans()).wait();
      } else {
        world.all_to_all(input, output);
        world.all_to_all(in_place);
        world.all_to_all_list(from.blocks, to.blocks);
      }
      EXPECT_EQ(output, wanted);
      EXPECT_EQ(in_place, wanted);
      EXPECT_EQ(to.blocks, Pieces(wanted, 2).blocks);
    }
  });
}

TEST(Cpp, TakesEveryContiguousRange) {
  on_ranks(2, [](Group& world) {
    std::array<double, 3> array{1, 2, 3};
    double plain[] = {1, 2, 3};
    tutti::Buffer<double> window = world.alloc<double>(3);
    EXPECT_EQ(window[2], 0);
    std::copy(array.begin(), array.end(), window.begin());
    const std::array<double, 3> constant{1, 2, 3};
    world.all_reduce(array, Op::sum);
    world.all_reduce(plain, Op::sum);
    world.all_reduce(window, Op::sum);
    for (size_t i = 0; i < 3; ++i) EXPECT_EQ(array[i] + plain[i] + window[i], 6 * constant[i]);
    world.all_reduce(constant, std::span(array).first<3>(), Op::max);
    EXPECT_EQ(array, constant);
    world.all_reduce(std::span<float>(), Op::sum);  // nothing, from nowhere

    std::vector<tutti::bfloat16> small(5, tutti::bfloat16(1.5F));
    world.all_reduce(small, Op::sum);
    EXPECT_EQ(small[4], 3.0F);
  });
}

template <class F>
tutti::Status code_of(F f, const std::string& message_part) {
  try {
    f();
  } catch (const tutti::Error& error) {
    EXPECT_NE(std::string(error.what()).find(message_part), std::string::npos) << error.what();
    return error.code();
  }
  return tutti::Status::ok;
}

TEST(Cpp, LengthsThatDoNotFitAreRefusedBeforeAnythingIsSent) {
  on_ranks(2, [](Group& world) {
    using enum tutti::Status;
    Ints two(2), three(3), four(4);
    std::vector<Ints> uneven{two, three}, short_list{two};
    EXPECT_EQ(code_of([&] { world.all_reduce(two, three, Op::sum); }, "output has 3 elements, must have 2"),
              invalid_argument);
    EXPECT_EQ(code_of([&] { world.all_gather(two, three); }, "output has 3 elements, must have 4 (2 ranks times 2)"),
              invalid_argument);
    EXPECT_EQ(code_of([&] { world.all_gather(three); }, "multiple of the 2 ranks"), invalid_argument);
    EXPECT_EQ(code_of([&] { world.reduce_scatter(three, two, Op::sum); }, "input has 3"), invalid_argument);
    EXPECT_EQ(code_of([&] { world.all_to_all(two, four); }, "output has 4"), invalid_argument);
    EXPECT_EQ(code_of([&] { world.all_gather_list(two, uneven); }, "piece 1 of outputs has 3"), invalid_argument);
    EXPECT_EQ(code_of([&] { world.all_gather_list(two, short_list); }, "outputs has 1 pieces, must have 2"),
              invalid_argument);
    EXPECT_EQ(code_of([&] { world.gather(two, three, world.rank()); }, "output has 3"), invalid_argument);
    EXPECT_EQ(code_of([&] { world.scatter(three, two, world.rank()); }, "input has 3"), invalid_argument);
    EXPECT_EQ(code_of([&] { world.broadcast(two, 2); }, "2"), invalid_argument);
    EXPECT_EQ(code_of(
                  [&] {
                    std::vector<float> f(1);
                    world.all_reduce(f, Op::bit_or);
                  },
                  "bit_or"),
              invalid_argument);
    world.barrier();  // the group still works
  });
}

TEST(Cpp, EmptyGroupsSaySo) {
  on_ranks(2, [](Group& world) {
    Group first = world.subgroup({0});
    EXPECT_EQ(static_cast<bool>(first), world.rank() == 0);
    Group none = world.split(TUTTI_NO_COLOR, 0);
    EXPECT_FALSE(none);
    EXPECT_EQ(none.rank(), -1);
    Ints buffer(2);
    EXPECT_EQ(code_of([&] { none.all_gather(buffer); }, "no member"), tutti::Status::invalid_argument);
    EXPECT_EQ(code_of([&] { none.barrier(); }, "barrier: the group is empty"), tutti::Status::invalid_argument);
  });
}

TEST(Cpp, WorkIsTestedAndWaitedForWithALimit) {
  on_ranks(2, [](Group& world) {
    Ints buffer(1, world.rank());
    if (world.rank() == 0) {
      Work work = world.recv_async(buffer, 1);
      EXPECT_FALSE(work.test());
      EXPECT_FALSE(work.wait_for(std::chrono::milliseconds(1)));
      world.send(Ints{5}, 1);
      EXPECT_TRUE(work.wait_for(std::chrono::hours(24 * 365) * 1000));
      EXPECT_TRUE(work.test());
      work.wait();
      EXPECT_EQ(buffer[0], 7);
    } else {
      world.recv(buffer, 0);
      world.send(Ints{7}, 0);
    }
  });
}

TEST(Cpp, WorksAndBuffersOutliveTheirGroup) {
  on_ranks(2, [](Group& world) {
    Ints buffer(1, 1);
    tutti::Buffer<int32_t> window;
    Work work;
    {
      Group copy = world.dup();
      window = copy.alloc<int32_t>(4);
      work = copy.all_reduce_async(buffer, Op::sum);
    }
    work.wait();
    EXPECT_EQ(buffer[0], 2);
    window[3] = 1;
    world.all_reduce(window, Op::sum);
    EXPECT_EQ(window[3], 2);
  });
}

TEST(Cpp, TimeoutsAndAbortsAreThrown) {
  on_ranks(2, [](Group& world) {
    Group late = world.dup(), given_up = world.dup();
    if (world.rank() == 0) {
      const tutti::Options soon{.timeout = std::chrono::milliseconds(20)};
      EXPECT_EQ(code_of([&] { late.barrier(soon); }, "rank 1"), tutti::Status::timeout);
      given_up.abort("enough");
    }
    EXPECT_EQ(code_of([&] { given_up.barrier(); }, "enough"), tutti::Status::aborted);
    world.barrier();
  });
}

TEST(Cpp, Explains) {
  on_ranks(2, [](Group& world) {
    EXPECT_NE(world.explain<float>("all_reduce", 1000), "");
    EXPECT_EQ(code_of([&] { static_cast<void>(world.explain<float>("all_redoce", 1)); }, "all_redoce"),
              tutti::Status::invalid_argument);
    const std::string text = world.describe();
    EXPECT_EQ(text.front(), '{');
    EXPECT_EQ(text.back(), '}');
    EXPECT_NE(text.find(tutti::version()), std::string::npos);
  });
}

}  // namespace
}  // namespace tutti_test
