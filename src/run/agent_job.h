// What an agent is given to do: its ranks, and how they find the others. It goes over the connection, never onto a
// command line, where other users of the host would see the secret.
#pragma once

#include <string>
#include <vector>

#include "src/base/status.h"
#include "src/run/task.h"

namespace tutti::internal {

struct AgentJob {
  Task task;
  std::vector<std::string> store_hosts;  // addresses of the machine that serves the store: which of them leads there?
  int64_t silence_us = 0;                // after which the connection counts as lost
};

std::string encode(const AgentJob& job);
// Errors: mismatch, where it is no such text.
Result<AgentJob> decode_agent_job(const std::string& text);

}  // namespace tutti::internal
