// The parts of tutti-run that can be looked at alone.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <random>
#include <string>
#include <vector>

#include "launched.h"
#include "src/run/children.h"
#include "src/run/environment.h"
#include "src/run/line_tagger.h"
#include "src/run/options.h"
#include "src/run/spawn.h"

namespace tutti::internal {
namespace {

using ::testing::AllOf;
using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

// From TUTTI_TEST_SEED, else a new one; printed.
std::mt19937 seeded() {
  const char* given = std::getenv("TUTTI_TEST_SEED");
  const unsigned seed = given ? static_cast<unsigned>(std::atoll(given)) : std::random_device()();
  std::printf("TUTTI_TEST_SEED=%u\n", seed);
  return std::mt19937(seed);
}

std::string tagged(int rank, const std::vector<std::string>& chunks) {
  LineTagger tagger(rank);
  std::string out;
  for (const std::string& chunk : chunks) tagger.feed(chunk.data(), chunk.size(), out);
  tagger.finish(out);
  return out;
}

TEST(LineTagger, BeginsEachLineWithTheRank) {
  EXPECT_EQ(tagged(3, {"one\ntwo\n"}), "[3] one\n[3] two\n");
  EXPECT_EQ(tagged(12, {"o", "n", "e\nt", "wo"}), "[12] one\n[12] two\n") << "however it comes in pieces";
  EXPECT_EQ(tagged(0, {"\n\n", "x"}), "[0] \n[0] \n[0] x\n");
  EXPECT_EQ(tagged(0, {}), "");
}

TEST(LineTagger, KeepsALineBackUntilItIsWhole) {
  LineTagger tagger(1);
  std::string out;
  tagger.feed("half", 4, out);
  EXPECT_EQ(out, "");
  tagger.feed(" done\nnext", 10, out);
  EXPECT_EQ(out, "[1] half done\n");
}

TEST(LineTagger, ContinuesALineThatIsTooLongOnANewOne) {
  const std::string longest(LineTagger::kLongestLine, 'x');
  EXPECT_EQ(tagged(1, {longest, "\nnext\n"}), "[1] " + longest + "\n[1] next\n") << "the longest is one line";
  EXPECT_EQ(tagged(1, {longest + "\nnext\n"}), "[1] " + longest + "\n[1] next\n");
  EXPECT_EQ(tagged(1, {longest}), "[1] " + longest + "\n");
  EXPECT_EQ(tagged(1, {longest, "y\n"}), "[1] " + longest + "\n[1] y\n");
  EXPECT_EQ(tagged(1, {longest + longest + "y"}), "[1] " + longest + "\n[1] " + longest + "\n[1] y\n");
}

TEST(LineTagger, GivesTheSameForAnyCut) {
  std::mt19937 random = seeded();
  for (int round = 0; round < 50; ++round) {
    std::string text(random() % 3000, '\0');
    for (char& byte : text) byte = random() % 20 == 0 ? '\n' : static_cast<char>(random());
    std::vector<std::string> chunks;
    for (size_t at = 0; at < text.size();) {
      chunks.push_back(text.substr(at, random() % 100));
      at += chunks.back().size();
    }
    EXPECT_EQ(tagged(7, chunks), tagged(7, {text}));
  }
}

TEST(RankEnvironment, HoldsTheJobsNamesOnce) {
  setenv("RANK", "99", 1);
  const std::vector<std::string> additions{"MINE=1", "MINE=2"};
  const RankEnvironment environment({4, 1}, {8, "10.0.0.1", 12345, "s3cret"}, additions);
  unsetenv("RANK");
  std::vector<std::string> variables;
  for (char* const* next = environment.pointers(); *next; ++next) variables.emplace_back(*next);
  for (const char* expected : {"RANK=4", "WORLD_SIZE=8", "LOCAL_RANK=1", "MASTER_ADDR=10.0.0.1", "MASTER_PORT=12345",
                               "TUTTI_SECRET=s3cret", "TUTTI_STORE_SERVED=1", "MINE=2"}) {
    const std::string name = std::string(expected).substr(0, std::string(expected).find('=') + 1);
    EXPECT_THAT(variables, Contains(expected));
    EXPECT_EQ(std::ranges::count_if(variables, [&](const auto& one) { return one.starts_with(name); }), 1) << name;
  }
}

pid_t waiting_child() {
  const pid_t pid = fork();
  if (pid == 0)
    while (true) pause();
  return pid;
}

TEST(DeathWatch, TellsTheOrderOfDeathWhateverTheOrderOfBirth) {
  std::mt19937 random = seeded();
  auto watch = DeathWatch::create();
  ASSERT_TRUE(watch.ok());
  std::vector<pid_t> order;
  for (int i = 0; i < 100; ++i) {
    order.push_back(waiting_child());
    ASSERT_TRUE(watch->add(order.back()).ok());
  }
  EXPECT_THAT(watch->take(), IsEmpty());
  std::ranges::shuffle(order, random);
  for (const pid_t pid : order) {
    kill(pid, SIGKILL);
    EXPECT_TRUE(tutti_test::soon([&] { return tutti_test::state_of(pid) == 'Z'; }));
  }
  EXPECT_EQ(watch->take(), order);
  EXPECT_THAT(watch->take(), IsEmpty()) << "each is told once";
  for (const pid_t pid : order) waitpid(pid, nullptr, 0);
}

TEST(DeathWatch, TellsOfOneThatHadEndedBeforeItWasAdded) {
  auto watch = DeathWatch::create();
  ASSERT_TRUE(watch.ok());
  const pid_t pid = waiting_child();
  kill(pid, SIGKILL);
  ASSERT_TRUE(tutti_test::soon([&] { return tutti_test::state_of(pid) == 'Z'; }));
  ASSERT_TRUE(watch->add(pid).ok());
  EXPECT_THAT(watch->take(), ElementsAre(pid));
  waitpid(pid, nullptr, 0);
}

Started start(const std::vector<std::string>& command, const std::vector<std::string>& variables) {
  std::vector<char*> environment;
  for (const std::string& variable : variables) environment.push_back(const_cast<char*>(variable.c_str()));
  environment.push_back(nullptr);
  Inherited inherited;
  sigemptyset(&inherited.mask);
  getrlimit(RLIMIT_NOFILE, &inherited.files);
  Start request;
  request.command = &command;
  request.environment = environment.data();
  request.inherited = &inherited;
  return start_process(request);
}

TEST(Spawn, StartsALeaderOfASessionOfItsOwn) {
  const Started started = start({"sleep", "100"}, {});
  ASSERT_GT(started.pid, 0) << started.failed_call;
  EXPECT_EQ(getsid(started.pid), started.pid);
  EXPECT_EQ(getpgid(started.pid), started.pid);
  kill(started.pid, SIGKILL);
  waitpid(started.pid, nullptr, 0);
}

TEST(Spawn, AnEnvironmentThatIsTooLargeIsNamedWithItsSize) {
  const std::vector<std::string> command{"true"};
  const std::string large = "LARGE=" + std::string(300'000, 'x');
  const Started one_piece = start(command, {large});
  EXPECT_EQ(one_piece.pid, -1);
  EXPECT_EQ(one_piece.error, E2BIG);
  const StartFailure failure = explain(one_piece, command, large.size());
  EXPECT_EQ(failure.exit_status, kExitNotExecutable);
  EXPECT_THAT(failure.message,
              AllOf(HasSubstr("cannot start 'true': its environment of 300006 bytes and arguments of 13"),
                    HasSubstr("Argument list too long")));
  EXPECT_EQ(waitpid(-1, nullptr, WNOHANG), -1) << "no process is left";
}

TEST(Children, AreFoundAndEndedDownToTheLast) {
  const pid_t pid = fork();
  if (pid == 0) {
    // A child, a grandchild that loses its parent, and one in a session of its own.
    if (!become_subreaper().ok()) _exit(2);
    if (has_children() || !list_children().empty()) _exit(3);
    waiting_child();
    if (fork() == 0) {
      waiting_child();
      if (fork() == 0) {
        setsid();
        while (true) pause();
      }
      _exit(0);
    }
    if (!tutti_test::soon([] { return list_children().size() >= 3; })) _exit(4);
    if (!kill_all_children(Deadline::after_us(20'000'000))) _exit(5);
    _exit(has_children() ? 6 : 0);
  }
  int status = 0;
  waitpid(pid, &status, 0);
  EXPECT_EQ(status, 0);
}

}  // namespace
}  // namespace tutti::internal
