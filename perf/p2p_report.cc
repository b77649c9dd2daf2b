#include "p2p_report.h"

#include <cstdio>

namespace tutti::perf {
namespace {

constexpr int kRanks = 2;

}  // namespace

P2pReport::P2pReport(const P2pOptions& options, const nlohmann::json& world) : options_(options), json_(options.json) {
  common_["test"] = options.kind->name;
  common_["beside"] = options.kind->beside;
  common_["memory"] = memory_name(options.memory);
  common_.update(origin_of(world, kRanks));
}

void P2pReport::begin() const {
  if (json_.is_stdout()) return;
  std::printf("# tutti %s: %s between 2 ranks, transport %s, host %s, %s memory; beside %s\n", tutti_version(),
              options_.kind->name, common_["transport"].get<std::string>().c_str(),
              common_["host"].get<std::string>().c_str(), memory_name(options_.memory), options_.kind->beside);
  print_shared_cores(common_);
  if (options_.kind->measures_latency) {
    std::printf("# one way: half of a round trip\n");
    std::printf(
        " #bytes     #iterations    t_min[usec]    t_max[usec]  t_typical[usec]    t_avg[usec]    t_stdev[usec]   "
        "99%% percentile[usec]   99.9%% percentile[usec]\n");
  } else {
    std::printf("# MB are 2^20 bytes\n");
    std::printf(" #bytes     #iterations    BW peak[MB/sec]    BW average[MB/sec]   MsgRate[Mpps]\n");
  }
  std::fflush(stdout);
}

void P2pReport::add(const P2pRow& row) {
  if (!json_.is_stdout()) print(row);
  json_.write(object_of(row));
}

void P2pReport::print(const P2pRow& row) const {
  std::printf(" %-10llu %-11llu ", static_cast<unsigned long long>(row.bytes),
              static_cast<unsigned long long>(row.iterations));
  if (row.latency) {
    const Latency& l = *row.latency;
    std::printf("%14.2f %14.2f %16.2f %14.2f %16.2f %22.2f %24.2f\n", l.min, l.max, l.typical, l.average, l.deviation,
                l.p99, l.p99_9);
  }
  if (row.rates) {
    std::printf("%18.2f %21.2f %15.6f\n", mebibytes_per_second(row.rates->peak, row.bytes),
                mebibytes_per_second(row.rates->average, row.bytes), row.rates->average);
  }
  std::fflush(stdout);
}

// The figures under the names that perftest's own JSON has, the rest as in tutti-perf's.
nlohmann::ordered_json P2pReport::object_of(const P2pRow& row) const {
  nlohmann::ordered_json object;
  object["bytes"] = row.bytes;
  object["iterations"] = row.iterations;
  if (row.latency) {
    object["t_min"] = row.latency->min;
    object["t_max"] = row.latency->max;
    object["t_typical"] = row.latency->typical;
    object["t_avg"] = row.latency->average;
    object["t_stdev"] = row.latency->deviation;
    object["percentile_99"] = row.latency->p99;
    object["percentile_99.9"] = row.latency->p99_9;
    object["t_slowest"] = row.latency->slowest;
  }
  if (row.rates) {
    object["BW_peak"] = mebibytes_per_second(row.rates->peak, row.bytes);
    object["BW_average"] = mebibytes_per_second(row.rates->average, row.bytes);
    object["MsgRate"] = row.rates->average;
    object["tx_depth"] = row.depth;
  }
  object["checked"] = row.checked;
  object["wrong"] = row.wrong;
  object.update(common_);
  return object;
}

}  // namespace tutti::perf
