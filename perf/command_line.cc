#include "command_line.h"

#include <CLI/CLI.hpp>
#include <algorithm>
#include <limits>
#include <sstream>

namespace tutti::perf {
namespace {

uint64_t parse_number(const std::string& text) {
  if (text.empty() || text.find_first_not_of("0123456789") != std::string::npos)
    throw std::invalid_argument("'" + text + "' is no whole number of 0 or more");
  try {
    return std::stoull(text);
  } catch (const std::out_of_range&) {
    throw std::invalid_argument("'" + text + "' is too large: at most 2^64-1");
  }
}

}  // namespace

const char* memory_name(Memory memory) { return memory == Memory::window ? "window" : "malloc"; }

std::optional<Ending> read_command_line(CLI::App& app, int argc, const char* const* argv,
                                        const std::function<void()>& interpret) {
  try {
    app.parse(argc, argv);
    interpret();
    return std::nullopt;
  } catch (const CLI::ParseError& error) {
    std::ostringstream out;
    std::ostringstream err;
    const bool asked = app.exit(error, out, err) == 0;
    return Ending{asked ? out.str() : app.get_name() + ": " + err.str(), asked ? 0 : 2};
  } catch (const std::invalid_argument& error) {
    return Ending{app.get_name() + ": " + error.what() + "\n", 2};
  }
}

uint64_t parse_bytes(const std::string& text) {
  static const std::map<char, unsigned> kShifts = {{'K', 10}, {'M', 20}, {'G', 30}, {'k', 10}, {'m', 20}, {'g', 30}};
  const auto suffix = text.empty() ? kShifts.end() : kShifts.find(text.back());
  const unsigned shift = suffix == kShifts.end() ? 0 : suffix->second;
  const std::string digits = text.substr(0, text.size() - (shift > 0 ? 1 : 0));
  if (digits.empty() || digits.find_first_not_of("0123456789") != std::string::npos)
    throw std::invalid_argument("'" + text +
                                "' is no size: a whole number of bytes, or of K, M or G (64, 4K, 16M, 1G)");
  const uint64_t value = parse_number(digits);
  if (value > std::numeric_limits<uint64_t>::max() >> shift)
    throw std::invalid_argument("'" + text + "' is too large: at most 2^64-1 bytes");
  return value << shift;
}

uint64_t parse_size(const std::string& option, const std::string& text) {
  try {
    const uint64_t bytes = parse_bytes(text);
    if (bytes == 0) throw std::invalid_argument("0 bytes: at least 1");
    return bytes;
  } catch (const std::invalid_argument& error) {
    throw std::invalid_argument(option + ": " + error.what());
  }
}

uint64_t parse_at_least(const std::string& option, const std::string& text, uint64_t least) {
  try {
    const uint64_t value = parse_number(text);
    if (value < least) throw std::invalid_argument("'" + text + "' is too small: at least " + std::to_string(least));
    return value;
  } catch (const std::invalid_argument& error) {
    throw std::invalid_argument(option + ": " + error.what());
  }
}

uint64_t parse_calls(const std::string& option, const std::string& text, uint64_t least) {
  constexpr uint64_t kMost = 10'000'000;
  const uint64_t calls = parse_at_least(option, text, least);
  if (calls > kMost) throw std::invalid_argument(option + ": '" + text + "' is too large: at most 10000000");
  return calls;
}

void interpret_sizes(const std::optional<std::string>& min_text, const std::optional<std::string>& max_text,
                     uint64_t* min_bytes, uint64_t* max_bytes) {
  if (min_text) *min_bytes = parse_size("--min-bytes", *min_text);
  *max_bytes = max_text ? parse_size("--max-bytes", *max_text) : std::max(*max_bytes, *min_bytes);
  if (*max_bytes < *min_bytes)
    throw std::invalid_argument("--max-bytes: " + std::to_string(*max_bytes) + " is below --min-bytes " +
                                std::to_string(*min_bytes));
}

std::vector<uint64_t> sizes_of(uint64_t min_bytes, uint64_t max_bytes, uint64_t factor) {
  std::vector<uint64_t> sizes = {min_bytes};
  while (sizes.back() <= max_bytes / factor) sizes.push_back(sizes.back() * factor);
  if (sizes.back() != max_bytes) sizes.push_back(max_bytes);
  return sizes;
}

}  // namespace tutti::perf
