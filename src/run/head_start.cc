// The head's work before the job runs: the store, and an agent on each host.
#include <fmt/core.h>
#include <unistd.h>

#include <algorithm>
#include <climits>
#include <filesystem>

#include "src/run/agent_job.h"
#include "src/run/head.h"
#include "src/run/job_store.h"
#include "src/run/signals.h"
#include "src/run/words.h"

namespace tutti::internal {
namespace {

// What goes along to other hosts by itself: the settings of tutti, and of UCX below it. Then what --env gives, which
// counts more.
std::vector<std::string> variables_for_others(const std::vector<std::string>& given) {
  std::vector<std::string> variables;
  for (char** variable = environ; variable && *variable; ++variable) {
    const std::string_view text(*variable);
    const bool is_ours = text.starts_with("TUTTI_") || text.starts_with("UCX_");
    if (is_ours && !is_set_by_launcher(text.substr(0, text.find('=')))) variables.emplace_back(text);
  }
  variables.insert(variables.end(), given.begin(), given.end());
  return variables;
}

// Through ssh, without a question to anybody: nobody could answer it. The connection ends with the job, even where the
// user has told ssh to keep connections for others.
std::vector<std::string> through_ssh(const RunOptions& options, const std::string& host, const std::string& program) {
  std::vector<std::string> command = options.ssh;
  if (options.ssh_port != 0) command.insert(command.end(), {"-p", std::to_string(options.ssh_port)});
  command.insert(command.end(), {"-T", "-o", "BatchMode=yes", "-o", "ControlMaster=no", host,
                                 fmt::format("exec {} {}", shell_quoted(program), kAgentOption)});
  return command;
}

}  // namespace

Status Head::prepare() {
  auto signals = open_signals();
  TUTTI_RETURN_IF_ERROR(signals.status());
  signals_ = std::move(*signals);
  job_.size = options_.ranks;
  auto store = serve_for_hosts(options_.environment, job_, store_hosts_);
  TUTTI_RETURN_IF_ERROR(store.status());
  store_ = std::move(*store);
  return start_hosts();
}

Status Head::start_hosts() {
  job_end_ = Deadline::after_us(options_.timeout_us);
  int first_rank = 0;
  for (const HostSlots& slots : deal(options_.hosts, options_.ranks)) {
    auto plan = plan_for(slots, first_rank);
    TUTTI_RETURN_IF_ERROR(plan.status());
    auto host = Host::start(std::move(*plan), inherited_);
    TUTTI_RETURN_IF_ERROR(host.status());
    hosts_.push_back(std::move(*host));
    first_rank += slots.slots;
  }
  return Status();
}

Result<Host::Plan> Head::plan_for(const HostSlots& slots, int first_rank) const {
  std::error_code error;
  const std::filesystem::path here = std::filesystem::current_path(error);
  if (error) return Status(Code::internal, fmt::format("the current folder has no name: {}", error.message()));
  const std::string program = std::filesystem::read_symlink("/proc/self/exe", error);
  if (error) return Status(Code::internal, fmt::format("/proc/self/exe: {}", error.message()));
  const std::string there = options_.remote_path.empty() ? program : options_.remote_path;
  Host::Plan plan;
  plan.name = slots.host;
  plan.is_here = is_this_host(slots.host);
  plan.command =
      plan.is_here ? std::vector<std::string>{program, kAgentOption} : through_ssh(options_, slots.host, there);
  plan.silence_us = options_.host_timeout_us;
  AgentJob job;
  job.task.job = job_;
  job.task.first_rank = first_rank;
  job.task.rank_count = slots.slots;
  job.task.command = options_.command;
  job.task.environment = variables_for_others(options_.environment);
  job.task.directory = here / options_.directory;
  job.task.bind = options_.bind;
  job.store_hosts = store_hosts_;
  job.silence_us = options_.host_timeout_us;
  plan.job = encode(job);
  return plan;
}

}  // namespace tutti::internal
