#include "src/base/config.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <cstdlib>
#include <limits>

namespace tutti::internal {
namespace {

enum class Type { rank, size, port, ports, number, seconds, flag, text, secret, level, word, words };

constexpr std::string_view kLevels[] = {"debug", "info", "warn", "error", "off"};
constexpr std::string_view kTransports[] = {"shm", "verbs", "ucx"};
constexpr std::string_view kConnects[] = {"store", "rdmacm"};
constexpr std::string_view kYes[] = {"1", "true", "yes", "on"};
constexpr std::string_view kNo[] = {"0", "false", "no", "off"};

// What an entry may be, where its type does not say it.
struct Allowed {
  int least = 0;  // of a number; of a time 0, or 1 where it must be above 0
  int most = 0;
  std::span<const std::string_view> words = {};  // of a level, a word, a list of words
};
constexpr Allowed kAboveZero{.least = 1};
constexpr Allowed from_to(int least, int most) { return {.least = least, .most = most}; }
constexpr Allowed one_of(std::span<const std::string_view> words) { return {.words = words}; }

struct Entry {
  std::string_view name;
  std::string_view fallback;  // another name in the environment, of a job manager
  Type type;
  std::string_view standard;  // the default
  std::string_view help;
  Allowed allowed = {};
};

constexpr Entry kTable[] = {
    {"RANK", "SLURM_PROCID", Type::rank, "", "this process's number in the world"},
    {"WORLD_SIZE", "SLURM_NTASKS", Type::size, "", "how many processes the world has"},
    {"LOCAL_RANK", "SLURM_LOCALID", Type::rank, "", "this process's number on its node"},
    {"MASTER_ADDR", "", Type::text, "", "name or address where the store is"},
    {"MASTER_PORT", "", Type::port, "", "port where the store is"},
    {"TORCHELASTIC_USE_AGENT_STORE", "", Type::flag, "", "set by torchrun: MASTER_PORT is its own, take one after it"},
    {"TUTTI_STORE_FILE", "", Type::text, "", "file by which the ranks find the store, instead of an address"},
    {"TUTTI_STORE_SERVED", "", Type::flag, "0", "set by tutti-run: the store runs already, rank 0 need not serve it"},
    {"TUTTI_SECRET", "", Type::secret, "",
     "what every process of the job must know; without it, and without TUTTI_STORE_FILE, loopback only"},
    {"TUTTI_INTERFACE", "", Type::text, "",
     "network interfaces to use, as in eth0,10.0.0.0/8 (exact names, networks); ^docker0: all but it"},
    {"TUTTI_PORT_RANGE", "", Type::ports, "",
     "ports on which tutti listens, as in 20000-20010; MASTER_PORT goes before"},
    {"TUTTI_TIMEOUT", "", Type::seconds, "1800", "how long one operation may take", kAboveZero},
    {"TUTTI_JOIN_TIMEOUT", "", Type::seconds, "300", "how long joining, and leaving, may take", kAboveZero},
    {"TUTTI_WARN_AFTER", "", Type::seconds, "60", "after which wait the log names the ranks that are missing"},
    {"TUTTI_CHECK", "", Type::flag, "0", "compare all ranks' calls before each collective"},
    {"TUTTI_ALGORITHM", "", Type::text, "", "algorithm by operation, as in all_reduce:ring,broadcast:chain"},
    {"TUTTI_TOPOLOGY_FILE", "", Type::text, "", "machine as a file of hwloc's, where this one does not show itself"},
    {"TUTTI_TRANSPORT", "", Type::words, "shm,verbs,ucx",
     "what may carry messages: between two ranks the first of shm, verbs and ucx that can and may",
     one_of(kTransports)},
    {"TUTTI_IB_DEVICES", "", Type::text, "",
     "RDMA devices to use, as in mlx5_0,mlx5_1:1 (device:port); ^mlx5_2: all but it"},
    {"TUTTI_IB_GID_INDEX", "", Type::number, "-1",
     "index of the address (GID) that each RDMA port uses; -1: the one that fits the peer", from_to(-1, 255)},
    {"TUTTI_IB_TRAFFIC_CLASS", "", Type::number, "0", "traffic class of RoCE packets: DSCP times 4", from_to(0, 255)},
    {"TUTTI_IB_SERVICE_LEVEL", "", Type::number, "0", "service level of RDMA connections", from_to(0, 15)},
    {"TUTTI_IB_TIMEOUT", "", Type::number, "18", "a lost packet is sent again after 4.096 us * 2^this", from_to(1, 31)},
    {"TUTTI_IB_RETRY_COUNT", "", Type::number, "7",
     "how often a lost packet is sent again before its peer counts as gone", from_to(0, 7)},
    {"TUTTI_IB_RNR_RETRY", "", Type::number, "7",
     "how often a message is offered to a peer that has no buffer for it; 7: for ever", from_to(0, 7)},
    {"TUTTI_IB_CONNECT", "", Type::word, "store",
     "how RDMA connections are made: by addresses in the store, or by rdmacm", one_of(kConnects)},
    {"TUTTI_LOG", "", Type::level, "warn", "what is logged: debug, info, warn, error or off", one_of(kLevels)},
};

std::string_view type_name(Type type) {
  switch (type) {
    case Type::rank:
    case Type::size:
    case Type::port:
    case Type::number: return "integer";
    case Type::seconds: return "seconds";
    case Type::flag: return "bool";
    case Type::ports:
    case Type::text:
    case Type::secret:
    case Type::word:
    case Type::words: return "text";
    case Type::level: return "level";
  }
  return "?";
}

std::string lower(std::string_view text) {
  std::string result(text);
  std::ranges::transform(result, result.begin(), [](char c) { return 'A' <= c && c <= 'Z' ? char(c - 'A' + 'a') : c; });
  return result;
}

bool is_one_of(std::string_view text, std::span<const std::string_view> list) {
  return std::ranges::find(list, text) != list.end();
}

std::optional<int> parse_int(std::string_view text) {
  int value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return value;
}

struct Range {
  int first = 0;
  int last = 0;
};

// "20000-20010", or one port.
std::optional<Range> parse_ports(std::string_view text) {
  const size_t dash = text.find('-');
  const auto first = parse_int(text.substr(0, dash));
  const auto last = dash == std::string_view::npos ? first : parse_int(text.substr(dash + 1));
  if (!first || !last || *first < 1 || *last < *first || *last > 65535) return std::nullopt;
  return Range{*first, *last};
}

// "store or rdmacm", "auto, shm, verbs or ucx".
std::string listed(std::span<const std::string_view> words) {
  return fmt::format("{} or {}", fmt::join(words.first(words.size() - 1), ", "), words.back());
}

std::vector<std::string_view> parts_of(std::string_view list) {
  std::vector<std::string_view> parts;
  for (size_t begin = 0; begin <= list.size();) {
    const size_t end = std::min(list.find(',', begin), list.size());
    parts.push_back(list.substr(begin, end - begin));
    begin = end + 1;
  }
  return parts;
}

// What is allowed, where `text` is not; "" where it is.
std::string allowed_instead(const Entry& entry, std::string_view text) {
  const auto within = [&](int least, int most) {
    const auto value = parse_int(text);
    return value && *value >= least && *value <= most ? std::string()
                                                      : fmt::format("a whole number from {} to {}", least, most);
  };
  constexpr int kMost = std::numeric_limits<int>::max();
  switch (entry.type) {
    case Type::rank: return within(0, kMost - 1);
    case Type::size: return within(1, kMost);
    case Type::port: return within(1, 65535);
    case Type::ports: return parse_ports(text) ? "" : "two ports from 1 to 65535, the smaller first, as in 20000-20010";
    case Type::number: return within(entry.allowed.least, entry.allowed.most);
    case Type::seconds:
      return parse_seconds(text).value_or(-1) >= entry.allowed.least
                 ? ""
                 : fmt::format("a number of seconds {}, as in 1.5, or none",
                               entry.allowed.least > 0 ? "above 0" : "from 0 on");
    case Type::level:
    case Type::word: return is_one_of(lower(text), entry.allowed.words) ? "" : listed(entry.allowed.words);
    case Type::words: {
      const std::string list = lower(text);
      const bool all_known = std::ranges::all_of(
          parts_of(list), [&](std::string_view part) { return is_one_of(part, entry.allowed.words); });
      return all_known ? "" : fmt::format("some of {}, with commas", listed(entry.allowed.words));
    }
    case Type::flag: {
      const std::string word = lower(text);
      return word.empty() || is_one_of(word, kYes) || is_one_of(word, kNo) ? "" : "1 or 0, true or false, yes or no";
    }
    default: return "";
  }
}

// How many letters must be put in, taken out or changed to make b of a.
size_t edit_distance(std::string_view a, std::string_view b) {
  std::vector<size_t> row(b.size() + 1);
  for (size_t j = 0; j <= b.size(); ++j) row[j] = j;
  for (size_t i = 1; i <= a.size(); ++i) {
    size_t diagonal = row[0];
    row[0] = i;
    for (size_t j = 1; j <= b.size(); ++j) {
      const size_t change = diagonal + (a[i - 1] != b[j - 1]);
      diagonal = row[j];
      row[j] = std::min({row[j] + 1, row[j - 1] + 1, change});
    }
  }
  return row.back();
}

const Entry* entry_named(std::string_view name) {
  const auto* found = std::ranges::find(kTable, name, &Entry::name);
  return found == std::end(kTable) ? nullptr : found;
}

std::string unknown_name(std::string_view name) {
  const auto* nearest =
      std::ranges::min_element(kTable, {}, [&](const Entry& entry) { return edit_distance(name, entry.name); });
  const bool is_near = edit_distance(name, nearest->name) <= name.size() / 3;
  return fmt::format("{} means nothing to tutti{}", name,
                     is_near ? fmt::format("; the nearest name is {}", nearest->name) : "");
}

std::string_view name_of(std::string_view assignment) { return assignment.substr(0, assignment.find('=')); }

// Each setting is NAME=value with a known name. A message shows no value: it may be the secret, misspelt.
Status check_form(std::span<const std::string> settings) {
  for (const std::string& setting : settings) {
    const std::string_view name = name_of(setting);
    if (!entry_named(name)) return Status(Code::invalid_argument, fmt::format("setting: {}", unknown_name(name)));
    if (name.size() == setting.size())
      return Status(Code::invalid_argument, fmt::format("setting '{}' has no value: it must be {}=value", name, name));
  }
  return Status();
}

}  // namespace

bool is_in_environment(const std::string& name) { return std::getenv(name.c_str()) != nullptr; }

std::optional<int64_t> parse_seconds(std::string_view text) {
  constexpr int64_t kNever = std::numeric_limits<int64_t>::max();
  if (text == "none") return kNever;
  double seconds = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), seconds, std::chars_format::fixed);
  if (end != text.data() + text.size() || text.empty() || text[0] == '-') return std::nullopt;
  // Out of a double's range: too large, or a fraction too small.
  if (error == std::errc::result_out_of_range)
    return text.substr(0, text.find('.')).find_first_not_of('0') == std::string_view::npos ? 0 : kNever;
  if (error != std::errc() || std::isnan(seconds)) return std::nullopt;
  return seconds >= static_cast<double>(kNever) * 1e-6 ? kNever : static_cast<int64_t>(std::llround(seconds * 1e6));
}

