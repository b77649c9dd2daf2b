// tutti-perf: measures one collective operation over a range of sizes, and checks its results. Uses the public
// interface of the library alone. Exit status: 0; 1 for wrong results or a failure of the library; 2 for a usage error.
#include <cstdio>
#include <exception>
#include <string>

#include "sweep.h"

namespace {

using tutti::perf::Options;
using tutti::perf::Place;
using tutti::perf::require;

constexpr int kWrong = 1;
constexpr int kUsage = 2;

void complain(const std::exception& error) { std::fprintf(stderr, "tutti-perf: %s\n", error.what()); }

// With a setting of the library's ("TUTTI_ALGORITHM=..."), or with none ("").
tutti_status join(const std::string& setting, tutti_group** world) {
  const char* settings[] = {setting.c_str(), nullptr};
  tutti_init_options init = TUTTI_INIT_OPTIONS;
  if (!setting.empty()) init.settings = settings;
  return tutti_init(&init, world);
}

// Rank 0 says it, and every rank leaves with `status` once it has been said: a launcher ends the others when one rank
// leaves with an error.
int leave(tutti_group* world, const std::string& text, int status) {
  if (tutti_group_rank(world) == 0) {
    std::fputs(text.c_str(), status == 0 ? stdout : stderr);
    std::fflush(nullptr);
  }
  require(tutti_barrier(world, nullptr), "barrier");
  require(tutti_group_free(world), "tutti_group_free");
  return status;
}

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

// Even a usage error is said by one rank only, and that takes a world to know which.
int refuse(const std::string& text) {
  tutti_group* world = nullptr;
  require(join("", &world), "tutti_init");
  return leave(world, text, kUsage);
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
  const tutti_status joined = join(algorithm, &world);
  if (joined == TUTTI_INVALID_ARGUMENT && !algorithm.empty()) return refuse(usage(tutti_last_error()));
  require(joined, "tutti_init");
  try {
    return measure(world, options);
  } catch (const std::exception& error) {
    complain(error);
    // The others wait for this rank in some operation: they learn why it left.
    static_cast<void>(tutti_group_abort(world, error.what()));
    return kWrong;
  }
}

}  // namespace

int main(int argc, char** argv) {
  try {
    return run(argc, argv);
  } catch (const std::exception& error) {
    complain(error);
    return kWrong;
  }
}
