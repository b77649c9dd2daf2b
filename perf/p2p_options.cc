#include "p2p_options.h"

#include <tutti/tutti.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <array>

#include "p2p_statistics.h"

namespace tutti::perf {
namespace {

constexpr uint64_t kLatencyMessages = 1000;
constexpr uint64_t kBandwidthMessages = 5000;
constexpr uint64_t kFullNumberBytes = 64 << 10;
constexpr uint64_t kFewestOfLarge = 100;
constexpr uint64_t kDepth = 16;
constexpr uint64_t kDepthBytes = 32 << 20;
constexpr uint64_t kMostDepth = 4096;

constexpr std::array<TestKind, 4> kTests = {{
    {Test::write_lat, "write_lat", "ib_write_lat", true,
     "a message goes, and one of the same size comes back; each rank posts its receive\n"
     "before the message can come, so that a long one is written where it belongs at once"},
    {Test::send_lat, "send_lat", "ib_send_lat", true,
     "the same with blocking tutti_send and tutti_recv: the receive is posted when needed"},
    {Test::write_bw, "write_bw", "ib_write_bw", false, "rank 0 keeps --tx-depth messages under way to rank 1"},
    {Test::bidirectional_bw, "bidirectional_bw", "ib_write_bw -b", false,
     "both ranks do; the figures are the sums of both directions, -n is of one"},
}};

std::map<std::string, const TestKind*> test_names() {
  std::map<std::string, const TestKind*> names;
  for (const TestKind& kind : kTests) names[kind.name] = &kind;
  return names;
}

std::string footer() {
  std::string text = "The tests, each with the command of perftest whose table it is put beside:\n";
  for (const TestKind& kind : kTests) {
    std::string head = std::string("  ") + kind.name;
    head.resize(20, ' ');
    std::string beside = kind.beside;
    beside.resize(16, ' ');
    text += head + beside;
    for (const char* c = kind.does; *c != '\0'; ++c)
      text += *c == '\n' ? "\n" + std::string(36, ' ') : std::string(1, *c);
    text += "\n";
  }
  return text +
         "Columns and meanings are perftest's. Latencies are microseconds one way, half of a round trip; as there, -n\n"
         "pings give n-1 samples, the two slowest are left out of t_typical, t_avg and t_stdev, and t_max is the "
         "second\n"
         "slowest (the slowest is t_slowest in JSON). MB are 2^20 bytes (newer perftests write MiB), Mpps 10^6 "
         "messages\n"
         "a second. BW average is from the first post until the receiver has everything and has said so; BW peak is "
         "the\n"
         "best run of messages at the receiver. Sizes take K, M and G (powers of 1024).\n"
         "Checked, never in the measured time: before it and after it, 2 to 32 messages of a size in each direction,\n"
         "each with random bytes of its own, every byte of each; and every byte of what the last measured messages\n"
         "left, at most --tx-depth of them. A wrong byte is said, and makes the exit status 1.\n"
         "Start it on two ranks: tutti-run -n 2 tutti-p2p --test write_lat";
}

struct Raw {
  std::optional<std::string> test, min_bytes, max_bytes, factor, iterations, warmup, tx_depth;
  bool window = false;
  bool malloc = false;
};

void add_options(CLI::App& app, Raw& raw, P2pOptions& options) {
  app.add_option("--test", raw.test, "what to measure: " + keys(test_names()));
  app.add_option("-b,--min-bytes", raw.min_bytes, "smallest message (default 2)");
  app.add_option("-e,--max-bytes", raw.max_bytes, "largest message (default 8M, or the smallest where that is larger)");
  app.add_option("-f,--factor", raw.factor,
                 "each size is the one before times this, 2 or more (default 2); the largest is always measured");
  app.add_option("-n,--iters", raw.iterations,
                 "messages a size, 5 or more (default 1000 for latency, 5000 for bandwidth; above 64K as many as come "
                 "to the bytes of so many of 64K, 100 at least)");
  app.add_option("-w,--warmup", raw.warmup, "messages before them (default: a tenth of them, 2 to 100)");
  app.add_option("-t,--tx-depth", raw.tx_depth,
                 "messages under way at once, for bandwidth (default 16, or as many as come to 32M, 2 at least)");
  auto* window = app.add_flag("--window", raw.window, "memory from tutti_alloc (the default)");
  app.add_flag("--malloc", raw.malloc, "memory from malloc")->excludes(window);
  app.add_option("--json", options.json,
                 "write each row into FILE too, as one JSON object a line; -: onto stdout, in place of the table")
      ->type_name("FILE");
  app.add_option("--flip-bit", options.flip_rank)->group("");
  app.set_version_flag("--version", std::string("tutti-p2p ") + tutti_version());
  app.footer(footer());
}

void interpret(const Raw& raw, P2pOptions& options) {
  if (!raw.test) throw std::invalid_argument("--test: none was given: one of " + keys(test_names()));
  options.kind = lookup("--test", *raw.test, test_names());
  interpret_sizes(raw.min_bytes, raw.max_bytes, &options.min_bytes, &options.max_bytes);
  if (raw.factor) options.factor = parse_at_least("--factor", *raw.factor, 2);
  if (raw.iterations) options.iterations = parse_calls("--iters", *raw.iterations, kFewestMessages);
  if (raw.warmup) options.warmup = parse_calls("--warmup", *raw.warmup, 0);
  if (raw.tx_depth) {
    if (options.kind->measures_latency)
      throw std::invalid_argument("--tx-depth: " + *raw.test +
                                  " has one message under way; it is for write_bw and "
                                  "bidirectional_bw");
    options.tx_depth = parse_at_least("--tx-depth", *raw.tx_depth, 1);
    if (*options.tx_depth > kMostDepth)
      throw std::invalid_argument("--tx-depth: '" + *raw.tx_depth + "' is too large: at most " +
                                  std::to_string(kMostDepth));
  }
  options.memory = raw.malloc ? Memory::malloc : Memory::window;
}

}  // namespace

std::span<const TestKind> tests() { return kTests; }

P2pParsed parse_p2p(int argc, const char* const* argv) {
  CLI::App app("Measures messages between two ranks of tutti, to be put beside perftest's figures.", "tutti-p2p");
  Raw raw;
  P2pOptions options;
  add_options(app, raw, options);
  const auto ending = read_command_line(app, argc, argv, [&] { interpret(raw, options); });
  if (ending) return {std::nullopt, ending->text, ending->status};
  return {options, "", 0};
}

std::string check_p2p_world(int size) {
  if (size == 2) return "";
  return "two ranks are measured, and this world has " + std::to_string(size) + ": tutti-run -n 2 tutti-p2p ...";
}

uint64_t messages_for(const P2pOptions& options, uint64_t bytes) {
  if (options.iterations) return *options.iterations;
  const uint64_t full = options.kind->measures_latency ? kLatencyMessages : kBandwidthMessages;
  return bytes <= kFullNumberBytes ? full : std::max(full * kFullNumberBytes / bytes, kFewestOfLarge);
}

uint64_t warmup_for(const P2pOptions& options, uint64_t messages) {
  return options.warmup.value_or(std::clamp<uint64_t>(messages / 10, 2, 100));
}

uint64_t depth_for(const P2pOptions& options, uint64_t bytes) {
  return options.tx_depth.value_or(std::clamp<uint64_t>(kDepthBytes / bytes, 2, kDepth));
}

}  // namespace tutti::perf
