// Starting one rank: fork, and exec in the child, with word of whether that worked.
#pragma once

#include <signal.h>
#include <sys/resource.h>
#include <sys/types.h>

#include <string>
#include <vector>

#include "topology/binding.h"

namespace tutti::internal {

// How this process was when it was started, to be so again in each rank.
struct Inherited {
  sigset_t mask{};
  rlimit files{};
};

struct Start {
  const std::vector<std::string>* command = nullptr;
  char* const* environment = nullptr;
  const CpuMask* binding = nullptr;  // null: unbound
  const Inherited* inherited = nullptr;
  // What becomes the rank's standard input, output and error. Above 2, or the standard descriptor itself.
  int in = 0;
  int out = 1;
  int err = 2;
};

struct Started {
  pid_t pid = -1;  // -1: it failed
  const char* failed_call = "";
  int error = 0;
};

// Starts a process that leads a session and a process group of its own, has no controlling terminal, and is killed by
// the kernel should the caller's thread end. Returns when the program runs or has failed to.
Started start_process(const Start& start);

// What to say, and which status to end with, when the program could not be started.
struct StartFailure {
  std::string message;
  int exit_status = 0;
};
StartFailure explain(const Started& failed, const std::vector<std::string>& command, size_t environment_bytes);

}  // namespace tutti::internal
