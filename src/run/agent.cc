#include "src/run/agent.h"

#include <fcntl.h>
#include <fmt/core.h>
#include <unistd.h>

#include <cerrno>
#include <utility>

#include "src/base/config.h"
#include "src/core/store/interfaces.h"
#include "src/core/store/reach.h"
#include "src/core/store/rendezvous.h"
#include "src/run/options.h"
#include "src/run/say.h"
#include "src/run/supervisor.h"
#include "src/run/uplink.h"

namespace tutti::internal {
namespace {

// Messages alone go to what was standard output.
Result<UniqueFd> take_standard_output() {
  UniqueFd out(fcntl(STDOUT_FILENO, F_DUPFD_CLOEXEC, STDERR_FILENO + 1));
  const UniqueFd null(open("/dev/null", O_WRONLY | O_CLOEXEC));
  if (!out || !null || dup2(null.get(), STDOUT_FILENO) < 0)
    return Status::system(Code::out_of_resources, "dup of standard output", errno);
  return out;
}

// As a rank here would.
Status reach(const Address& address, const Credentials& credentials, const InterfaceChoice& choice, Deadline limit) {
  if (is_reached_by(choice, address)) return knock(address, credentials, limit);
  return Status(Code::unsupported,
                fmt::format("no interface of TUTTI_INTERFACE={} leads to {}", choice.text(), address.host()));
}

// Tries each address of the store's machine, which may have some that lead nowhere from here, or to this host itself,
// as that of a bridge for containers does.
Status find_store(AgentJob& job) {
  JobAddress& address = job.task.job;
  const auto port = static_cast<uint16_t>(address.port);
  const Deadline limit = Deadline::after_us(job.silence_us / 2);
  auto config = Config::load(settings_among(job.task.environment));
  TUTTI_RETURN_IF_ERROR(config.status());
  const auto choice = InterfaceChoice::parse(config->interfaces());
  TUTTI_RETURN_IF_ERROR(choice.status());
  std::string tried;
  for (const std::string& host : job.store_hosts) {
    const Status status = reach(numeric_address(host, port), {address.secret, port_label(port)}, choice.value(), limit);
    if (status.ok()) {
      address.host = host;
      return status;
    }
    tried += (tried.empty() ? "" : "; ") + status.message();
  }
  return Status(Code::unsupported, fmt::format("the store of tutti-run cannot be reached from here ({}); "
                                               "TUTTI_INTERFACE and TUTTI_PORT_RANGE choose where it listens",
                                               tried));
}

int run(AgentJob job, Uplink& uplink, const Inherited& inherited, UniqueFd front) {
  UniqueFd input;
  Status status = find_store(job);
  if (status.ok() && job.task.first_rank == 0) {
    auto reader = uplink.open_input();
    status = reader.status();
    if (reader) input = std::move(*reader);
  }
  if (status.ok()) return Supervisor(job.task, inherited, std::move(front), std::move(input), uplink).run();
  uplink.fail(kExitLauncher, status.message(), 0);
  return kExitLauncher;
}

}  // namespace

int run_agent(const Inherited& inherited, UniqueFd front, UniqueFd input) {
  auto out = take_standard_output();
  auto uplink = out ? Uplink::create(std::move(input), std::move(*out)) : out.status();
  auto job = uplink ? (*uplink)->await_job() : uplink.status();
  if (!job) {
    print_error(launcher_line(job.status().message()));
    return kExitLauncher;
  }
  const int exit_status = run(std::move(*job), **uplink, inherited, std::move(front));
  (*uplink)->finish();
  return exit_status;
}

}  // namespace tutti::internal
