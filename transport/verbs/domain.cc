#include "transport/verbs/domain.h"

#include <fmt/format.h>
#include <sys/resource.h>

#include <cerrno>

namespace tutti::internal::verbs {
namespace {

std::string locked_limit() {
  rlimit limit{};
  if (getrlimit(RLIMIT_MEMLOCK, &limit) != 0 || limit.rlim_cur == RLIM_INFINITY) return "";
  return fmt::format("; this process may lock {} bytes (ulimit -l): \"unlimited\" is what RDMA needs", limit.rlim_cur);
}

Status refused(const Port& port, size_t bytes, int error) {
  // EFAULT: nothing is mapped there, or it cannot be written.
  const Code code = error == EFAULT || error == EINVAL ? Code::invalid_argument : Code::out_of_resources;
  const Status status =
      Status::system(code, fmt::format("registering {} bytes of memory with {}", bytes, port.name()), error);
  return code == Code::out_of_resources ? Status(code, status.message() + locked_limit()) : status;
}

}  // namespace

Result<MemoryDomain::Handle> PortsDomain::add(void* memory, size_t bytes, bool writable) {
  const int access = writable ? IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE : 0;
  Handle handle;
  for (size_t i = 0; i < ports_.size(); ++i) {
    ibv_mr* const region = ibv_reg_mr(ports_[i]->domain(), memory, bytes, access);
    if (region == nullptr) {
      const int error = errno;
      remove(handle);
      return refused(*ports_[i], bytes, error);
    }
    handle.regions[i] = region;
    handle.keys[i] = {region->lkey, region->rkey};
  }
  return handle;
}

void PortsDomain::remove(const Handle& handle) {
  for (void* region : handle.regions)
    if (region != nullptr) ibv_dereg_mr(static_cast<ibv_mr*>(region));
}

}  // namespace tutti::internal::verbs
