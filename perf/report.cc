#include "report.h"

#include <unistd.h>

#include <array>
#include <cstdio>

namespace tutti::perf {
namespace {

template <class Value>
nlohmann::ordered_json or_null(const std::optional<Value>& value) {
  return value ? nlohmann::ordered_json(*value) : nlohmann::ordered_json(nullptr);
}

std::string bandwidth(const std::optional<double>& value) {
  if (!value) return "n/a";
  std::array<char, 32> text{};
  std::snprintf(text.data(), text.size(), "%.3f", *value);
  return text.data();
}

}  // namespace

Report::Report(const Options& options, int size, const nlohmann::json& world)
    : options_(options), size_(size), json_(options.json), has_terminal_(isatty(STDERR_FILENO) != 0) {
  common_["operation"] = options.operation->name;
  common_.update(origin_of(world, size));
  common_["memory"] = memory_name(options.memory);
  common_["in_place"] = options.in_place;
  common_["async"] = options.async;
}

void Report::begin() {
  if (json_.is_stdout()) return;
  std::printf("# tutti %s: %s on %d %s, transport %s, host %s, %s memory%s%s\n", tutti_version(),
              options_.operation->name, size_, size_ == 1 ? "rank" : "ranks",
              common_["transport"].get<std::string>().c_str(), common_["host"].get<std::string>().c_str(),
              memory_name(options_.memory), options_.in_place ? ", in place" : "",
              options_.async ? ", asynchronous" : "");
  print_shared_cores(common_);
  std::printf("# us of the slowest rank, each call after a barrier; GB/s at the median\n");
  std::printf("%12s %12s %9s %8s %5s %-20s %10s %10s %10s %9s %9s %7s\n", "bytes", "count", "type", "op", "root",
              "algorithm", "min", "p50", "p99", "algbw", "busbw", "wrong");
  std::fflush(stdout);
}

void Report::progress(size_t done, size_t sizes, uint64_t bytes) {
  if (!has_terminal_) return;
  std::fprintf(stderr, "\r\033[K%zu of %zu sizes done, measuring %llu bytes", done, sizes,
               static_cast<unsigned long long>(bytes));
  std::fflush(stderr);
  shows_progress_ = true;
}

void Report::clear_progress() {
  if (shows_progress_) std::fputs("\r\033[K", stderr);
  shows_progress_ = false;
}

void Report::add(const Row& row) {
  clear_progress();
  if (!json_.is_stdout()) print(row);
  write(row);
}

void Report::print(const Row& row) {
  std::printf("%12llu %12llu %9s %8s %5s %-20s %10.2f %10.2f %10.2f %9s %9s %7s\n",
              static_cast<unsigned long long>(row.bytes), static_cast<unsigned long long>(row.count), row.type.c_str(),
              row.op.c_str(), row.root ? std::to_string(*row.root).c_str() : "-", row.algorithm.c_str(), row.min_us,
              row.p50_us, row.p99_us, bandwidth(row.algbw).c_str(), bandwidth(row.busbw).c_str(),
              row.wrong ? std::to_string(*row.wrong).c_str() : "-");
  std::fflush(stdout);
}

void Report::write(const Row& row) {
  nlohmann::ordered_json object;
  object["bytes"] = row.bytes;
  object["count"] = row.count;
  object["type"] = row.type;
  object["op"] = row.op;
  object["root"] = or_null(row.root);
  object["algorithm"] = row.algorithm;
  object["min"] = row.min_us;
  object["p50"] = row.p50_us;
  object["p99"] = row.p99_us;
  object["algbw"] = or_null(row.algbw);
  object["busbw"] = or_null(row.busbw);
  object["wrong"] = or_null(row.wrong);
  object["iterations"] = row.iterations;
  object["loop"] = row.loop_us;
  object.update(common_);
  json_.write(object);
}

}  // namespace tutti::perf
