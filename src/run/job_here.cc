#include "src/run/job_here.h"

#include "src/run/console.h"
#include "src/run/job_store.h"
#include "src/run/say.h"
#include "src/run/supervisor.h"

namespace tutti::internal {
namespace {

Result<int> run(const RunOptions& options, const Inherited& inherited, UniqueFd front, UniqueFd input) {
  Task task;
  task.job.size = options.ranks;
  task.rank_count = options.ranks;
  task.command = options.command;
  task.environment = options.environment;
  task.directory = options.directory;
  task.bind = options.bind;
  task.timeout_us = options.timeout_us;
  auto console = Console::create(options.tag_output);
  TUTTI_RETURN_IF_ERROR(console.status());
  const auto store = serve_here(task.job);
  TUTTI_RETURN_IF_ERROR(store.status());
  return Supervisor(task, inherited, std::move(front), std::move(input), **console).run();
}

}  // namespace

int run_job_here(const RunOptions& options, const Inherited& inherited, UniqueFd front, UniqueFd input) {
  auto status = run(options, inherited, std::move(front), std::move(input));
  if (status) return *status;
  print_error(launcher_line(status.status().message()));
  return kExitLauncher;
}

}  // namespace tutti::internal
