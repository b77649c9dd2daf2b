// The supervisor's work before the job runs: the store, the binding, and the ranks one after the other.
#include <fcntl.h>
#include <fmt/core.h>
#include <netinet/in.h>
#include <sys/resource.h>
#include <sys/socket.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <iterator>

#include "src/base/config.h"
#include "src/core/store/handshake.h"
#include "src/core/store/listener.h"
#include "src/core/store/rendezvous.h"
#include "src/run/say.h"
#include "src/run/signals.h"
#include "src/run/supervisor.h"

namespace tutti::internal {
namespace {

// What --env sets of tutti's own settings: it goes before our environment, as it does for the ranks.
std::vector<std::string> settings_among(const std::vector<std::string>& variables) {
  std::vector<std::string> settings;
  std::ranges::copy_if(variables, std::back_inserter(settings),
                       [](const std::string& variable) { return variable.starts_with("TUTTI_TOPOLOGY_FILE="); });
  return settings;
}

// The ranks meet at 127.0.0.1. In a fresh network namespace (unshare -n) that leads nowhere, and each of them would try
// until its time is over. Connecting a datagram socket asks for the way and sends nothing.
Status check_loopback() {
  const UniqueFd fd(socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0));
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_port = htons(9);  // any
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  if (!fd || connect(fd.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address) == 0 ||
      errno != ENETUNREACH)
    return Status();
  return Status(Code::unsupported,
                "127.0.0.1, where the ranks would meet, cannot be reached: the loopback device is down "
                "('ip link set lo up' mends it)");
}

}  // namespace

Status Supervisor::prepare() {
  TUTTI_RETURN_IF_ERROR(become_subreaper());
  // Each rank takes a few descriptors here; the ranks themselves get the limit that we were given.
  const rlimit files{inherited_.files.rlim_max, inherited_.files.rlim_max};
  setrlimit(RLIMIT_NOFILE, &files);
  auto signals = open_signals();
  TUTTI_RETURN_IF_ERROR(signals.status());
  signals_ = std::move(*signals);
  auto deaths = DeathWatch::create();
  TUTTI_RETURN_IF_ERROR(deaths.status());
  deaths_ = std::move(*deaths);
  TUTTI_RETURN_IF_ERROR(place_ranks());
  if (options_.tag_output) {
    auto output = TaggedOutput::create(STDOUT_FILENO, STDERR_FILENO);
    TUTTI_RETURN_IF_ERROR(output.status());
    output_ = std::move(*output);
  }
  job_.size = options_.ranks;
  job_.secret = fresh_secret();
  return start_store();
}

Status Supervisor::place_ranks() {
  if (!options_.bind) return Status();
  auto config = Config::load(settings_among(options_.environment));
  TUTTI_RETURN_IF_ERROR(config.status());
  const auto machine = machine_to_bind_on(config->topology_file());
  TUTTI_RETURN_IF_ERROR(machine.status());
  auto places = bindings(machine.value(), *options_.bind, options_.ranks);
  TUTTI_RETURN_IF_ERROR(places.status());
  places_ = std::move(*places);
  if (const std::string crowd = crowding(machine.value(), places_); !crowd.empty())
    print_error(launcher_line("warning: " + crowd));
  return Status();
}

Status Supervisor::start_store() {
  if (options_.ranks > 1) TUTTI_RETURN_IF_ERROR(check_loopback());
  Listening listening = listen_on(0, Reach::loopback);
  TUTTI_RETURN_IF_ERROR(listening.status());
  job_.port = listening.listeners.port;
  StoreOptions options;
  options.size = job_.size;
  options.credentials = {job_.secret, port_label(static_cast<uint16_t>(job_.port))};
  auto server = StoreServer::start(std::move(options), std::move(listening.listeners));
  TUTTI_RETURN_IF_ERROR(server.status());
  store_ = std::move(*server);
  return Status();
}

void Supervisor::start_ranks() {
  job_end_ = Deadline::after_us(options_.timeout_us);
  const UniqueFd null(open("/dev/null", O_RDWR | O_CLOEXEC));
  if (!null) return fail(kExitLauncher, fmt::format("cannot open /dev/null: {}", std::strerror(errno)));
  for (int rank = 0; rank < options_.ranks && stage_ == Stage::running; ++rank) {
    start_rank(rank, null.get());
    reap();  // one that failed already spares us the rest
  }
  // Rank 0 alone reads: when it has gone, whoever writes to it shall know.
  input_ = UniqueFd();
  dup2(null.get(), STDIN_FILENO);
}

Result<UniqueFd> Supervisor::output_of(int rank, TaggedOutput::Stream stream) {
  if (output_) return output_->add(rank, stream);
  return UniqueFd();
}

void Supervisor::start_rank(int rank, int null_fd) {
  const RankEnvironment environment(rank, job_, options_.environment);
  auto out = output_of(rank, TaggedOutput::Stream::out);
  auto err = output_of(rank, TaggedOutput::Stream::err);
  for (const Status& status : {out.status(), err.status()})
    if (!status.ok()) return fail(kExitLauncher, status.message());
  std::optional<CpuMask> mask;
  if (!places_.empty()) mask.emplace(places_[rank]);
  Start start;
  start.command = &options_.command;
  start.environment = environment.pointers();
  start.binding = mask ? &*mask : nullptr;
  start.inherited = &inherited_;
  start.in = rank == 0 ? input_.get() : null_fd;
  if (output_) start.out = out->get();
  if (output_) start.err = err->get();
  const Started started = start_process(start);
  if (started.pid < 0) {
    const StartFailure failure = explain(started, options_.command, environment.bytes());
    return fail(failure.exit_status, failure.message);
  }
  ranks_.push_back({started.pid, true});
  ++running_count_;
  if (const Status status = deaths_->add(started.pid); !status.ok()) fail(kExitLauncher, status.message());
}

}  // namespace tutti::internal
