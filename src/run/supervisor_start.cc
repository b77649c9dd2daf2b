// The supervisor's work before the job runs: the folder, the binding, and the ranks one after the other.
#include <fcntl.h>
#include <fmt/core.h>

#include <cerrno>
#include <cstring>

#include "src/base/config.h"
#include "src/run/options.h"
#include "src/run/signals.h"
#include "src/run/supervisor.h"

namespace tutti::internal {
Status Supervisor::prepare() {
  auto signals = open_signals();
  TUTTI_RETURN_IF_ERROR(signals.status());
  signals_ = std::move(*signals);
  auto deaths = DeathWatch::create();
  TUTTI_RETURN_IF_ERROR(deaths.status());
  deaths_ = std::move(*deaths);
  if (!task_.directory.empty() && chdir(task_.directory.c_str()) != 0)
    return Status::system(Code::invalid_argument, fmt::format("cannot enter the folder '{}'", task_.directory), errno);
  return place_ranks();
}

Status Supervisor::place_ranks() {
  if (!task_.bind) return Status();
  auto config = Config::load(settings_among(task_.environment));
  TUTTI_RETURN_IF_ERROR(config.status());
  const auto machine = machine_to_bind_on(config->topology_file());
  TUTTI_RETURN_IF_ERROR(machine.status());
  auto places = bindings(machine.value(), *task_.bind, task_.rank_count);
  TUTTI_RETURN_IF_ERROR(places.status());
  places_ = std::move(*places);
  if (const std::string crowd = crowding(machine.value(), places_); !crowd.empty()) outside_.say("warning: " + crowd);
  return Status();
}

void Supervisor::start_ranks() {
  job_end_ = Deadline::after_us(task_.timeout_us);
  const UniqueFd null(open("/dev/null", O_RDWR | O_CLOEXEC));
  if (!null) return fail(kExitLauncher, fmt::format("cannot open /dev/null: {}", std::strerror(errno)));
  for (int local = 0; local < task_.rank_count && stage_ == Stage::running; ++local) {
    start_rank(local, null.get());
    reap();  // one that failed already spares us the rest
  }
  // Rank 0 alone reads: when it has gone, whoever writes to it shall know.
  input_ = UniqueFd();
  dup2(null.get(), STDIN_FILENO);
}

void Supervisor::start_rank(int local_rank, int null_fd) {
  const int rank = task_.first_rank + local_rank;
  const RankEnvironment environment({rank, local_rank}, task_.job, task_.environment);
  auto out = outside_.stream_of(rank, Stream::out);
  auto err = outside_.stream_of(rank, Stream::err);
  for (const Status& status : {out.status(), err.status()})
    if (!status.ok()) return fail(kExitLauncher, status.message());
  std::optional<CpuMask> mask;
  if (!places_.empty()) mask.emplace(places_[local_rank]);
  Start start;
  start.command = &task_.command;
  start.environment = environment.pointers();
  start.binding = mask ? &*mask : nullptr;
  start.inherited = &inherited_;
  start.in = rank == 0 ? input_.get() : null_fd;
  if (*out) start.out = out->get();
  if (*err) start.err = err->get();
  const Started started = start_process(start);
  if (started.pid < 0) {
    const StartFailure failure = explain(started, task_.command, environment.bytes());
    return fail(failure.exit_status, failure.message);
  }
  ranks_.push_back({started.pid, true});
  ++running_count_;
  if (const Status status = deaths_->add(started.pid); !status.ok()) fail(kExitLauncher, status.message());
}

}  // namespace tutti::internal
