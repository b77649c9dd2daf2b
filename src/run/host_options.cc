#include "src/run/host_options.h"

#include <fmt/core.h>

#include <charconv>

#include "src/base/config.h"
#include "src/run/words.h"

namespace tutti::internal {
namespace {

std::string check_port(const std::string& text) {
  int port = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), port);
  if (error == std::errc() && end == text.data() + text.size() && port >= 1 && port <= 65535) return "";
  return fmt::format("'{}' is no port: it must be a whole number from 1 to 65535", text);
}

std::string check_host_timeout(const std::string& text) {
  const auto us = parse_seconds(text);
  return us && *us > 0 && *us != Deadline::kNever ? ""
                                                  : fmt::format("'{}' is no time: it must be seconds above 0", text);
}

}  // namespace

void add_host_options(CLI::App& app, HostOptions& given, RunOptions& options) {
  constexpr const char* kGroup = "On several hosts";
  app.add_option("--hosts", given.hosts,
                 "Where ranks run, and how many on each (1 where it is not said). An IPv6 address stands in [ ]. The\n"
                 "first ranks are on the first host; -n takes fewer than all. localhost, this host's own name and its\n"
                 "addresses are this machine, without ssh")
      ->type_name("HOST:N,...")
      ->group(kGroup);
  app.add_option("--hostfile", given.hostfile,
                 "The same from a file, a line for each host: 'host', 'host:4' or 'host slots=4'; # begins a comment")
      ->type_name("FILE")
      ->excludes("--hosts")
      ->group(kGroup);
  app.add_option("--ssh", given.ssh,
                 "What starts a command on a host, with its options, as in 'ssh -i key'; default ssh. It must not ask\n"
                 "for a password: -o BatchMode=yes is added")
      ->type_name("COMMAND")
      ->group(kGroup);
  app.add_option("--ssh-port", options.ssh_port, "Where the hosts' ssh servers listen; default: as ssh is configured")
      ->type_name("PORT")
      ->check(check_port)
      ->group(kGroup);
  app.add_option("--remote-path", options.remote_path, "Where tutti-run is on the other hosts; default: as here")
      ->type_name("PATH")
      ->group(kGroup);
  app.add_option("--host-timeout", given.host_timeout,
                 "A host that says nothing for so long is lost, and the job ends; default 30")
      ->type_name("SECONDS")
      ->check(check_host_timeout)
      ->group(kGroup);
}

Status take_host_options(const CLI::App& app, const HostOptions& given, RunOptions& options) {
  if (given.hosts || given.hostfile) {
    auto hosts = given.hosts ? parse_hosts(*given.hosts) : read_hostfile(*given.hostfile);
    if (!hosts)
      return Status(Code::invalid_argument,
                    fmt::format("{}: {}", given.hosts ? "--hosts" : "--hostfile", hosts.status().message()));
    options.hosts = std::move(*hosts);
    const int slots = count_slots(options.hosts);
    if (options.ranks > slots)
      return Status(Code::invalid_argument,
                    fmt::format("-n {}: the hosts have {} ranks together", options.ranks, slots));
    if (options.ranks == 0) options.ranks = slots;
  } else {
    for (const char* option : {"--ssh", "--ssh-port", "--remote-path", "--host-timeout"})
      if (app.count(option) > 0)
        return Status(Code::invalid_argument, fmt::format("{} is of no use without --hosts or --hostfile", option));
  }
  if (options.ranks == 0) return Status(Code::invalid_argument, "how many ranks? -n, --hosts or --hostfile says it");
  auto ssh = split_words(given.ssh);
  if (!ssh || ssh->empty())
    return Status(Code::invalid_argument, fmt::format("--ssh: {}", ssh ? "no command" : ssh.status().message()));
  options.ssh = std::move(*ssh);
  options.host_timeout_us = *parse_seconds(given.host_timeout);
  return Status();
}

}  // namespace tutti::internal
