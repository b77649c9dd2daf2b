// A rank for the tests of tutti-run: joins the world that its environment names and adds up all ranks' numbers.
//   join_worker [fail RANK]   that rank leaves with status 3 once it has joined; the others wait for it
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <exception>
#include <span>
#include <tutti/tutti.hpp>
#include <vector>

int main(int argc, char** argv) {
  try {
    tutti::Group world = tutti::init();
    if (argc == 3 && std::strcmp(argv[1], "fail") == 0) {
      if (world.rank() == std::atoi(argv[2])) std::_Exit(3);
      world.barrier();
    }
    std::vector<float> numbers(1000, static_cast<float>(world.rank()));
    world.all_reduce(std::span(numbers), tutti::Op::sum);
    std::printf("%.0f of %d\n", static_cast<double>(numbers[999]), world.size());
    return 0;
  } catch (const std::exception& error) {
    std::fprintf(stderr, "%s\n", error.what());
    return 1;
  }
}
