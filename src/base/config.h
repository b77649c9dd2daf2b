// The configuration: one table of everything that can be set, and where each value came from. A value comes from the
// settings that the program hands in, else from the environment, else it is the default. Read once, when a world is
// joined; constant afterwards. The environment is read here and nowhere else.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "src/base/status.h"

namespace tutti::internal {

class Config {
 public:
  // One line of the table, as it is shown.
  struct Row {
    std::string name;
    std::string type;    // "integer", "seconds", "bool", "text", "level"
    std::string value;   // "" where there is none; "set" for a secret
    std::string source;  // "setting", "environment SLURM_PROCID", "default"
    std::string help;
  };

  // `settings`: "NAME=value". Errors: invalid_argument, with the name, the value found and what is allowed.
  static Result<Config> load(std::span<const std::string> settings);

  // Names in the settings and the environment that begin with TUTTI_ and mean nothing, each with the nearest known one.
  const std::vector<std::string>& warnings() const { return warnings_; }
  std::vector<Row> rows() const;

  // Joining.
  std::optional<int> rank() const { return integer("RANK"); }
  std::optional<int> size() const { return integer("WORLD_SIZE"); }
  std::optional<int> local_rank() const { return integer("LOCAL_RANK"); }
  std::string master_addr() const { return text("MASTER_ADDR"); }
  std::optional<int> master_port() const { return integer("MASTER_PORT"); }
  bool torchrun_owns_port() const { return flag("TORCHELASTIC_USE_AGENT_STORE"); }
  std::string store_file() const { return text("TUTTI_STORE_FILE"); }
  bool store_served() const { return flag("TUTTI_STORE_SERVED"); }
  std::string secret() const { return text("TUTTI_SECRET"); }
  std::string interfaces() const { return text("TUTTI_INTERFACE"); }  // see src/core/store/interfaces.h
  std::vector<uint16_t> ports() const;                                // those of TUTTI_PORT_RANGE; none: any

  // Running.
  int64_t timeout_us() const { return microseconds("TUTTI_TIMEOUT"); }
  int64_t join_timeout_us() const { return microseconds("TUTTI_JOIN_TIMEOUT"); }
  int64_t warn_after_us() const { return microseconds("TUTTI_WARN_AFTER"); }
  bool check() const { return check_; }
  std::string algorithm() const { return text("TUTTI_ALGORITHM"); }
  std::string topology_file() const { return text("TUTTI_TOPOLOGY_FILE"); }
  std::string log_level() const { return text("TUTTI_LOG"); }

  // What may carry messages: "shm,verbs,ucx", or some of them; and whether one of them may.
  std::string transports() const { return text("TUTTI_TRANSPORT"); }
  bool allows_transport(std::string_view name) const { return lists("TUTTI_TRANSPORT", name); }

  // RDMA; src/core/ib_settings.h has them together.
  std::string ib_devices() const { return text("TUTTI_IB_DEVICES"); }
  int ib_gid_index() const { return number("TUTTI_IB_GID_INDEX"); }
  int ib_traffic_class() const { return number("TUTTI_IB_TRAFFIC_CLASS"); }
  int ib_service_level() const { return number("TUTTI_IB_SERVICE_LEVEL"); }
  int ib_timeout() const { return number("TUTTI_IB_TIMEOUT"); }
  int ib_retry_count() const { return number("TUTTI_IB_RETRY_COUNT"); }
  int ib_rnr_retry() const { return number("TUTTI_IB_RNR_RETRY"); }
  std::string ib_connect() const { return text("TUTTI_IB_CONNECT"); }  // "store" or "rdmacm"

 private:
  struct Value {
    std::string text;
    std::string source;
  };

  static Value find_value(size_t index, std::span<const std::string> settings);
  std::string text(std::string_view name) const;
  bool lists(std::string_view name, std::string_view word) const;
  std::optional<int> integer(std::string_view name) const;
  int number(std::string_view name) const { return integer(name).value_or(0); }  // of an entry with a default
  int64_t microseconds(std::string_view name) const;
  bool flag(std::string_view name) const;

  std::vector<Value> values_;  // in the order of the table
  std::vector<std::string> warnings_;
  bool check_ = false;  // read by every operation
};

// Whether the user has set a variable that is another library's; "" counts as set.
bool is_in_environment(const std::string& name);

// Seconds as decimal text ("1.5"), or "none": microseconds, saturated. Nothing where the text is no such number.
std::optional<int64_t> parse_seconds(std::string_view text);

}  // namespace tutti::internal