Config::Value Config::find_value(size_t index, std::span<const std::string> settings) {
  const Entry& entry = kTable[index];
  for (size_t i = settings.size(); i-- > 0;)  // the last one counts
    if (name_of(settings[i]) == entry.name) return {settings[i].substr(entry.name.size() + 1), "setting"};
  for (std::string_view name : {entry.name, entry.fallback}) {
    const char* found = name.empty() ? nullptr : std::getenv(std::string(name).c_str());
    // An empty variable is as good as none, but a number that somebody tried to set must not be passed over.
    if (!found || (*found == '\0' && entry.type != Type::size && entry.type != Type::rank)) continue;
    return {found, name == entry.name ? "environment" : fmt::format("environment {}", name)};
  }
  return {std::string(entry.standard), "default"};
}

Result<Config> Config::load(std::span<const std::string> settings) {
  TUTTI_RETURN_IF_ERROR(check_form(settings));
  Config config;
  for (size_t i = 0; i < std::size(kTable); ++i) {
    const Entry& entry = kTable[i];
    Value value = find_value(i, settings);
    const std::string allowed = value.source == "default" ? "" : allowed_instead(entry, value.text);
    if (!allowed.empty())
      return Status(Code::invalid_argument,
                    fmt::format("{} ({}) is '{}': it must be {}", entry.name, value.source, value.text, allowed));
    if (!entry.allowed.words.empty()) value.text = lower(value.text);
    config.values_.push_back(std::move(value));
  }
  for (char** variable = environ; variable && *variable; ++variable) {
    const std::string_view name = name_of(*variable);
    if (name.starts_with("TUTTI_") && !entry_named(name) && !name.starts_with("TUTTI_TEST_"))
      config.warnings_.push_back(unknown_name(name));
  }
  config.check_ = config.flag("TUTTI_CHECK");
  return config;
}

