// tutti-perf: measures one collective operation over a range of sizes, and checks its results. Uses the public
// interface of the library alone. Exit status: 0; 1 for wrong results or a failure of the library; 2 for a usage error.
#include <cstdio>
#include <string>

#include "program.h"
#include "sweep.h"

namespace {

using tutti::perf::kUsage;
using tutti::perf::kWrong;
using tutti::perf::leave;
using tutti::perf::Options;
using tutti::perf::Place;
using tutti::perf::refuse;

std::string usage(const std::string& fault) { return "tutti-perf: " + fault + "\n"; }

int measure(tutti_group* world, const Options& options) {
  const Place place = {tutti_group_rank(world), tutti_group_size(world)};
  const std::string fault = check_world(options, place.size);
  if (!fault.empty()) return leave(world, usage(fault), kUsage);
  const std::string lack = check_memory(world, options, place);
  if (!lack.empty()) return leave(world, usage(lack), kUsage);
  if (place.size == 1) {
    std::fprintf(stderr,
                 "tutti-perf: WARNING: world size 1: this process measures alone, and no bandwidth is one between "
                 "ranks. Start it by a launcher: tutti-run -n 4 tutti-perf %s\n",
                 options.operation->name);
  }
  const uint64_t wrong = sweep(world, options, place);
  return leave(world, wrong == 0 ? "" : "tutti-perf: " + std::to_string(wrong) + " elements are wrong\n",
               wrong == 0 ? 0 : kWrong);
}

int run(int argc, char** argv) {
  const tutti::perf::Parsed parsed = tutti::perf::parse(argc, argv);
  if (!parsed.options && parsed.status == 0) {
    std::fputs(parsed.text.c_str(), stdout);
    return 0;
  }
  if (!parsed.options) return refuse(parsed.text);
  const Options& options = *parsed.options;
  const std::string algorithm =
      options.algorithm.empty()
          ? ""
          : std::string("TUTTI_ALGORITHM=") + options.operation->explained_as + ":" + options.algorithm;
  tutti_group* world = nullptr;
  const tutti_status joined = tutti::perf::join(algorithm, &world);
  if (joined == TUTTI_INVALID_ARGUMENT && !algorithm.empty()) return refuse(usage(tutti_last_error()));
  tutti::perf::require(joined, "tutti_init");
  return tutti::perf::run_in(world, "tutti-perf", [&] { return measure(world, options); });
}

}  // namespace

int main(int argc, char** argv) {
  return tutti::perf::run_program("tutti-perf", [&] { return run(argc, argv); });
}
