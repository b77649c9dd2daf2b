// One rank of the store's process tests, by the environment, without the rest of the library. Prints what happens to
// it, a line each: "joined HOST", "event KIND RANK TEXT", "status CODE RANK TEXT", "left".
//
//   store_worker watch            joins and reports events until the store is lost or all others are gone
//   store_worker rounds COUNT     joins, exchanges and leaves COUNT times, under a storm of timer signals
//   store_worker once [SOFT HARD] joins, exchanges and leaves, with these limits of descriptors
//   store_worker fork             as watch; its child lives on holding what fork copied
#include <poll.h>
#include <sys/resource.h>
#include <sys/time.h>
#include <tutti/tutti.h>
#include <unistd.h>

#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <string>

#include "src/core/store/session.h"

namespace {

using namespace tutti::internal;

void say(const std::string& line) {
  std::printf("%s\n", line.c_str());
  std::fflush(stdout);
}

[[noreturn]] void end_with(const Status& status) {
  say(std::string("status ") + code_name(status.code()) + " " + std::to_string(status.failed_rank()) + " " +
      status.message());
  std::_Exit(static_cast<int>(status.code()));
}

std::unique_ptr<Session> join() {
  auto config = Config::load({});
  if (!config) end_with(config.status());
  auto place = find_rendezvous(-1, 0, "", *config);
  if (!place) end_with(place.status());
  auto session = Session::join({*place, "1.0", ""}, Deadline::after_us(config->join_timeout_us()));
  if (!session) end_with(session.status());
  return std::move(*session);
}

void exchange_values(Session& session, const std::string& value) {
  auto values = session.exchange("value", value, Deadline::after_us(60'000'000));
  if (!values) end_with(values.status());
  for (const std::string& other : *values)
    if (other != value) end_with(Status(Code::internal, "a value of another round: " + other));
}

void leave(Session& session) {
  if (const Status left = session.leave(Deadline::after_us(60'000'000)); !left.ok()) end_with(left);
}

void watch(Session& session) {
  int others = session.size() - 1;
  bool lost = false;
  while (others > 0 && !lost) {
    wait_for(session.fd(), POLLIN, Deadline::never());
    session.serve([&](const Event& event) {
      say("event " + std::to_string(static_cast<int>(event.kind)) + " " + std::to_string(event.rank) + " " +
          event.text);
      lost = lost || event.rank == 0 || event.kind == Event::Kind::store_lost;
      --others;
    });
  }
}

void start_signal_storm() {
  struct sigaction action {};
  action.sa_handler = [](int) {};  // without SA_RESTART: every blocking call may be cut short
  sigaction(SIGALRM, &action, nullptr);
  const itimerval every{{0, 1000}, {0, 1000}};
  setitimer(ITIMER_REAL, &every, nullptr);
}

}  // namespace

int main(int argc, char** argv) {
  const std::string what = argc > 1 ? argv[1] : "once";
  const int rounds = what == "rounds" ? std::atoi(argv[2]) : 1;
  if (what == "rounds") start_signal_storm();
  if (what == "once" && argc > 3) {
    const rlimit limit{std::strtoul(argv[2], nullptr, 10), std::strtoul(argv[3], nullptr, 10)};
    setrlimit(RLIMIT_NOFILE, &limit);
  }
  for (int round = 0; round < rounds; ++round) {
    auto session = join();
    exchange_values(*session, std::to_string(round));
    if (round == 0) say("joined " + session->local_host());
    if (what == "fork" && fork() == 0) {
      sleep(30);
      _exit(0);
    }
    if (what == "watch" || what == "fork") watch(*session);
    leave(*session);
  }
  say("left");
  return 0;
}
