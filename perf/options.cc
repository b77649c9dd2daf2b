#include "options.h"

#include <CLI/CLI.hpp>
#include <limits>
#include <map>
#include <sstream>
#include <stdexcept>
#include <vector>

namespace tutti::perf {
namespace {

std::map<std::string, tutti_type> type_names() {
  std::map<std::string, tutti_type> names;
  for (int type = TUTTI_INT8; type <= TUTTI_FLOAT64; ++type)
    names[tutti_type_name(static_cast<tutti_type>(type))] = static_cast<tutti_type>(type);
  return names;
}

std::map<std::string, tutti_op> op_names() {
  std::map<std::string, tutti_op> names;
  for (int op = TUTTI_SUM; op <= TUTTI_BIT_XOR; ++op)
    names[tutti_op_name(static_cast<tutti_op>(op))] = static_cast<tutti_op>(op);
  return names;
}

std::string operation_names() {
  std::string list;
  for (const Operation& operation : operations()) list += (list.empty() ? "" : ", ") + std::string(operation.name);
  return list;
}

std::string footer() {
  std::ostringstream text;
  text << "Bytes, as in nccl-tests, are what one rank holds of the longer buffer; count is the elements per rank that\n"
          "the call is given. Sizes take K, M and G (powers of 1024); each is rounded down to whole elements, but to\n"
          "no less than one per rank.\n";
  for (const Operation& operation : operations()) {
    std::string name = operation.name;
    name.resize(16, ' ');
    text << "  " << name << operation.bytes_are << "\n";
  }
  text << "Times are microseconds: each call comes after a barrier, a call takes as long as its slowest rank, and the\n"
          "columns are the minimum, the median and the 99th percentile over the calls. algbw is bytes per median; "
          "busbw\n"
          "is algbw times what the operation must move: 2(n-1)/n for all_reduce, (n-1)/n for scatter, gather,\n"
          "all_gather, reduce_scatter and all_to_all, 1 for the others; n/a with one rank. GB are 10^9 bytes.\n"
          "Start it by a launcher: tutti-run -n 4 tutti-perf all_reduce -c";
  return text.str();
}

// What is typed, before it means anything.
struct Raw {
  std::string operation;
  std::optional<std::string> min_bytes, max_bytes, factor, iterations, warmup, type, op, root, memory;
};

void add_options(CLI::App& app, Raw& raw, Options& options) {
  app.add_option("OP", raw.operation, "the operation: " + operation_names())->required();
  app.add_option("-b,--min-bytes", raw.min_bytes, "smallest size (default 8)");
  app.add_option("-e,--max-bytes", raw.max_bytes, "largest size (default 16M, or the smallest where that is larger)");
  app.add_option("-f,--factor", raw.factor,
                 "each size is the one before times this, 2 or more (default 2); the largest is always measured");
  app.add_option("-n,--iters", raw.iterations, "measured calls per size (default: what fits a third of a second)");
  app.add_option("-w,--warmup", raw.warmup, "calls before them (default: a tenth of them, 2 to 100)");
  app.add_option("-d,--type", raw.type, "element type (default float32): " + keys(type_names()));
  app.add_option("-o,--op", raw.op, "operator where the operation reduces (default sum): " + keys(op_names()));
  app.add_option("-r,--root", raw.root, "root where the operation has one (default 0)");
  app.add_flag("-c,--check", options.check, "check every element of several calls per size, exactly");
  app.add_flag("-i,--in-place", options.in_place, "input and output are the same memory");
  app.add_option("--memory", raw.memory, "window (from tutti_alloc) or malloc (default malloc)");
  app.add_flag("--async", options.async, "the asynchronous form, and the wait for it");
  app.add_option("--algorithm", options.algorithm, "force this algorithm (default: the library's choice)");
  app.add_option("--json", options.json,
                 "write each row into FILE too, as one JSON object a line; -: onto stdout, in place of the table")
      ->type_name("FILE");
  app.add_option("--flip-bit", options.flip_rank)->group("");
  app.set_version_flag("--version", std::string("tutti-perf ") + tutti_version());
  app.footer(footer());
}

// Throws std::invalid_argument for a value that cannot be meant.
void interpret(const Raw& raw, Options& options) {
  options.operation = find_operation(raw.operation);
  if (options.operation == nullptr)
    throw std::invalid_argument("OP: '" + raw.operation + "' is none of " + operation_names());
  interpret_sizes(raw.min_bytes, raw.max_bytes, &options.min_bytes, &options.max_bytes);
  if (raw.factor) options.factor = parse_at_least("--factor", *raw.factor, 2);
  if (raw.iterations) options.iterations = parse_calls("--iters", *raw.iterations, 1);
  if (raw.warmup) options.warmup = parse_calls("--warmup", *raw.warmup, 0);
  if (raw.type) options.type = lookup("--type", *raw.type, type_names());
  if (raw.op) options.op = lookup("--op", *raw.op, op_names());
  if (raw.root) {
    const uint64_t root = parse_at_least("--root", *raw.root, 0);
    options.root = root > std::numeric_limits<int>::max() ? std::numeric_limits<int>::max() : static_cast<int>(root);
  }
  if (raw.memory)
    options.memory = lookup<Memory>("--memory", *raw.memory, {{"window", Memory::window}, {"malloc", Memory::malloc}});
  if (options.operation->reduces && options.op >= TUTTI_BIT_AND && options.type >= TUTTI_FLOAT16)
    throw std::invalid_argument(std::string("--op: ") + tutti_op_name(options.op) + " is for integers, not for " +
                                tutti_type_name(options.type));
  if (options.in_place && options.operation->kind == Kind::send_recv)
    throw std::invalid_argument("--in-place: send_recv has two buffers, for what goes and for what comes");
}

}  // namespace

std::string check_world(const Options& options, int size) {
  if (options.operation->rooted && options.root >= size)
    return "--root: " + std::to_string(options.root) + " is no rank of this world of " + std::to_string(size) +
           " (0 to " + std::to_string(size - 1) + ")";
  if (options.operation->kind == Kind::send_recv && size < 2) return "send_recv needs two ranks or more, and finds one";
  return "";
}

Parsed parse(int argc, const char* const* argv) {
  CLI::App app("Measures one collective operation of tutti over a range of sizes.", "tutti-perf");
  Raw raw;
  Options options;
  add_options(app, raw, options);
  const auto ending = read_command_line(app, argc, argv, [&] { interpret(raw, options); });
  if (ending) return {std::nullopt, ending->text, ending->status};
  return {options, "", 0};
}

}  // namespace tutti::perf
