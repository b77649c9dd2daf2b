// What every program here does with its command line: words become values, and what cannot be meant becomes a text that
// says what is wrong and what is allowed. The same words give the same answer on every rank.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <stdexcept>
#include <string>
#include <vector>

namespace CLI {
class App;
}

namespace tutti::perf {

enum class Memory { window, malloc };
const char* memory_name(Memory memory);

// Options, or the text to print and the status to exit with: help is 0, a usage error 2.
template <class Options>
struct ParsedAs {
  std::optional<Options> options;
  std::string text;
  int status = 0;
};

// Why a program goes no further than its command line.
struct Ending {
  std::string text;
  int status;
};
// Reads the words into what `app` binds them to, then calls `interpret`, which throws std::invalid_argument for a value
// that cannot be meant. None: go on.
std::optional<Ending> read_command_line(CLI::App& app, int argc, const char* const* argv,
                                        const std::function<void()>& interpret);

// "64", "4K", "16M", "1G" (powers of 1024). The parse functions throw std::invalid_argument saying what is wrong; those
// that take an option begin with it.
uint64_t parse_bytes(const std::string& text);
// The same, 1 or more.
uint64_t parse_size(const std::string& option, const std::string& text);
uint64_t parse_at_least(const std::string& option, const std::string& text, uint64_t least);
// A number of calls: at most 10 million, since each call's time is kept.
uint64_t parse_calls(const std::string& option, const std::string& text, uint64_t least);

// --min-bytes and --max-bytes where they were typed. A smallest size above the largest moves a largest that was not.
void interpret_sizes(const std::optional<std::string>& min_text, const std::optional<std::string>& max_text,
                     uint64_t* min_bytes, uint64_t* max_bytes);
// `min`, times `factor` each, up to `max`, which is always the last.
std::vector<uint64_t> sizes_of(uint64_t min_bytes, uint64_t max_bytes, uint64_t factor);

template <class Value>
std::string keys(const std::map<std::string, Value>& names) {
  std::string list;
  for (const auto& [name, value] : names) list += (list.empty() ? "" : ", ") + name;
  return list;
}

// The value that `names` has for `text`.
template <class Value>
Value lookup(const std::string& option, const std::string& text, const std::map<std::string, Value>& names) {
  const auto found = names.find(text);
  if (found == names.end()) throw std::invalid_argument(option + ": '" + text + "' is none of " + keys(names));
  return found->second;
}

}  // namespace tutti::perf
