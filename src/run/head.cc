#include "src/run/head.h"

#include <fmt/core.h>
#include <poll.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>

#include "src/run/children.h"
#include "src/run/say.h"
#include "src/run/signals.h"

namespace tutti::internal {
namespace {

constexpr int64_t kEndUs = 6'000'000;         // for agents, which give their ranks 2 s between SIGTERM and SIGKILL
constexpr int64_t kHangUpUs = 3'000'000;      // for connections to close
constexpr int64_t kKillRepeatUs = 1'000'000;  // until all have gone
constexpr int64_t kOutputUs = 2'000'000;      // for the rest of the output, where the job was cut short
constexpr size_t kInputBytes = size_t{64} << 10;

bool ends_a_job(int signal) { return signal == SIGINT || signal == SIGTERM || signal == SIGHUP || signal == SIGQUIT; }

}  // namespace

Head::Head(const RunOptions& options, const Inherited& inherited, UniqueFd front, UniqueFd input)
    : options_(options),
      inherited_(inherited),
      front_(std::move(front)),
      input_(std::move(input)),
      printer_(STDOUT_FILENO, STDERR_FILENO, options.tag_output) {}

int Head::run() {
  if (const Status status = prepare(); !status.ok()) fail(kExitLauncher, status.message());
  loop();
  // An agent on this machine that was killed has left its ranks to us.
  constexpr int64_t kLimitUs = 10'000'000;
  if (!kill_all_children(Deadline::after_us(kLimitUs)))
    print_error(launcher_line("some processes do not end by SIGKILL"));
  return failure_.value_or(0);
}

// ---- While it runs ----------------------------------------------------------------------------------------------

void Head::loop() {
  while (true) {
    reap();
    serve_hosts();
    serve_input();
    serve_output();
    advance();
    if (is_over()) return;
    wait_for_something();
    serve_signals();
  }
}

bool Head::is_over() const {
  const bool all_gone = std::ranges::all_of(hosts_, [](const auto& host) { return host->is_gone(); });
  return all_gone && (printer_.is_flushed() || abandon_output_.passed());
}

void Head::serve_hosts() {
  for (const auto& host : hosts_) {
    host->serve(!printer_.is_full());
    while (const auto message = host->next()) obey(*host, *message);
    for (const std::string& line : host->take_lines()) say(fmt::format("{}: {}", host->name(), line));
    if (const auto loss = host->take_loss(); loss && stage_ == Stage::running)
      fail(kExitLauncher, fmt::format("{}: {}{}", host->name(), *loss, others_end(others_run(*host))));
  }
}

void Head::obey(Host& host, const LinkMessage& message) {
  const auto stream = message.number == 0 ? Stream::out : Stream::err;
  switch (message.type) {
    case LinkMessage::Type::output:
      if (message.text.empty()) return printer_.finish(message.rank, stream);
      return printer_.take(message.rank, stream, message.text);
    case LinkMessage::Type::want_input: input_wanted_ = true; return;
    case LinkMessage::Type::input_closed: input_ = UniqueFd(); return;
    case LinkMessage::Type::say: return say(fmt::format("{}: {}", host.name(), message.text));
    case LinkMessage::Type::fail:
      if (failure_) return;
      failure_ = message.number;
      if (!message.text.empty())
        say(fmt::format("{}: {}{}", host.name(), message.text, others_end(message.rank > 0 || others_run(host))));
      return enter(Stage::ending);
    default: return;
  }
}

bool Head::others_run(const Host& host) const {
  return std::ranges::any_of(hosts_, [&](const auto& one) {
    return one.get() != &host && one->is_started() && !one->is_ended() && !one->is_gone();
  });
}

// Piece by piece, as rank 0 takes it: what it does not read stays where it is.
void Head::serve_input() {
  if (!input_ || !input_wanted_ || hosts_.empty()) return;
  pollfd poll_fd{input_.get(), POLLIN, 0};
  if (poll(&poll_fd, 1, 0) != 1) return;
  char buffer[kInputBytes];
  const ssize_t bytes = read(input_.get(), buffer, sizeof buffer);
  if (bytes < 0 && (errno == EINTR || errno == EAGAIN)) return;
  input_wanted_ = false;
  if (bytes <= 0) input_ = UniqueFd();
  hosts_.front()->put({.type = LinkMessage::Type::input,
                       .text = std::string(buffer, static_cast<size_t>(std::max<ssize_t>(bytes, 0)))});
}

void Head::serve_output() {
  printer_.flush();
  if (const std::string fault = printer_.take_fault(); !fault.empty()) fail(kExitLauncher, fault);
  for (const Stream stream : {Stream::out, Stream::err}) {
    const int number = static_cast<int>(stream);
    if (broken_told_[number] || !printer_.is_broken(stream)) continue;
    broken_told_[number] = true;
    for (const auto& host : hosts_) host->put({.type = LinkMessage::Type::output_broken, .number = number});
  }
}

void Head::wait_for_something() {
  constexpr int kLongestWaitMs = 60'000;
  std::vector<pollfd> polls{{signals_.get(), POLLIN, 0}};
  if (front_) polls.push_back({front_.get(), POLLIN, 0});
  printer_.add_polls(polls);
  if (input_ && input_wanted_) polls.push_back({input_.get(), POLLIN, 0});
  Deadline wake = std::min({stage_end_, job_end_, abandon_output_});
  for (const auto& host : hosts_) {
    host->add_polls(polls, !printer_.is_full());
    wake = std::min(wake, host->wake_at());
  }
  poll(polls.data(), polls.size(), wake.poll_ms(kLongestWaitMs));
  if (front_ && polls[1].revents != 0) {
    front_ = UniqueFd();
    abandon_output_ = Deadline::after_us(kOutputUs);
    fail(kExitSignalBase + SIGKILL, "its first process was killed: ending the ranks", Stage::hanging_up);
  }
}

void Head::serve_signals() {
  while (const auto signal = read_signal(signals_.get()))
    if (*signal != SIGCHLD) pass_on(*signal);
}

void Head::pass_on(int signal) {
  for (const auto& host : hosts_) host->put({.type = LinkMessage::Type::signal, .number = signal});
  if (!ends_a_job(signal)) return;
  // Who says it twice does not want to wait.
  if (stage_ != Stage::running) return enter(Stage::hanging_up);
  if (std::ranges::all_of(hosts_, [](const auto& host) { return host->is_started(); })) return;
  failure_ = kExitSignalBase + signal;
  enter(Stage::ending);
}

void Head::reap() {
  int status = 0;
  for (pid_t pid; (pid = waitpid(-1, &status, WNOHANG)) > 0;)
    for (const auto& host : hosts_)
      if (host->pid() == pid) host->on_exit(status);
}

// ---- The end ----------------------------------------------------------------------------------------------------

void Head::fail(int status, const std::string& message, Stage stage) {
  say(message);
  if (!failure_) failure_ = status;
  enter(stage);
}

void Head::enter(Stage stage) {
  if (stage <= stage_) return;
  stage_ = stage;
  job_end_ = Deadline::never();
  switch (stage) {
    case Stage::running: return;
    case Stage::ending:
      stage_end_ = Deadline::after_us(kEndUs);
      for (const auto& host : hosts_)
        if (host->is_started())
          host->put({.type = LinkMessage::Type::end});
        else
          host->kill();
      return;
    case Stage::hanging_up:
      stage_end_ = Deadline::after_us(kHangUpUs);
      for (const auto& host : hosts_) host->hang_up();
      return;
    case Stage::killing: stage_end_ = Deadline::after_us(0);
  }
}

void Head::advance() {
  if (job_end_.passed()) {
    abandon_output_ = Deadline::after_us(kEndUs + kOutputUs);
    return fail(kExitTimeout, fmt::format("the job is not done after --timeout {} s: ending it",
                                          static_cast<double>(options_.timeout_us) * 1e-6));
  }
  if (!stage_end_.passed()) return;
  if (stage_ == Stage::ending) return enter(Stage::hanging_up);
  if (stage_ == Stage::hanging_up) enter(Stage::killing);
  for (const auto& host : hosts_)
    if (!host->is_gone()) host->kill();
  stage_end_ = Deadline::after_us(kKillRepeatUs);
}

}  // namespace tutti::internal
