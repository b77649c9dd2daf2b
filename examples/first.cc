// The first program of the README: tutti-run -n 4 first
#include <tutti/tutti.hpp>
int main() {
  tutti::Group world = tutti::init();  // reads RANK, WORLD_SIZE, MASTER_ADDR, MASTER_PORT
  std::vector<float> gradient(1 << 20, float(world.rank()));
  world.all_reduce(std::span(gradient), tutti::Op::sum);  // in place
  tutti::Work work = world.all_reduce_async(std::span(gradient), tutti::Op::max);
  work.wait();
  tutti::Group even = world.split(world.rank() % 2, world.rank());
  even.barrier();
}
