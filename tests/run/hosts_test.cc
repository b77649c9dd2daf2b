// Jobs over hosts: what is read from the command line and files, what goes over the link, and whole jobs whose "ssh" is
// a shell of this machine. tests/nodes/hosts_test.py has them over a real one.
#include "src/run/hosts.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <string>
#include <vector>

#include "launched.h"
#include "src/run/agent_job.h"
#include "src/run/link.h"
#include "src/run/words.h"

namespace tutti::internal {

void PrintTo(const HostSlots& host, std::ostream* stream) { *stream << host.host << " * " << host.slots; }

namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::MatchesRegex;
using ::testing::StartsWith;
using tutti_test::Launched;

TEST(Hosts, AreReadFromAList) {
  EXPECT_THAT(parse_hosts("a:4,b").value(), ElementsAre(HostSlots{"a", 4}, HostSlots{"b", 1}));
  EXPECT_THAT(parse_hosts("me@a.b-c.d:2").value(), ElementsAre(HostSlots{"me@a.b-c.d", 2}));
  EXPECT_THAT(parse_hosts("[fd00::1]:2,me@[fd00::2],10.0.0.1:3").value(),
              ElementsAre(HostSlots{"fd00::1", 2}, HostSlots{"me@fd00::2", 1}, HostSlots{"10.0.0.1", 3}));
  EXPECT_THAT(parse_hosts("a:1,b:1,a:2").value(), ElementsAre(HostSlots{"a", 3}, HostSlots{"b", 1}));
}

TEST(Hosts, ThatAreNoneAreRefusedByName) {
  for (const std::string bad : {"", ",a", "a,", "a:", "a:0", "a:-1", "a:4x", "a:5000", "fd00::1", "[a]", "a b",
                                "-oProxy=x", "a:1:2", "me@-x", "@", "a@", "@a", "@@a"})
    EXPECT_EQ(parse_hosts(bad).status().code(), Code::invalid_argument) << bad;
  EXPECT_EQ(parse_hosts("a,b:x").status().message(),
            "'x' is no number of ranks: it must be a whole number from 1 to 4096");
  EXPECT_THAT(parse_hosts("fd00::1").status().message(), HasSubstr("an IPv6 address must stand in [ ]"));
  EXPECT_THAT(parse_hosts("a:4096,b").status().message(), HasSubstr("4097 ranks together"));
}

TEST(Hosts, AreReadFromAFile) {
  EXPECT_THAT(parse_hostfile("f", "# all\n\n a slots=4 # big\nb:2\r\n\tc\n[fd00::1] slots=3\na").value(),
              ElementsAre(HostSlots{"a", 5}, HostSlots{"b", 2}, HostSlots{"c", 1}, HostSlots{"fd00::1", 3}));
  constexpr const char* kForms = "; a line is 'host', 'host:4' or 'host slots=4', and # begins a comment";
  EXPECT_EQ(parse_hostfile("f", "a\n#\nb slots=x\n").status().message(),
            std::string("f, line 3: 'x' is no number of ranks: it must be a whole number from 1 to 4096") + kForms);
  EXPECT_EQ(parse_hostfile("f", "a max_slots=2").status().message(),
            std::string("f, line 1: 'max_slots=2' is nothing that may follow a host") + kForms);
  EXPECT_EQ(parse_hostfile("f", "a slots=1 max_slots=2").status().message(),
            std::string("f, line 1: 'max_slots=2' is nothing that may follow a host") + kForms);
  for (const char* bad : {"a:2 slots=2", "a slots=2 b", "a slots=", "a slots = 2", ":2", "# nothing\n"})
    EXPECT_EQ(parse_hostfile("f", bad).status().code(), Code::invalid_argument) << bad;
  EXPECT_THAT(read_hostfile("/nowhere/hosts").status().message(), HasSubstr("'/nowhere/hosts': No such file"));
  EXPECT_EQ(read_hostfile("/").status().message(), "'/' is a directory");
  EXPECT_THAT(read_hostfile(std::string(5000, 'x')).status().message(), HasSubstr("File name too long"));
}

TEST(Hosts, AreFilledOneAfterTheOther) {
  const std::vector<HostSlots> hosts{{"a", 4}, {"b", 2}, {"c", 2}};
  EXPECT_THAT(deal(hosts, 8), ElementsAre(hosts[0], hosts[1], hosts[2]));
  EXPECT_THAT(deal(hosts, 5), ElementsAre(hosts[0], HostSlots{"b", 1}));
  EXPECT_THAT(deal(hosts, 1), ElementsAre(HostSlots{"a", 1}));
}

TEST(Hosts, ThisOneIsKnown) {
  EXPECT_TRUE(is_this_host("localhost"));
  EXPECT_TRUE(is_this_host("127.0.0.1"));
  EXPECT_FALSE(is_this_host("203.0.113.7"));
  EXPECT_FALSE(is_this_host("localhost2"));
}

TEST(Words, AreCutAsAShellCuts) {
  EXPECT_THAT(split_words(" ssh  -i 'a b' \"c\\\"d\" e\\ f x'y'z '' \n").value(),
              ElementsAre("ssh", "-i", "a b", "c\"d", "e f", "xyz", ""));
  EXPECT_THAT(split_words(" ").value(), IsEmpty());
  EXPECT_THAT(split_words("'\\'").value(), ElementsAre("\\"));
  for (const char* bad : {"'a", "a\"", "a\\"}) EXPECT_FALSE(split_words(bad).ok()) << bad;
}

TEST(LinkMessages, ComeOutAsTheyWentInHoweverTheyAreCut) {
  const std::vector<LinkMessage> sent{
      {},
      {.type = LinkMessage::Type::output, .rank = 4095, .number = 1, .text = {"\0a\n", 3}},
      {.type = LinkMessage::Type::fail, .rank = -1, .number = -2147483647}};
  std::string bytes;
  for (const LinkMessage& message : sent) bytes += encode(message);
  for (const size_t piece : {size_t{1}, size_t{3}, bytes.size()}) {
    LinkBuffer buffer;
    std::vector<LinkMessage> got;
    for (size_t at = 0; at < bytes.size(); at += piece) {
      buffer.add(std::string_view(bytes).substr(at, piece));
      while (auto message = buffer.next()) got.push_back(std::move(*message));
    }
    EXPECT_EQ(got, sent);
  }
  for (const std::string& bad : {std::string(4, '\0'), std::string("\xff\xff\xff\xff"),
                                 std::string("\0\0\0\x09\x7f", 5) + std::string(8, 'x')}) {
    LinkBuffer buffer;
    buffer.add(bad);
    EXPECT_FALSE(buffer.next());
    EXPECT_TRUE(buffer.is_broken());
  }
}

TEST(AgentJobs, HoldAnyBytes) {
  AgentJob job;
  job.task.command = {"a b", "", "\xff\xfe\n'"};
  job.task.environment = {"A=\x80"};
  job.task.directory = "/x\ny";
  job.task.bind = BindUnit::numa;
  job.task.job.secret = "s";
  job.store_hosts = {"fd00::1"};
  job.silence_us = 7;
  const auto got = decode_agent_job(encode(job));
  ASSERT_TRUE(got.ok()) << got.status().message();
  EXPECT_EQ(got.value().task.command, job.task.command);
  EXPECT_EQ(got.value().task.environment, job.task.environment);
  EXPECT_EQ(got.value().task.directory, job.task.directory);
  EXPECT_EQ(got.value().task.bind, job.task.bind);
  EXPECT_EQ(got.value().store_hosts, job.store_hosts);
  for (const std::string& bad : {std::string(), std::string("{}"), std::string("\xa1\x61\x61\x01")})
    EXPECT_EQ(decode_agent_job(bad).status().code(), Code::mismatch);
}

// An "ssh" that runs `script`; $last is the command for the other host.
std::vector<std::string> job(const std::string& script, std::vector<std::string> rest) {
  std::vector<std::string> arguments{"--ssh", "sh -c " + shell_quoted("for last; do :; done; " + script) + " ssh"};
  arguments.insert(arguments.end(), rest.begin(), rest.end());
  return arguments;
}

TEST(HostsJob, RunsItsRanksOnAllHosts) {
  Launched run(job("eval \"$last\"", {"--hosts", "a:2,localhost,b:2", "-n", "4", "--tag-output", "sh", "-c",
                                      "echo $RANK $LOCAL_RANK $WORLD_SIZE"}));
  EXPECT_EQ(run.wait(), 0) << run.err();
  for (const char* line : {"[0] 0 0 4\n", "[1] 1 1 4\n", "[2] 2 0 4\n", "[3] 3 0 4\n"})
    EXPECT_THAT(run.out(), HasSubstr(line));
  EXPECT_EQ(run.err(), "");
  EXPECT_TRUE(run.is_all_gone());
}

TEST(HostsJob, SearchesForItsProgramInTheRanksPath) {
  const std::string folder = std::filesystem::path(TUTTI_RUN).parent_path();
  Launched found(
      job("eval \"$last\"", {"--hosts", "a,localhost", "--env", "PATH=" + folder, "tutti-run", "--version"}));
  EXPECT_EQ(found.wait(), 0) << found.err();
}

TEST(HostsJob, WhatShellsSayFirstIsNoPartOfIt) {
  Launched run(
      job("echo welcome; printf 'no newline'; echo warning >&2; eval \"$last\"", {"--hosts", "a", "echo", "x"}));
  EXPECT_EQ(run.wait(), 0) << run.err();
  EXPECT_EQ(run.out(), "x\n");
  EXPECT_EQ(run.err(), "tutti-run: a: warning\n");
}

TEST(HostsJob, AnotherVersionIsRefused) {
  Launched run(job("printf '\\ntutti-run agent: version 9.9.9, protocol 1\\n'; cat >/dev/null",
                   {"--hosts", "a,localhost", "sleep", "300"}));
  EXPECT_EQ(run.wait(), 125);
  EXPECT_THAT(run.err(), StartsWith("tutti-run: a: tutti-run there is version 9.9.9, protocol 1, and here version "));
  EXPECT_TRUE(run.is_all_gone());
}

TEST(HostsJob, AHostThatNeverAnswersIsLostInTime) {
  Launched run(job("echo asking >&2; sleep 300", {"--host-timeout", "0.5", "--hosts", "a,localhost", "sleep", "300"}));
  EXPECT_EQ(run.wait(), 125);
  EXPECT_THAT(run.err(), StartsWith("tutti-run: a: tutti-run has not begun there within 0.5 s: asking"));
  EXPECT_TRUE(run.is_all_gone());
}

TEST(HostsJob, AHostThatSpeaksNonsenseIsLost) {
  // After the greeting.
  Launched run(job("eval \"$last\" | { head -n 2; printf '\\377\\377\\377\\377'; sleep 300; }",
                   {"--hosts", "a,localhost", "sleep", "300"}));
  EXPECT_EQ(run.wait(), 125);
  EXPECT_THAT(run.err(), StartsWith("tutti-run: a: what came is not of this tutti-run"));
  EXPECT_TRUE(run.is_all_gone());
}

TEST(HostsJob, AReaderWhoLeavesIsToldToTheRanks) {
  Launched run(job("eval \"$last\"", {"--hosts", "a", "sh", "-c", "echo ready; sleep 0.5; while echo x; do :; done"}));
  ASSERT_TRUE(run.wait_for_output("ready"));
  run.close_output();
  EXPECT_NE(run.wait(), -1) << "it ends";
  EXPECT_TRUE(run.is_all_gone());
}

TEST(HostsJob, MuchOutputComesThroughWhole) {
  Launched run(job("eval \"$last\"", {"--hosts", "a:2", "sh", "-c", "head -c 6000000 /dev/zero"}));
  EXPECT_EQ(run.wait(), 0) << run.err();
  EXPECT_EQ(run.out(), std::string(12'000'000, '\0'));
}

TEST(HostsJob, MoreRanksThanTheHostsHaveAreRefused) {
  Launched run(job("exit 0", {"--hosts", "a:2,b", "-n", "4", "true"}));
  EXPECT_EQ(run.wait(), 2);
  EXPECT_THAT(run.err(), StartsWith("tutti-run: -n 4: the hosts have 3 ranks together\n"));
}

}  // namespace
}  // namespace tutti::internal
