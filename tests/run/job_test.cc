// tutti-run as a user starts it: what ranks find, and what the job ends with.
#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <sstream>
#include <string>
#include <vector>

#include "launched.h"

namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;
using ::testing::UnorderedElementsAre;
using tutti_test::Launched;

std::vector<std::string> lines_of(const std::string& text) {
  std::vector<std::string> lines;
  std::istringstream stream(text);
  for (std::string line; std::getline(stream, line);) lines.push_back(line);
  return lines;
}

std::vector<std::string> shell(int ranks, const std::string& script, std::vector<std::string> options = {}) {
  std::vector<std::string> arguments{"-n", std::to_string(ranks)};
  arguments.insert(arguments.end(), options.begin(), options.end());
  for (const char* word : {"--", "sh", "-c"}) arguments.emplace_back(word);
  arguments.push_back(script);
  return arguments;
}

TEST(Job, EachRankKnowsItsPlace) {
  Launched run(shell(3, "echo $RANK of $WORLD_SIZE, local $LOCAL_RANK, store at $MASTER_ADDR"));
  EXPECT_EQ(run.wait(), 0) << run.err();
  EXPECT_THAT(lines_of(run.out()),
              UnorderedElementsAre("0 of 3, local 0, store at 127.0.0.1", "1 of 3, local 1, store at 127.0.0.1",
                                   "2 of 3, local 2, store at 127.0.0.1"));
  EXPECT_EQ(run.err(), "");
  EXPECT_TRUE(run.is_all_gone());
}

TEST(Job, AllRanksShareAStoreAndASecretThatEachJobHasNew) {
  const auto script = shell(2, "echo $MASTER_PORT $TUTTI_SECRET $TUTTI_STORE_SERVED");
  Launched first(script), second(script);
  EXPECT_EQ(first.wait(), 0);
  EXPECT_EQ(second.wait(), 0);
  const auto a = lines_of(first.out()), b = lines_of(second.out());
  ASSERT_EQ(a.size(), 2u);
  EXPECT_EQ(a[0], a[1]);
  EXPECT_THAT(a[0], testing::MatchesRegex("[1-9][0-9]* [0-9a-f]{64} 1"));
  EXPECT_NE(a[0].substr(a[0].find(' ')), b[0].substr(b[0].find(' ')));
}

TEST(Job, ArgumentsAfterTheProgramAreItsOwn) {
  Launched run({"-n", "1", "printf", "<%s>", "-n", "--help", "--", "a b", ""});
  EXPECT_EQ(run.wait(), 0);
  EXPECT_EQ(run.out(), "<-n><--help><--><a b><>");
}

TEST(Job, EnvAddsVariablesAndWhatTheJobNeedsGoesBeforeWhatWasThere) {
  Launched::Options options;
  options.environment = {"RANK=17", "TUTTI_STORE_FILE=/elsewhere", "TORCHELASTIC_USE_AGENT_STORE=True", "KEPT=yes"};
  Launched run(shell(1, "echo $RANK,$TUTTI_STORE_FILE,$TORCHELASTIC_USE_AGENT_STORE,$KEPT,$A,$B",
                     {"--env", "A=1=2", "--env", "B=old", "--env", "B=new word"}),
               options);
  EXPECT_EQ(run.wait(), 0);
  EXPECT_EQ(run.out(), "0,,,yes,1=2,new word\n");
}

TEST(Job, ItsStatusIsThatOfTheRankThatFailed) {
  Launched run(shell(3, "[ $RANK = 1 ] && exit 42; exec sleep 100"));
  EXPECT_EQ(run.wait(), 42);
  EXPECT_THAT(run.err(), AllOf(HasSubstr("tutti-run: rank 1 (process "),
                               HasSubstr(") ended with status 42: ending the others\n")));
  EXPECT_TRUE(run.is_all_gone());
}

