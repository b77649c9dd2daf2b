// The library's own threads: the program's signals go to the program's threads.
#pragma once

#include <pthread.h>

#include <csignal>
#include <system_error>
#include <thread>
#include <utility>

#include "src/base/status.h"

namespace tutti::internal {

// Starts `body` on a thread that takes no signals. `what`: for the message ("the watch thread"). Errors:
// out_of_resources.
template <class Body>
Result<std::thread> start_thread(const char* what, Body&& body) {
  sigset_t all, before;
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, &before);  // the thread inherits the mask
  std::thread thread;
  int error = 0;
  try {
    thread = std::thread(std::forward<Body>(body));
  } catch (const std::system_error& failed) {
    error = failed.code().value();
  }
  pthread_sigmask(SIG_SETMASK, &before, nullptr);
  if (error != 0)
    return Status::system(Code::out_of_resources, std::string("starting ") + what + " (limits: processes, memory)",
                          error);
  return thread;
}

}  // namespace tutti::internal
