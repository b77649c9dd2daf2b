// tutti-p2p: measures messages between two ranks, in the tests and the table of perftest, and checks what came. Uses
// the public interface of the library alone. Exit status: 0; 1 for wrong bytes or a failure of the library; 2 for a
// usage error.
#include <cstdio>
#include <optional>
#include <string>

#include "operation.h"
#include "p2p_measure.h"
#include "p2p_report.h"
#include "program.h"

namespace {

using namespace tutti::perf;

constexpr const char* kName = "tutti-p2p";

// The number of wrong bytes, on both ranks.
uint64_t sweep_p2p(tutti_group* world, const P2pOptions& options) {
  const P2pMemory memory(world, options);
  std::optional<P2pReport> report;
  if (tutti_group_rank(world) == 0) report.emplace(options, describe(world));
  if (report) report->begin();
  uint64_t number = 0;
  uint64_t wrong = 0;
  for (const uint64_t bytes : sizes_of(options.min_bytes, options.max_bytes, options.factor)) {
    const P2pRow row = measure_p2p(options, memory, bytes, &number);
    wrong += row.wrong;
    if (report) report->add(row);
  }
  return wrong;
}

int measure(tutti_group* world, const P2pOptions& options) {
  std::string fault = check_p2p_world(tutti_group_size(world));
  if (fault.empty()) fault = missing_memory(world, P2pMemory::needed_bytes(options));
  if (!fault.empty()) return leave(world, std::string(kName) + ": " + fault + "\n", kUsage);
  const uint64_t wrong = sweep_p2p(world, options);
  if (wrong == 0) return leave(world, "", 0);
  return leave(world, std::string(kName) + ": " + std::to_string(wrong) + " bytes of the checked messages are wrong\n",
               kWrong);
}

int run(int argc, char** argv) {
  const P2pParsed parsed = parse_p2p(argc, argv);
  if (!parsed.options && parsed.status == 0) {
    std::fputs(parsed.text.c_str(), stdout);
    return 0;
  }
  if (!parsed.options) return refuse(parsed.text);
  tutti_group* world = nullptr;
  require(join("", &world), "tutti_init");
  return run_in(world, kName, [&] { return measure(world, *parsed.options); });
}

}  // namespace

int main(int argc, char** argv) {
  return run_program(kName, [&] { return run(argc, argv); });
}