std::vector<uint16_t> Config::ports() const {
  std::vector<uint16_t> ports;
  if (const auto range = parse_ports(text("TUTTI_PORT_RANGE")))
    for (int port = range->first; port <= range->last; ++port) ports.push_back(static_cast<uint16_t>(port));
  return ports;
}

std::vector<Config::Row> Config::rows() const {
  std::vector<Row> rows;
  for (size_t i = 0; i < values_.size(); ++i) {
    const Entry& entry = kTable[i];
    const bool hidden = entry.type == Type::secret && !values_[i].text.empty();
    rows.push_back({std::string(entry.name), std::string(type_name(entry.type)), hidden ? "set" : values_[i].text,
                    values_[i].source, std::string(entry.help)});
  }
  return rows;
}

std::string Config::text(std::string_view name) const {
  return values_[static_cast<size_t>(entry_named(name) - kTable)].text;
}

bool Config::lists(std::string_view name, std::string_view word) const {
  const std::string list = text(name);
  return std::ranges::count(parts_of(list), word) > 0;
}

std::optional<int> Config::integer(std::string_view name) const { return parse_int(text(name)); }
int64_t Config::microseconds(std::string_view name) const { return parse_seconds(text(name)).value_or(0); }
bool Config::flag(std::string_view name) const { return is_one_of(lower(text(name)), kYes); }

}  // namespace tutti::internal
