#include "src/run/hosts.h"

#include <fmt/core.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <climits>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <sstream>

#include "src/core/store/host_port.h"
#include "src/core/store/socket.h"
#include "src/run/options.h"

namespace tutti::internal {
namespace {

Status bad(std::string_view text, std::string_view why) {
  return Status(Code::invalid_argument, fmt::format("'{}' {}", text, why));
}

Result<int> parse_slots(std::string_view text) {
  int slots = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), slots);
  if (error == std::errc() && end == text.data() + text.size() && slots >= 1 && slots <= RunOptions::kMostRanks)
    return slots;
  return bad(text,
             fmt::format("is no number of ranks: it must be a whole number from 1 to {}", RunOptions::kMostRanks));
}

// "host", "host:4", "user@[fd00::1]:4".
Result<HostSlots> parse_host_slots(std::string_view text) {
  HostSlots result;
  const size_t at = text.rfind('@');
  const std::string_view user = at == std::string_view::npos ? "" : text.substr(0, at + 1);
  std::string_view host = text.substr(user.size());
  const size_t bracket = host.rfind(']'), colon = host.rfind(':');
  if (bracket == std::string_view::npos && std::ranges::count(host, ':') > 1)
    return bad(text, "names no host: an IPv6 address must stand in [ ]");
  if (colon != std::string_view::npos && (bracket == std::string_view::npos || colon > bracket)) {
    auto slots = parse_slots(host.substr(colon + 1));
    TUTTI_RETURN_IF_ERROR(slots.status());
    result.slots = *slots;
    host = host.substr(0, colon);
  }
  auto parsed = parse_host(host);
  // ssh would take it for an option.
  if (!parsed || user.starts_with('@') || text.starts_with('-') || parsed->starts_with('-'))
    return bad(text, "names no host: it must be a name, an IPv4 address, or an IPv6 address in [ ]");
  result.host = std::string(user) + *parsed;
  return result;
}

void add(std::vector<HostSlots>& hosts, HostSlots next) {
  const auto known = std::ranges::find(hosts, next.host, &HostSlots::host);
  if (known == hosts.end())
    hosts.push_back(std::move(next));
  else
    known->slots += next.slots;
}

Status check_count(const std::vector<HostSlots>& hosts) {
  if (hosts.empty()) return Status(Code::invalid_argument, "no host is named");
  if (count_slots(hosts) <= RunOptions::kMostRanks) return Status();
  return Status(Code::invalid_argument, fmt::format("the hosts have {} ranks together: allowed are up to {}",
                                                    count_slots(hosts), RunOptions::kMostRanks));
}

// A line without its comment and the blanks around it, as words.
std::vector<std::string> words_of(const std::string& line) {
  std::istringstream stream(line.substr(0, line.find('#')));
  std::vector<std::string> words;
  for (std::string word; stream >> word;) words.push_back(word);
  return words;
}

Result<HostSlots> parse_line(const std::vector<std::string>& words) {
  constexpr std::string_view kSlots = "slots=";
  auto host = parse_host_slots(words[0]);
  if (!host || words.size() == 1) return host;
  const size_t known = words[1].starts_with(kSlots) ? 2 : 1;
  if (words.size() > known) return bad(words[known], "is nothing that may follow a host");
  if (words[0].ends_with(fmt::format(":{}", host->slots))) return bad(words[0], "gives its number of ranks already");
  auto slots = parse_slots(std::string_view(words[1]).substr(kSlots.size()));
  TUTTI_RETURN_IF_ERROR(slots.status());
  host->slots = *slots;
  return host;
}

}  // namespace

Result<std::vector<HostSlots>> parse_hosts(std::string_view text) {
  std::vector<HostSlots> hosts;
  while (true) {
    const size_t comma = text.find(',');
    auto next = parse_host_slots(text.substr(0, comma));
    TUTTI_RETURN_IF_ERROR(next.status());
    add(hosts, std::move(*next));
    if (comma == std::string_view::npos) break;
    text = text.substr(comma + 1);
  }
  TUTTI_RETURN_IF_ERROR(check_count(hosts));
  return hosts;
}

Result<std::vector<HostSlots>> read_hostfile(const std::string& path) {
  std::error_code error;  // what else is wrong, opening it tells
  if (std::filesystem::is_directory(path, error))
    return Status(Code::invalid_argument, fmt::format("'{}' is a directory", path));
  std::ifstream file(path);
  std::ostringstream text;
  if (file) text << file.rdbuf();
  if (!file || file.bad())
    return Status(Code::invalid_argument, fmt::format("cannot read '{}': {}", path, std::strerror(errno)));
  return parse_hostfile(path, text.str());
}

Result<std::vector<HostSlots>> parse_hostfile(const std::string& path, std::string_view text) {
  std::vector<HostSlots> hosts;
  std::istringstream lines{std::string(text)};
  int number = 0;
  for (std::string line; std::getline(lines, line);) {
    ++number;
    const std::vector<std::string> words = words_of(line);
    if (words.empty()) continue;
    auto next = parse_line(words);
    if (!next)
      return Status(Code::invalid_argument,
                    fmt::format("{}, line {}: {}; a line is 'host', 'host:4' or 'host slots=4', and # begins a comment",
                                path, number, next.status().message()));
    add(hosts, std::move(*next));
  }
  if (const Status status = check_count(hosts); !status.ok())
    return Status(status.code(), fmt::format("{}: {}", path, status.message()));
  return hosts;
}

std::vector<HostSlots> deal(const std::vector<HostSlots>& hosts, int rank_count) {
  std::vector<HostSlots> dealt;
  for (const HostSlots& host : hosts) {
    const int count = std::min(host.slots, rank_count);
    if (count > 0) dealt.push_back({host.host, count});
    rank_count -= count;
  }
  return dealt;
}

int count_slots(const std::vector<HostSlots>& hosts) {
  int sum = 0;
  for (const HostSlots& host : hosts) sum += host.slots;
  return sum;
}

bool is_this_host(const std::string& host) {
  char own[HOST_NAME_MAX + 1] = "";
  if (host == "localhost" || (gethostname(own, sizeof own) == 0 && host == own)) return true;
  const Address address = numeric_address(host, 0);
  return address.length > 0 && is_own_address(address);
}

}  // namespace tutti::internal
