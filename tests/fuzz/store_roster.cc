// Conversations of several connections with the store's roster: connections that know the secret and then send any
// messages in any order, and end at any time. The roster stays in order, and speaks only to connections that are open.
//
// The input: per step one byte for the connection (its low 3 bits) and what it does, then the fields of its message.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <set>
#include <string>

#include "src/core/store/roster.h"

using namespace tutti::internal;

namespace {

class Input {
 public:
  Input(const uint8_t* data, size_t size) : data_(data), left_(size) {}
  bool is_empty() const { return left_ == 0; }
  uint8_t byte() {
    if (left_ == 0) return 0;
    --left_;
    return *data_++;
  }

 private:
  const uint8_t* data_;
  size_t left_;
};

class Connections : public Postbox {
 public:
  void send(uint64_t connection, Frame frame) override {
    if (!open.contains(connection)) std::abort();
    const auto message = decode(std::string_view(*frame).substr(kLengthBytes));
    if (!message) std::abort();
    if (message->type == Message::Type::ready) ++ready;
    if (message->type == Message::Type::letter && (ready == 0 || message->rank < 0)) std::abort();
  }
  void send_news(uint64_t connection, Frame frame) override { send(connection, std::move(frame)); }
  void close(uint64_t connection) override {
    if (!open.contains(connection)) std::abort();
    closing.insert(connection);
  }
  std::set<uint64_t> open, closing;
  int ready = 0;
};

Message message_of(Input& input) {
  Message message;
  message.type = static_cast<Message::Type>(1 + input.byte() % 13);
  message.rank = static_cast<int8_t>(input.byte());
  message.count = message.type == Message::Type::join ? input.byte() % 5 : 0;
  message.number = input.byte();
  message.code = static_cast<Code>(input.byte() % 9);
  message.name = std::string(input.byte() % 3, 'k');
  message.body = std::string(input.byte() % 3, 'v');
  return message;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  Input input(data, size);
  Connections connections;
  int completed = 0;
  Roster roster(input.byte() % 5, 1, connections, [&] { ++completed; });
  uint64_t generation = 8;  // a new connection has a new number
  uint64_t ids[8] = {0, 1, 2, 3, 4, 5, 6, 7};
  for (uint64_t id : ids) connections.open.insert(id);
  const auto end = [&](uint64_t& id) {
    connections.open.erase(id);
    roster.lost(id, "ended");
    if (roster.is_member(id)) std::abort();
    id = generation++;
    connections.open.insert(id);
  };
  while (!input.is_empty()) {
    const uint8_t what = input.byte();
    uint64_t& id = ids[what & 7];
    if (what >> 3 == 31 || connections.closing.contains(id) || !roster.take(id, "fuzz", message_of(input))) end(id);
    if (completed > 1 || (completed == 1) != roster.is_complete()) std::abort();
    if (roster.is_complete() && roster.all_told()) std::abort();
  }
  roster.announce_end(0, "over");
  return 0;
}
