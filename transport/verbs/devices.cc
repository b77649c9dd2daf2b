#include "transport/verbs/devices.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <filesystem>
#include <span>
#include <system_error>

#include "src/base/first_line.h"
#include "src/base/log.h"

namespace tutti::internal::verbs {
namespace {

namespace fs = std::filesystem;

constexpr const char* kKernelsDevices = "/sys/class/infiniband";
constexpr const char* kVerbsFiles = "/sys/class/infiniband_verbs";

std::vector<std::string> names_in(const char* folder) {
  std::vector<std::string> names;
  std::error_code error;
  for (fs::directory_iterator entry(folder, error), end; !error && entry != end; entry.increment(error))
    names.push_back(entry->path().filename());
  std::ranges::sort(names);
  return names;
}

bool is_there(const char* path) {
  std::error_code error;
  return fs::exists(path, error);
}

// libibverbs' list; a device stays valid only as long as it.
class DeviceList {
 public:
  DeviceList() : list_(ibv_get_device_list(&count_)), error_(list_ ? 0 : errno) {}
  ~DeviceList() {
    if (list_) ibv_free_device_list(list_);
  }
  DeviceList(const DeviceList&) = delete;
  DeviceList& operator=(const DeviceList&) = delete;

  std::span<ibv_device* const> devices() const { return {list_, list_ ? static_cast<size_t>(count_) : 0}; }
  int error() const { return error_; }

 private:
  int count_ = 0;
  ibv_device** list_;
  int error_;
};

// Registered memory stays ours when a child is made. Newer kernels do that by themselves; older ones need to be asked
// before anything is registered.
void prepare_fork() {
  static const int error = ibv_fork_init();
  if (error != 0)
    log_debug("ibv_fork_init: {}: memory was registered before tutti came, and forking is not safe for it",
              std::generic_category().message(error));
}

// "" where it may be opened. `file`: "uverbs0".
std::string why_no_access(const std::string& file) {
  const std::string path = "/dev/infiniband/" + file;
  return access(path.c_str(), R_OK | W_OK) == 0 ? ""
                                                : fmt::format("{}: {}", path, std::generic_category().message(errno));
}

}  // namespace

void CloseContext::operator()(ibv_context* context) const {
  if (epoch != process_epoch()) return;
  release_from_fork(context->cmd_fd);
  release_from_fork(context->async_fd);
  ibv_close_device(context);
}

std::string why_unknown(const std::string& device) {
  const std::vector<std::string> files = names_in(kVerbsFiles);
  const auto found = std::ranges::find_if(
      files, [&](const std::string& file) { return first_line(fs::path(kVerbsFiles) / file / "ibdev") == device; });
  if (found == files.end()) return "the kernel has no verbs for it: the module ib_uverbs may not be loaded";
  const std::string why = why_no_access(*found);
  return why.empty() ? "libibverbs has no driver for it: see the package ibverbs-providers, or rdma-core" : why;
}

Result<DeviceNames> find_devices() {
  const DeviceList list;
  DeviceNames names;
  for (const ibv_device* device : list.devices()) names.usable.emplace_back(device->name);
  for (std::string& name : names_in(kKernelsDevices))
    if (std::ranges::find(names.usable, name) == names.usable.end()) names.unknown.push_back(std::move(name));
  if (!names.usable.empty() || !names.unknown.empty()) return names;
  std::string why =
      fmt::format("no RDMA device: {} {}", kKernelsDevices, is_there(kKernelsDevices) ? "is empty" : "does not exist");
  if (list.error() == 0) return Status(Code::unsupported, std::move(why));
  return Status::system(Code::unsupported, why + ", and ibv_get_device_list", list.error());
}

Result<ContextPtr> open_device(const std::string& device) {
  prepare_fork();
  const DeviceList list;
  const auto found = std::ranges::find_if(list.devices(), [&](const ibv_device* one) { return one->name == device; });
  if (found == list.devices().end()) return Status(Code::unsupported, fmt::format("no RDMA device {} here", device));
  errno = 0;
  ContextPtr context(ibv_open_device(*found));
  if (!context) {
    const int error = errno;
    const std::string why = why_no_access((*found)->dev_name);
    return why.empty() ? Status::system(Code::unsupported, "ibv_open_device of " + device, error)
                       : Status(Code::unsupported, why);
  }
  close_in_child(context->cmd_fd);
  close_in_child(context->async_fd);
  const int flags = fcntl(context->async_fd, F_GETFL);
  if (flags < 0 || fcntl(context->async_fd, F_SETFL, flags | O_NONBLOCK) != 0)
    return Status::system(Code::unsupported, fmt::format("fcntl of the events of {}", device), errno);
  return context;
}

}  // namespace tutti::internal::verbs
