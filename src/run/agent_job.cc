#include "src/run/agent_job.h"

#include <fmt/core.h>

#include <nlohmann/json.hpp>

namespace tutti::internal {

// As CBOR: arguments and variables may hold any bytes.
std::string encode(const AgentJob& job) {
  const nlohmann::json json = {
      {"size", job.task.job.size},
      {"port", job.task.job.port},
      {"secret", job.task.job.secret},
      {"first_rank", job.task.first_rank},
      {"rank_count", job.task.rank_count},
      {"command", job.task.command},
      {"environment", job.task.environment},
      {"directory", job.task.directory},
      {"bind", job.task.bind ? static_cast<int>(*job.task.bind) : -1},
      {"store_hosts", job.store_hosts},
      {"silence_us", job.silence_us},
  };
  std::string text;
  nlohmann::json::to_cbor(json, text);
  return text;
}

Result<AgentJob> decode_agent_job(const std::string& text) {
  AgentJob job;
  try {
    const nlohmann::json json = nlohmann::json::from_cbor(text);
    json.at("size").get_to(job.task.job.size);
    json.at("port").get_to(job.task.job.port);
    json.at("secret").get_to(job.task.job.secret);
    json.at("first_rank").get_to(job.task.first_rank);
    json.at("rank_count").get_to(job.task.rank_count);
    json.at("command").get_to(job.task.command);
    json.at("environment").get_to(job.task.environment);
    json.at("directory").get_to(job.task.directory);
    if (const int bind = json.at("bind"); bind >= 0) job.task.bind = static_cast<BindUnit>(bind);
    json.at("store_hosts").get_to(job.store_hosts);
    json.at("silence_us").get_to(job.silence_us);
  } catch (const nlohmann::json::exception& error) {
    return Status(Code::mismatch, fmt::format("what came is no job: {}", error.what()));
  }
  return job;
}

}  // namespace tutti::internal
