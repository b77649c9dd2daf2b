#include "src/run/host.h"

#include <fcntl.h>
#include <fmt/core.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <sstream>
#include <utility>

#include "src/run/options.h"

namespace tutti::internal {
namespace {

constexpr int64_t kPartingUs = 2'000'000;  // for a child whose agent has ended, or for the rest of what it wrote
constexpr size_t kMostErrorText = size_t{64} << 10;

struct Pipe {
  UniqueFd reader, writer;
  static Result<Pipe> create() {
    int ends[2];
    if (pipe2(ends, O_CLOEXEC) != 0) return Status::system(Code::out_of_resources, "pipe to a host", errno);
    return Pipe{UniqueFd(ends[0]), UniqueFd(ends[1])};
  }
};

std::string describe_exit(int wait_status) {
  if (WIFSIGNALED(wait_status)) return fmt::format("was ended by signal {}", WTERMSIG(wait_status));
  return fmt::format("ended with status {}", WEXITSTATUS(wait_status));
}

std::vector<std::string> lines_of(const std::string& text) {
  std::vector<std::string> lines;
  std::istringstream stream(text);
  for (std::string line; std::getline(stream, line);) {
    while (!line.empty() && line.back() == '\r') line.pop_back();
    if (!line.empty()) lines.push_back(line);
  }
  return lines;
}

}  // namespace

Result<std::unique_ptr<Host>> Host::start(Plan plan, const Inherited& inherited) {
  auto in = Pipe::create(), out = Pipe::create(), err = Pipe::create();
  for (const Status& status : {in.status(), out.status(), err.status()}) TUTTI_RETURN_IF_ERROR(status);
  fcntl(err->reader.get(), F_SETFL, O_NONBLOCK);
  Start start;
  start.command = &plan.command;
  start.environment = environ;
  start.inherited = &inherited;
  start.in = in->reader.get();
  start.out = out->writer.get();
  start.err = err->writer.get();
  const Started started = start_process(start);
  if (started.pid < 0)
    return Status(Code::unsupported, fmt::format("{}: {}", plan.name, explain(started, plan.command, 0).message));
  Link link(Link::Side::head, std::move(out->reader), std::move(in->writer), plan.silence_us);
  std::unique_ptr<Host> host(new Host(std::move(plan), std::move(link), std::move(err->reader)));
  host->pid_ = started.pid;
  return host;
}

std::optional<LinkMessage> Host::next() {
  if (link_.is_greeted() && link_.is_open() && !std::exchange(started_, true))
    link_.put({.type = LinkMessage::Type::job, .text = plan_.job});
  auto message = link_.next();
  if (!message) watch_link();
  if (!message || message->type != LinkMessage::Type::ended) return message;
  ended_ = true;
  link_.close_out();
  limit_ = Deadline::after_us(kPartingUs);
  return std::nullopt;
}

std::vector<std::string> Host::take_lines() {
  if (!started_) return {};
  const size_t whole = error_text_.rfind('\n') + 1;  // 0: none
  const std::string text = error_text_.substr(0, whole);
  error_text_.erase(0, whole);
  return lines_of(text);
}

void Host::add_polls(std::vector<pollfd>& polls, bool may_read) const {
  link_.add_polls(polls, may_read);
  if (errors_) polls.push_back({errors_.get(), POLLIN, 0});
}

void Host::serve(bool may_read) {
  read_errors();
  link_.serve(may_read);
  watch_link();
  if (!limit_.passed()) return;
  limit_ = Deadline::never();
  kill();
}

Deadline Host::wake_at() const { return std::min(link_.wake_at(), limit_); }

void Host::on_exit(int wait_status) {
  exit_ = wait_status;
  read_errors();
  limit_ = Deadline::after_us(kPartingUs);
}

// A child whose connection has ended may still say why; one whose connection is dead would not notice for long.
void Host::watch_link() {
  if (link_.is_open() || std::exchange(link_ended_, true) || exit_) return;
  limit_ = Deadline::after_us(link_.is_closed() ? kPartingUs : 0);
}

void Host::kill() {
  if (exit_) return link_.close_in();
  was_killed_ = true;
  ::kill(-pid_, SIGKILL);
}

std::optional<std::string> Host::take_loss() {
  if (ended_ || !is_gone() || std::exchange(loss_told_, true)) return std::nullopt;
  return describe_loss();
}

void Host::read_errors() {
  char buffer[4096];
  while (errors_) {
    const ssize_t bytes = read(errors_.get(), buffer, sizeof buffer);
    if (bytes < 0 && errno == EINTR) continue;
    if (bytes < 0 && errno == EAGAIN) return;
    if (bytes <= 0) {
      errors_ = UniqueFd();
      return;
    }
    error_text_.append(buffer, static_cast<size_t>(bytes));
    if (error_text_.size() > kMostErrorText) error_text_.erase(0, error_text_.size() - kMostErrorText);
  }
}

std::string Host::describe_loss() const {
  std::string said;
  for (const std::string& line : lines_of(error_text_)) said += (said.empty() ? ": " : "; ") + line;
  if (was_killed_) return link_.why() + said;
  const std::string exit = fmt::format("{} {}", plan_.command.front(), describe_exit(*exit_));
  if (link_.is_greeted()) return fmt::format("the connection is lost: {}{}", exit, said);
  const bool is_missing = WIFEXITED(*exit_) && WEXITSTATUS(*exit_) == kExitNotFound;
  return fmt::format("{} before tutti-run ran there{}{}", exit, said,
                     is_missing ? " (--remote-path says where it is on other hosts)" : "");
}

}  // namespace tutti::internal