// Ranks leave a file each in a folder, and wait for each other's.
class Folder {
 public:
  Folder() {
    char name[] = "/tmp/tutti_run_test_XXXXXX";
    path_ = mkdtemp(name);
  }
  ~Folder() { std::filesystem::remove_all(path_); }
  Folder(const Folder&) = delete;
  Folder& operator=(const Folder&) = delete;
  const std::string& path() const { return path_; }
  // Shell: says that this rank is ready; waits for `ranks` to be.
  std::string ready() const { return "touch " + path_ + "/$RANK; "; }
  std::string wait_for(int ranks) const {
    return "until [ $(ls " + path_ + " | wc -l) = " + std::to_string(ranks) + " ]; do sleep 0.01; done; ";
  }

 private:
  std::string path_;
};

TEST(Job, WhatFailsLaterDoesNotCount) {
  const Folder folder;
  Launched run(shell(4, "trap 'exit 9' TERM; " + folder.ready() + folder.wait_for(4) +
                            "[ $RANK = 2 ] && exit 5; while :; do sleep 0.01; done"));
  EXPECT_EQ(run.wait(), 5);
  EXPECT_THAT(run.err(), AllOf(HasSubstr("rank 2 "), Not(HasSubstr("rank 1 ")))) << "one line about one failure";
  EXPECT_TRUE(run.is_all_gone());
}

TEST(Job, ARankEndedByASignalGives128AndItsNumber) {
  const Folder folder;
  Launched run(shell(2, folder.ready() + folder.wait_for(2) + "[ $RANK = 0 ] && kill -9 $$; exec sleep 100"));
  EXPECT_EQ(run.wait(), 128 + SIGKILL);
  EXPECT_THAT(run.err(), HasSubstr("rank 0 (process "));
  EXPECT_THAT(run.err(), HasSubstr("was ended by signal 9 (Killed): ending the others"));
  EXPECT_TRUE(run.is_all_gone());
}

TEST(Job, WhenOneFailsTheOthersMayCleanUp) {
  const Folder folder;
  Launched run(shell(3, "trap 'echo cleaned $RANK; exit 0' TERM; " + folder.ready() + folder.wait_for(3) +
                            "[ $RANK = 0 ] && exit 3; while :; do sleep 0.01; done"));
  EXPECT_EQ(run.wait(), 3);
  EXPECT_THAT(lines_of(run.out()), UnorderedElementsAre("cleaned 1", "cleaned 2"));
  EXPECT_TRUE(run.is_all_gone());
}

TEST(Job, WhoDoesNotHeedSigtermIsKilled) {
  const Folder folder;
  Launched run(shell(2, "trap '' TERM; " + folder.ready() + folder.wait_for(2) +
                            "[ $RANK = 1 ] && exit 4; while :; do sleep 0.05; done"));
  EXPECT_EQ(run.wait(), 4);
  EXPECT_TRUE(run.is_all_gone());
}

TEST(Job, AStoppedRankEndsToo) {
  Launched run(shell(2, "if [ $RANK = 0 ]; then echo $$; kill -STOP $$; fi; read go; exit 6"));
  ASSERT_TRUE(run.wait_for_output("\n"));
  EXPECT_EQ(run.wait(), 6);
  EXPECT_TRUE(run.is_all_gone());
}

TEST(Job, TimeoutEndsAllRanksAndSaysSo) {
  Launched run(shell(3, "[ $RANK = 1 ] && trap '' TERM; while :; do sleep 0.05; done", {"--timeout", "0.5"}));
  EXPECT_EQ(run.wait(), 124);
  EXPECT_EQ(run.err(), "tutti-run: the job is not done after --timeout 0.5 s: ending it\n");
  EXPECT_TRUE(run.is_all_gone());
}

TEST(Job, ThatIsDoneInTimeMeetsNoTimeout) {
  Launched run(shell(2, "exit 0", {"--timeout", "1000"}));
  EXPECT_EQ(run.wait(), 0);
  EXPECT_EQ(run.err(), "");
}

TEST(Job, ManyRanksStartAndEnd) {
  Launched run(shell(60, "echo $RANK"));
  EXPECT_EQ(run.wait(), 0) << run.err();
  EXPECT_EQ(lines_of(run.out()).size(), 60u);
}

