// The configuration of the UCX context that tutti makes: UCX's own, from the environment and its files, with what tutti
// needs to be otherwise. What the user has set in the environment stays as he set it; nothing is written there.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "src/base/status.h"
#include "transport/ucx/library.h"

namespace tutti::internal::ucx {

// Names as ucp_config_modify takes them, and values.
using Settings = std::vector<std::pair<std::string, std::string>>;

struct Version {
  unsigned major = 0;
  unsigned minor = 0;
};

// What tutti sets, unless the user has set the variable.
struct Needed {
  std::string variable;
  std::string name;  // in a configuration, which need not be the variable's
  std::string value;
};

// For this version, with the devices that `classes` (/sys/class) shows. `interfaces`: the only ones for IP; none: all.
std::vector<Needed> needed_settings(const Version& version, const std::string& classes,
                                    const std::vector<std::string>& interfaces);

// Whether this machine has an RDMA device that is not software.
bool has_rdma_hardware();

// For UCX to leave RDMA devices alone; nothing where the environment says which transports it takes.
Settings without_rdma();

class Configuration {
 public:
  // `interfaces`: as in needed_settings. `forced`: whatever the environment says. Errors: unsupported,
  // invalid_argument.
  static Result<Configuration> read(const std::vector<std::string>& interfaces, const Settings& forced);
  Configuration(Configuration&& other) noexcept : config_(std::exchange(other.config_, nullptr)) {}
  Configuration& operator=(Configuration&&) = delete;
  ~Configuration();

  const ucp_config_t* get() const { return config_; }

 private:
  explicit Configuration(ucp_config_t* config) : config_(config) {}
  Status modify(const std::string& name, const std::string& value);

  ucp_config_t* config_;
};

}  // namespace tutti::internal::ucx
