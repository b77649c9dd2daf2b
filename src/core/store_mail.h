// The mail of a world: letters between transports go through the store's session, and arrive as its events.
#pragma once

#include "src/base/log.h"
#include "src/core/store/session.h"
#include "transport/transport.h"

namespace tutti::internal {

class StoreMail final : public Mail {
 public:
  // The session lives longer.
  explicit StoreMail(Session& session) : session_(session) {}

  // What the session refuses is a fault of the transport: nothing is sent, and the log says so.
  void send(int peer, std::string_view letter) override {
    if (const Status sent = session_.send_letter(peer, letter); !sent.ok()) log_error("{}", sent.message());
  }

 private:
  Session& session_;
};

}  // namespace tutti::internal