TEST(Program, ThatIsNowhereGives127) {
  Launched run({"-n", "4", "no-such-program-anywhere"});
  EXPECT_EQ(run.wait(), 127);
  EXPECT_THAT(run.err(), HasSubstr("cannot start 'no-such-program-anywhere': no folder of its PATH has it"));
  Launched path({"-n", "4", "./no/such/program"});
  EXPECT_EQ(path.wait(), 127);
  EXPECT_EQ(path.err(), "tutti-run: cannot start './no/such/program': No such file or directory\n");
}

TEST(Program, IsSearchedForInTheRanksPath) {
  const std::string folder = std::filesystem::path(TUTTI_RUN).parent_path();
  Launched found({"-n", "2", "--env", "PATH=" + folder, "tutti-run", "--version"});
  EXPECT_EQ(found.wait(), 0) << found.err();
  Launched hidden({"-n", "2", "--env", "PATH=/nowhere", "true"});
  EXPECT_EQ(hidden.wait(), 127);
}

TEST(Program, ThatIsNotExecutableGives126) {
  Launched run({"-n", "2", "/etc/passwd"});
  EXPECT_EQ(run.wait(), 126);
  EXPECT_EQ(run.err(), "tutti-run: cannot start '/etc/passwd': Permission denied\n");
}

TEST(Program, WhoseInterpreterIsMissingIsNamed) {
  char name[] = "/tmp/tutti_run_script_XXXXXX";
  const int fd = mkstemp(name);
  const std::string text = "#!/no/such/interpreter\n";
  ASSERT_EQ(write(fd, text.data(), text.size()), static_cast<ssize_t>(text.size()));
  fchmod(fd, 0700);
  close(fd);
  Launched run({"-n", "1", name});
  EXPECT_EQ(run.wait(), 127);
  EXPECT_THAT(run.err(), HasSubstr("the interpreter that it names is missing"));
  unlink(name);
}

TEST(Program, FindsWhatItWouldWithoutTheLauncher) {
  // The signal mask, limits, and no descriptor of the launcher's. The shell's own descriptors are the same in both.
  const std::string script = "grep ^SigBlk /proc/self/status; ls /proc/$$/fd; ulimit -n; umask; pwd";
  FILE* pipe = popen(script.c_str(), "r");
  std::string expected;
  for (char buffer[4096]; const size_t bytes = fread(buffer, 1, sizeof buffer, pipe);) expected.append(buffer, bytes);
  pclose(pipe);
  Launched run(shell(1, script));
  EXPECT_EQ(run.wait(), 0);
  EXPECT_EQ(run.out(), expected);
}

TEST(Input, GoesToRankZeroAlone) {
  Launched::Options options;
  options.input = "one\ntwo\n";
  Launched run(shell(3, "echo $RANK: $(cat)"), options);
  EXPECT_EQ(run.wait(), 0);
  EXPECT_THAT(lines_of(run.out()), UnorderedElementsAre("0: one two", "1:", "2:"));
}

TEST(Input, ItsWriterLearnsThatRankZeroReadsNoMore) {
  int ends[2];
  ASSERT_EQ(pipe2(ends, O_CLOEXEC), 0);
  Launched::Options options;
  options.before_exec = [&] { dup2(ends[0], STDIN_FILENO); };
  Launched run(shell(2, "[ $RANK = 0 ] && exit 0; echo up; exec sleep 100"), options);
  close(ends[0]);
  EXPECT_TRUE(run.wait_for_output("up"));
  signal(SIGPIPE, SIG_IGN);
  EXPECT_TRUE(tutti_test::soon([&] { return write(ends[1], "x", 1) < 0; }));
  signal(SIGPIPE, SIG_DFL);
  close(ends[1]);
}

TEST(Input, ClosedStandardDescriptorsDoNoHarm) {
  Launched::Options options;
  options.before_exec = [] { close(STDIN_FILENO); };
  Launched run(shell(2, "cat; echo $RANK"), options);
  EXPECT_EQ(run.wait(), 0) << run.err();
  EXPECT_THAT(lines_of(run.out()), UnorderedElementsAre("0", "1"));
}

struct BadOptions {
  std::vector<std::string> arguments;
  std::string message;
};

