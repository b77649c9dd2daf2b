// What it costs to read the machine and to map ranks. Looks inside the library, as a test does.
#include <benchmark/benchmark.h>

#include <vector>

#include "topology/machine.h"
#include "topology/rank_map.h"

namespace {

using namespace tutti::internal;

void read_this_host(benchmark::State& state) {
  for (auto _ : state) {
    const auto machine = Machine::read(MachineSource());
    if (!machine.ok() || machine.value().cores.empty()) state.SkipWithError("this host cannot be read");
  }
}
BENCHMARK(read_this_host)->Unit(benchmark::kMillisecond);

// Ranks dealt around nodes of eight, as an interleaving launcher does.
void map_ranks(benchmark::State& state) {
  const auto count = static_cast<int32_t>(state.range(0));
  const int32_t nodes = count / 8;
  std::vector<RankPlace> places(static_cast<size_t>(count));
  for (int32_t rank = 0; rank < count; ++rank) {
    RankPlace& place = places[static_cast<size_t>(rank)];
    place.node = rank % nodes;
    place.package = rank / nodes % 2;
    place.core = rank / nodes;
  }
  for (auto _ : state) {
    const RankMap map(places);
    if (map.node_count() != nodes || map.ranks_of(nodes - 1).size() != 8) state.SkipWithError("the map is wrong");
    benchmark::DoNotOptimize(map.near_order().data());
  }
}
BENCHMARK(map_ranks)->Arg(64)->Arg(512)->Arg(4096)->Unit(benchmark::kMillisecond);

}  // namespace

BENCHMARK_MAIN();
