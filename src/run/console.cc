#include "src/run/console.h"

#include <unistd.h>

#include "src/run/options.h"
#include "src/run/say.h"

namespace tutti::internal {

Result<std::unique_ptr<Console>> Console::create(bool tag) {
  auto console = std::make_unique<Console>();
  if (!tag) return console;
  auto pipes = RankPipes::create();
  TUTTI_RETURN_IF_ERROR(pipes.status());
  console->tagged_.emplace(Tagged{std::move(*pipes), Printer(STDOUT_FILENO, STDERR_FILENO, true)});
  return console;
}

Result<UniqueFd> Console::stream_of(int rank, Stream stream) {
  if (!tagged_) return UniqueFd();
  return tagged_->pipes.add(rank, stream);
}

void Console::say(const std::string& message) {
  const std::string line = launcher_line(message);
  if (tagged_)
    tagged_->printer.add_line(line);
  else
    print_error(line);
}

void Console::fail(int, const std::string& message, int running_count) {
  if (!message.empty()) say(message + others_end(running_count > 0));
}

void Console::add_polls(std::vector<pollfd>& polls) const {
  if (!tagged_) return;
  if (!tagged_->printer.is_full()) tagged_->pipes.add_polls(polls);
  tagged_->printer.add_polls(polls);
}

std::vector<Order> Console::serve() {
  if (!tagged_) return {};
  tagged_->pipes.serve(tagged_->printer);
  tagged_->printer.flush();
  const std::string fault = tagged_->printer.take_fault();
  if (fault.empty()) return {};
  return {{Order::Kind::fail, kExitLauncher, fault}};
}

void Console::take_rest() {
  if (!tagged_) return;
  tagged_->pipes.take_rest(tagged_->printer);
  tagged_->printer.flush();
}

}  // namespace tutti::internal