class Usage : public ::testing::TestWithParam<BadOptions> {};

TEST_P(Usage, IsExplainedAndNothingIsStarted) {
  Launched run(GetParam().arguments);
  EXPECT_EQ(run.wait(), 2);
  EXPECT_EQ(run.out(), "");
  EXPECT_EQ(run.err(), "tutti-run: " + GetParam().message + "\nTry 'tutti-run --help'.\n");
}

const std::string kRanks = " is no number of ranks: it must be a whole number from 1 to 4096";
const std::string kTime = " is no time: it must be seconds above 0, as in 1.5, or none";

INSTANTIATE_TEST_SUITE_P(
    Bad, Usage,
    ::testing::Values(
        BadOptions{{"echo", "started"}, "how many ranks? -n, --hosts or --hostfile says it"},
        BadOptions{{"-n", "2"}, "no program was given"},
        BadOptions{{"--hosts", "", "true"},
                   "--hosts: '' names no host: it must be a name, an IPv4 address, or an IPv6 address in [ ]"},
        BadOptions{{"-n", "2", "--ssh-port", "22", "true"}, "--ssh-port is of no use without --hosts or --hostfile"},
        BadOptions{{"-n", "2", "--"}, "no program was given"}, BadOptions{{"-n", "0", "echo"}, "--ranks: '0'" + kRanks},
        BadOptions{{"-n", "-1", "echo"}, "--ranks: '-1'" + kRanks},
        BadOptions{{"-n", "", "echo"}, "--ranks: ''" + kRanks},
        BadOptions{{"-n", "4x", "echo"}, "--ranks: '4x'" + kRanks},
        BadOptions{{"-n", "4097", "echo"}, "--ranks: '4097'" + kRanks},
        BadOptions{{"--ranks", "4294967298", "echo"}, "--ranks: '4294967298'" + kRanks},
        BadOptions{{"-n", "2", "--bind", "socket", "echo"},
                   "--bind: 'socket' is no binding: it must be core, l3, numa, package or none"},
        BadOptions{{"-n", "2", "--timeout", "0", "echo"}, "--timeout: '0'" + kTime},
        BadOptions{{"-n", "2", "--timeout", "-3", "echo"}, "--timeout: '-3'" + kTime},
        BadOptions{{"-n", "2", "--timeout", "5m", "echo"}, "--timeout: '5m'" + kTime},
        BadOptions{{"-n", "2", "--env", "NOT_SET_ANYWHERE", "echo"},
                   "--env: 'NOT_SET_ANYWHERE' is not set here: give it a value, as NAME=value"},
        BadOptions{{"-n", "2", "--env", "=1", "echo"}, "--env: '=1' sets no variable: it must be NAME=value, or NAME"},
        BadOptions{{"-n", "2", "--env", "RANK=1", "echo"},
                   "--env: 'RANK=1': tutti-run gives RANK its value for each rank"},
        BadOptions{{"-n", "2", "--tags", "echo"},
                   "'--tags' is no option of tutti-run; a program of that name comes after --"}));

TEST(Usage, HelpAndVersionGoToStandardOutput) {
  Launched help({"--help"});
  EXPECT_EQ(help.wait(), 0);
  EXPECT_EQ(help.err(), "");
  for (const char* option : {"--ranks", "--bind", "--env", "--tag-output", "--timeout", "PROGRAM"})
    EXPECT_THAT(help.out(), HasSubstr(option));
  Launched version({"--version"});
  EXPECT_EQ(version.wait(), 0);
  EXPECT_THAT(version.out(), testing::MatchesRegex("tutti-run [0-9]+\\.[0-9]+\\.[0-9]+\n"));
  Launched::Options full;
  full.before_exec = [] { dup2(open("/dev/full", O_WRONLY), STDOUT_FILENO); };
  for (const char* option : {"--help", "--version"}) {
    Launched unread({option}, full);
    EXPECT_EQ(unread.wait(), 125) << option;
    EXPECT_THAT(unread.err(), HasSubstr("cannot write to standard output")) << option;
  }
}

}  // namespace
