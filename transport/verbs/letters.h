// Connects by letters through what made the world: `hello` with the numbers of our queue pairs, `welcome` with the
// other's, `ready` when the first can receive too; or `refuse`. No letter is sent with the mutex held.
#pragma once

#include <mutex>
#include <span>
#include <string_view>

#include "transport/transport.h"
#include "transport/verbs/connections.h"
#include "transport/verbs/letter.h"
#include "transport/verbs/wiring.h"

namespace tutti::internal::verbs {

class Letters final : public Wiring {
 public:
  // Both outlive it.
  Letters(Connections& connections, Mail& mail) : connections_(connections), mail_(mail) {}

  Status ask(const Plan& plan, std::unique_lock<std::mutex>& lock) override;
  // On the watch thread.
  void deliver(int rank, std::string_view letter);
  // The rank is gone: what is not connected will not be.
  void end(int rank);

 private:
  // All with the mutex held; true: there is a reply.
  bool on_hello(int rank, const Letter& hello, Letter& reply);
  bool on_welcome(int rank, const Letter& welcome, Letter& reply);
  void on_ready(int rank);
  void on_refuse(int rank, const Letter& refuse);
  Letter answer(int rank, const Letter& hello);
  Status connect_pairs(std::span<const std::unique_ptr<QueuePair>> pairs, std::span<const Path> paths,
                       const Letter& letter);

  Connections& connections_;
  Mail& mail_;
};

}  // namespace tutti::internal::verbs
