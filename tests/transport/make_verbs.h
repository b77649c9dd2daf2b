// Makes the transports of the conformance suite on verbs, in whichever guest the rank lives.
#pragma once

#include <memory>
#include <stdexcept>

#include "transport/verbs/verbs_transport.h"

namespace tutti::internal::conformance {

// How ranks hold memory, and how they find each other.
struct VerbsWay {
  bool cache = true;
  bool through_rdmacm = false;
};

inline std::unique_ptr<VerbsTransport> make_verbs(int rank, int ranks, const VerbsWay& way, Mail& mail) {
  VerbsTransport::Options options;
  options.rank = rank;
  options.world_size = ranks;
  options.registrar.cache = way.cache;
  options.settings.through_rdmacm = way.through_rdmacm;
  auto transport = VerbsTransport::create(options, mail);
  if (!transport) throw std::runtime_error(transport.status().message());
  return std::move(*transport);
}

}  // namespace tutti::internal::conformance
