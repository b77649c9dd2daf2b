// A UCX context of our own with its one worker, and the memory that was made known to it. Owner's thread.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <string>

#include "src/base/clock.h"
#include "src/base/fork.h"
#include "src/base/status.h"
#include "transport/ucx/configuration.h"
#include "transport/ucx/library.h"
#include "transport/windows.h"

namespace tutti::internal::ucx {

class Worker final : public Registry {
 public:
  // Errors: unsupported (UCX is not there, or finds nothing that it can use), invalid_argument (its settings),
  // out_of_resources.
  static Result<std::unique_ptr<Worker>> create(int world_size, const std::vector<std::string>& interfaces,
                                                const Settings& forced);
  ~Worker() override;

  ucp_worker_h get() const { return worker_; }
  // Ends all communication, with a last word to those who wait for some. UCX 1.13 does not survive it when its worker
  // ends while it connects over UD: where that may be, and does not settle soon, what it holds is left to the end of
  // the process. Idempotent.
  void close(bool may_be_connecting);
  const std::string& address() const { return address_; }
  // Readable when there is something to do, once armed; -1: UCX cannot tell.
  int event_fd() const { return event_fd_; }
  // False: there is something to do now.
  bool arm() { return library().ucp_worker_arm(worker_) == UCS_OK; }
  // What UCX can use puts nothing in place by itself: rendezvous saves no copy.
  bool copies_anyway() const { return copies_anyway_; }
  bool progress() { return library().ucp_worker_progress(worker_) != 0; }

  // A child of fork has the memory of all this, and nothing that makes it work.
  bool is_inherited() const { return epoch_ != process_epoch(); }

  Status add(void* memory, size_t bytes) override;
  Status remove(void* memory) override;

 private:
  Worker() = default;
  // Whether all is sent and settled in time.
  bool flush(Deadline deadline);
  Status open(int world_size, const Configuration& configuration);

  const uint32_t epoch_ = process_epoch();
  ucp_context_h context_ = nullptr;
  ucp_worker_h worker_ = nullptr;
  std::string address_;
  int event_fd_ = -1;
  bool copies_anyway_ = false;
  std::map<void*, ucp_mem_h> memory_;
};

}  // namespace tutti::internal::ucx
