// How a process joins a world: settings, rendezvous, transport, and the exchange of addresses.
#include <fmt/core.h>

#include "src/base/descriptors.h"
#include "src/base/log.h"
#include "src/core/context.h"
#include "src/core/store_mail.h"
#include "src/core/transports.h"
#include "transport/verbs/device_filter.h"

namespace tutti::internal {
namespace {

constexpr uint64_t kDescriptorsOfAPeer = 3;  // shared memory and UCX take two; a store, one
constexpr uint64_t kOtherDescriptors = 32;   // devices, completion channels, the application's next few

// The settings on which all ranks must agree, as text that is compared when they join.
std::string digest_of(const Config& config) {
  return fmt::format("TUTTI_CHECK={} TUTTI_ALGORITHM={} TUTTI_TRANSPORT={}", config.check() ? 1 : 0, config.algorithm(),
                     config.transports());
}

Result<std::unique_ptr<Session>> join_session(const JoinRequest& request, const Config& config, Deadline deadline) {
  auto place = find_rendezvous(request.rank, request.size, request.store, config);
  if (!place) return place.status();
  JoinOptions options;
  options.rendezvous = std::move(*place);
  options.version = tutti_version();
  options.digest = digest_of(config);
  return Session::join(options, deadline);
}

// Fewer may do, since ranks are connected when they first meet. UCX 1.13 does not survive to run out of them.
void provide_descriptors(int peers) {
  if (peers == 0) return;
  const uint64_t most = open_descriptors() + kDescriptorsOfAPeer * static_cast<uint64_t>(peers) + kOtherDescriptors;
  if (raise_descriptor_limit(most) < most)
    log_warn("a rank that meets all {} others may need {} descriptors; {}", peers, most, descriptor_advice(most));
}

}  // namespace

Result<std::unique_ptr<Context>> Context::join(const JoinRequest& request) {
  auto config = Config::load(request.settings);
  if (!config) return config.status();
  set_log_level(config->log_level());
  for (const std::string& warning : config->warnings()) log_warn("{}", warning);
  auto overrides = parse_overrides(config->algorithm());
  if (!overrides)
    return Status(Code::invalid_argument, fmt::format("TUTTI_ALGORITHM: {}", overrides.status().message()));
  TUTTI_RETURN_IF_ERROR(verbs::DeviceFilter::parse(config->ib_devices()).status());
  auto machine = find_machine(*config);
  if (!machine) return machine.status();
  const Deadline deadline = Deadline::after_us(config->join_timeout_us());
  auto session = join_session(request, *config, deadline);
  if (!session) return session.status();
  const int rank = (*session)->rank();
  set_log_rank(rank);
  provide_descriptors((*session)->size() - 1);
  auto mail = std::make_unique<StoreMail>(**session);
  auto world = connect_world(**session, *config, **machine, place_on(**machine, own_cpus()), *mail, deadline);
  if (!world) return world.status();
  std::unique_ptr<Context> context(
      new Context(std::move(*config), std::move(*session), std::move(mail), std::move(*world), rank));
  context->overrides_ = *overrides;
  context->machine_ = *machine;
  context->watcher_ = std::make_unique<Watcher>(*context->session_, *context->transport_, context->notices_);
  TUTTI_RETURN_IF_ERROR(context->watcher_->start());
  return context;
}

}  // namespace tutti::internal
