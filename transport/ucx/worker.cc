#include "transport/ucx/worker.h"

#include <fmt/format.h>

#include <utility>

#include "src/base/log.h"
#include "transport/ucx/address.h"
#include "transport/ucx/tuning.h"

namespace tutti::internal::ucx {
namespace {

Status failed(const char* what, ucs_status_t status) {
  const Code code = status == UCS_ERR_NO_MEMORY ? Code::out_of_resources : Code::unsupported;
  return Status(code, fmt::format("UCX: {}: {}", what, text_of(status)));
}

}  // namespace

Result<std::unique_ptr<Worker>> Worker::create(int world_size, const std::vector<std::string>& interfaces,
                                               const Settings& forced) {
  auto configuration = Configuration::read(interfaces, forced);
  if (!configuration) return configuration.status();
  std::unique_ptr<Worker> made(new Worker);
  made->copies_anyway_ = !has_rdma_hardware();
  TUTTI_RETURN_IF_ERROR(made->open(world_size, *configuration));
  return made;
}

Status Worker::open(int world_size, const Configuration& configuration) {
  ucp_params_t params{};
  params.field_mask = UCP_PARAM_FIELD_FEATURES | UCP_PARAM_FIELD_ESTIMATED_NUM_EPS | UCP_PARAM_FIELD_NAME;
  params.features = UCP_FEATURE_AM | UCP_FEATURE_WAKEUP;
  params.estimated_num_eps = static_cast<size_t>(world_size);
  params.name = "tutti";
  ucs_status_t status =
      library().ucp_init_version(UCP_API_MAJOR, UCP_API_MINOR, &params, configuration.get(), &context_);
  if (status != UCS_OK) return failed("no context", status);
  ucp_worker_params_t worker{};
  worker.field_mask = UCP_WORKER_PARAM_FIELD_THREAD_MODE;
  worker.thread_mode = UCS_THREAD_MODE_SERIALIZED;
  if (status = library().ucp_worker_create(context_, &worker, &worker_); status != UCS_OK)
    return failed("no worker", status);
  ucp_address_t* address = nullptr;
  size_t bytes = 0;
  if (status = library().ucp_worker_get_address(worker_, &address, &bytes); status != UCS_OK)
    return failed("no address of the worker", status);
  address_.assign(reinterpret_cast<const char*>(address), bytes);
  library().ucp_worker_release_address(worker_, address);
  if (bytes > kMostWorkerBytes)
    return Status(Code::unsupported, fmt::format("UCX's address of {} bytes is too long, {} allowed: fewer devices "
                                                 "(UCX_NET_DEVICES) make it shorter",
                                                 bytes, size_t{kMostWorkerBytes}));
  if (library().ucp_worker_get_efd(worker_, &event_fd_) != UCS_OK) event_fd_ = -1;
  return {};
}

bool Worker::flush(Deadline deadline) {
  ucp_request_param_t param{};
  void* const request = library().ucp_worker_flush_nbx(worker_, &param);
  if (!UCS_PTR_IS_PTR(request)) return request == nullptr;
  const auto is_done = [&] { return library().ucp_request_check_status(request) != UCS_INPROGRESS; };
  while (!is_done() && !deadline.passed()) progress();
  const bool flushed = is_done();
  library().ucp_request_free(request);
  return flushed;
}

void Worker::close(bool may_be_connecting) {
  if (worker_ == nullptr) return;
  if (!may_be_connecting || flush(Deadline::after_us(kCloseUs)))
    return library().ucp_worker_destroy(std::exchange(worker_, nullptr));
  log_debug("UCX had not settled when its transport ended: what it holds goes with the process");
  worker_ = nullptr;
  context_ = nullptr;
}

Worker::~Worker() {
  if (is_inherited()) return;
  close(false);
  if (context_ == nullptr) return;
  for (const auto& [memory, handle] : memory_) library().ucp_mem_unmap(context_, handle);
  library().ucp_cleanup(context_);
}

Status Worker::add(void* memory, size_t bytes) {
  if (bytes == 0 || memory_.contains(memory))
    return Status(Code::invalid_argument, fmt::format("{} bytes at {} cannot be registered: {}", bytes, memory,
                                                      bytes == 0 ? "none" : "they are already"));
  ucp_mem_map_params_t params{};
  params.field_mask = UCP_MEM_MAP_PARAM_FIELD_ADDRESS | UCP_MEM_MAP_PARAM_FIELD_LENGTH;
  params.address = memory;
  params.length = bytes;
  ucp_mem_h handle = nullptr;
  if (const ucs_status_t status = library().ucp_mem_map(context_, &params, &handle); status != UCS_OK)
    return Status(Code::out_of_resources, fmt::format("UCX cannot register {} bytes: {}", bytes, text_of(status)));
  memory_.emplace(memory, handle);
  return {};
}

Status Worker::remove(void* memory) {
  const auto found = memory_.find(memory);
  if (found == memory_.end())
    return Status(Code::invalid_argument, fmt::format("memory at {} is not registered", memory));
  if (!is_inherited() && context_ != nullptr) library().ucp_mem_unmap(context_, found->second);
  memory_.erase(found);
  return {};
}

}  // namespace tutti::internal::ucx
