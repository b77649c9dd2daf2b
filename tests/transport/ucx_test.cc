// What the UCX transport does beside the contract: addresses that are rubbish, its log, several transports in one
// process, other users of UCX beside it, children of fork, and peers that are killed.
#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <csignal>
#include <cstdlib>
#include <functional>
#include <random>
#include <thread>

#include "src/base/log.h"
#include "tests/transport/conformance_world.h"
#include "tests/transport/ucx_devices.h"
#include "transport/ucx/address.h"
#include "transport/ucx/letter.h"
#include "transport/ucx/logging.h"
#include "transport/ucx/ucx_transport.h"

// A child of fork leaves what is its parent's, so that leaks are looked for in the parent alone. The sanitizer asks.
static const pid_t first_process = getpid();
extern "C" [[gnu::visibility("default")]] int __lsan_is_turned_off() {  // NOLINT: its name for it
  return getpid() != first_process ? 1 : 0;
}

namespace tutti::internal::conformance {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

const ucx::Settings kMemory{{"TLS", "sm"}};
const ucx::Settings kTcp{{"TLS", "tcp"}};

std::unique_ptr<UcxTransport> make(int rank, int ranks, Mail& mail, const ucx::Settings& settings = kMemory) {
  auto made = UcxTransport::create({.rank = rank, .world_size = ranks, .settings = settings}, mail);
  if (!made) throw std::runtime_error(made.status().message());
  return std::move(*made);
}

struct Pair {
  explicit Pair(const ucx::Settings& settings = kMemory) {
    std::vector<std::unique_ptr<Transport>> made;
    for (int rank = 0; rank < 2; ++rank) made.push_back(make(rank, 2, office.of(rank), settings));
    world = std::make_unique<World>(std::move(made), &office);
    world->connect_all();
  }
  // Both ways, short and long.
  void exchange(uint64_t channel) {
    for (const size_t bytes : {size_t{8}, size_t{300'000}})
      for (const int from : {0, 1}) {
        std::vector<std::byte> sent(bytes);
        std::vector<std::byte> found(bytes);
        fill(sent, channel);
        const Ticket send = (*world)[from].send(channel, 1 - from, bytes, sent.data(), bytes);
        ASSERT_EQ((*world)[1 - from].wait((*world)[1 - from].recv(channel, from, bytes, found.data(), bytes)).code,
                  Code::ok);
        ASSERT_EQ((*world)[from].wait(send).code, Code::ok);
        ASSERT_TRUE(holds(found, channel));
      }
  }
  PostOffice office{2};
  std::unique_ptr<World> world;
};

// Runs body in a child of fork, which then ends as programs end; its exit status.
int in_child(const std::function<int()>& body) {
  const pid_t child = fork();
  if (child == 0) std::exit(body());
  int status = 0;
  waitpid(child, &status, 0);
  return WIFEXITED(status) ? WEXITSTATUS(status) : -WTERMSIG(status);
}

TEST(UcxAddress, ComesBackAsItWas) {
  const ucx::Address address{.rank = 7, .nonce = 0x1234567890abcdef, .worker = std::string("ab\0c", 4)};
  auto decoded = ucx::Address::decode(address.encode());
  ASSERT_TRUE(decoded) << decoded.status().message();
  EXPECT_EQ(decoded->rank, 7);
  EXPECT_EQ(decoded->nonce, address.nonce);
  EXPECT_EQ(decoded->worker, address.worker);
}

// UCX would believe what it is given.
TEST(UcxAddress, OfWhichAnyByteIsWrongOrMissingIsRefused) {
  PostOffice office(1);
  const std::string good = make(0, 1, office.of(0))->address();
  ASSERT_TRUE(ucx::Address::decode(good));
  for (size_t i = 0; i < good.size(); ++i) {
    std::string bad = good;
    bad[i] = static_cast<char>(bad[i] ^ 0x10);
    EXPECT_FALSE(ucx::Address::decode(bad)) << "byte " << i;
    EXPECT_FALSE(ucx::Address::decode(good.substr(0, i))) << i << " bytes";
  }
  EXPECT_FALSE(ucx::Address::decode(good + "x"));
  EXPECT_FALSE(ucx::Address::decode(std::string(1 << 20, 'x')));
}

TEST(UcxLetter, ThatIsRubbishIsDropped) {
  std::mt19937_64 random = seeded();
  Pair pair;
  Transport& transport = (*pair.world)[0].transport();
  const ucx::Address from{.rank = 1, .nonce = 5, .worker = "abc"};
  const std::string good = ucx::Letter{.kind = ucx::Letter::Kind::hello, .to_nonce = 9, .from = from}.encode();
  for (int i = 0; i < 2000; ++i) {
    std::string bad = good.substr(0, random() % (good.size() + 1));
    if (!bad.empty()) bad[random() % bad.size()] = static_cast<char>(random());
    transport.deliver(static_cast<int>(random() % 4) - 1, bad);
  }
  pair.exchange(1);
}

// An address of an earlier transport of that rank: whoever has its place now says that he is another.
TEST(UcxTransport, AStaleAddressIsRefused) {
  PostOffice office(2);
  const std::string stale = make(1, 2, office.of(1))->address();
  std::vector<std::unique_ptr<Transport>> made;
  for (int rank = 0; rank < 2; ++rank) made.push_back(make(rank, 2, office.of(rank)));
  World world(std::move(made), &office);
  const Status status = world[0].transport().connect(1, stale, Deadline::after_us(10'000'000));
  EXPECT_EQ(status.code(), Code::peer_failed) << status.message();
}

TEST(UcxTransport, SeveralInOneProcessDoNotDisturbEachOther) {
  Pair stays;
  stays.exchange(1);
  std::vector<std::thread> threads;
  for (int i = 0; i < 3; ++i)
    threads.emplace_back([] {
      for (uint64_t round = 0; round < 5; ++round) Pair().exchange(round);
    });
  for (uint64_t round = 2; round < 20; ++round) stays.exchange(round);
  for (std::thread& thread : threads) thread.join();
  stays.exchange(100);
}

// Somebody else's context and worker.
class OtherUser {
 public:
  OtherUser() {
    EXPECT_TRUE(ucx::load_library().ok());
    const auto& library = ucx::library();
    ucp_config_t* config = nullptr;
    EXPECT_EQ(library.ucp_config_read(nullptr, nullptr, &config), UCS_OK);
    ucp_params_t params{};
    params.field_mask = UCP_PARAM_FIELD_FEATURES;
    params.features = UCP_FEATURE_TAG | UCP_FEATURE_AM;
    EXPECT_EQ(library.ucp_init_version(UCP_API_MAJOR, UCP_API_MINOR, &params, config, &context_), UCS_OK);
    library.ucp_config_release(config);
    const ucp_worker_params_t worker{};
    EXPECT_EQ(library.ucp_worker_create(context_, &worker, &worker_), UCS_OK);
  }
  ~OtherUser() {
    ucx::library().ucp_worker_destroy(worker_);
    ucx::library().ucp_cleanup(context_);
  }
  void progress() { ucx::library().ucp_worker_progress(worker_); }

 private:
  ucp_context_h context_ = nullptr;
  ucp_worker_h worker_ = nullptr;
};

TEST(UcxTransport, LivesBesideOtherUsersOfUcx) {
  OtherUser before;
  {
    Pair pair;
    OtherUser between;
    pair.exchange(1);
    between.progress();
    pair.exchange(2);
  }
  before.progress();
}

TEST(UcxTransport, ChangesNeitherTheEnvironmentNorWhatSignalsDo) {
  std::vector<std::string> before;
  for (char** entry = environ; *entry != nullptr; ++entry) before.emplace_back(*entry);
  std::array<struct sigaction, 32> actions{};
  for (int number = 1; number < 32; ++number) sigaction(number, nullptr, &actions[static_cast<size_t>(number)]);
  { Pair pair; }
  std::vector<std::string> after;
  for (char** entry = environ; *entry != nullptr; ++entry) after.emplace_back(*entry);
  EXPECT_EQ(before, after);
  for (int number = 1; number < 32; ++number) {
    struct sigaction now {};
    sigaction(number, nullptr, &now);
    EXPECT_EQ(now.sa_handler, actions[static_cast<size_t>(number)].sa_handler) << number;
  }
}

TEST(UcxTransport, IsLeftAloneByChildrenOfFork) {
  Pair pair;
  pair.exchange(1);
  EXPECT_EQ(in_child([] { return 3; }), 3);
  EXPECT_EQ(in_child([&] {
              pair.world.release();  // NOLINT: its thread is not in the child
              return 4;
            }),
            4);
  pair.exchange(2);
  EXPECT_EQ(in_child([] {
              Pair own;
              own.exchange(7);
              return ::testing::Test::HasFailure() ? 1 : 0;
            }),
            0)
      << "a child may make its own";
  pair.exchange(3);
}

TEST(UcxTransport, ACopyInAChildOfForkIsDestroyedWithoutHarm) {
  PostOffice office(1);
  auto transport = make(0, 1, office.of(0));
  ASSERT_TRUE(transport->allocate(100'000).ok());
  EXPECT_EQ(in_child([&] {
              transport.reset();
              return 0;
            }),
            0);
  EXPECT_TRUE(transport->allocate(100'000).ok());
}

// Says what the code under test writes to standard error.
std::string stderr_of(const std::function<void()>& body) {
  ::testing::internal::CaptureStderr();
  body();
  return ::testing::internal::GetCapturedStderr();
}

TEST(UcxLog, GoesToTuttisAndLeavesOthersAlone) {
  ASSERT_TRUE(ucx::load_library().ok());
  const auto say = [](ucs_log_level_t level, const char* format, ...) {
    va_list arguments;
    va_start(arguments, format);
    const auto taken = ucx::log_handler("file", 1, "function", level, nullptr, format, arguments);
    va_end(arguments);
    return taken;
  };
  EXPECT_EQ(say(UCS_LOG_LEVEL_ERROR, "not ours"), UCS_LOG_FUNC_RC_CONTINUE);
  const ucx::LogScope ours;
  set_log_level("warn");
  EXPECT_THAT(stderr_of([&] { say(UCS_LOG_LEVEL_ERROR, "%d lanes", 7); }), HasSubstr("error: UCX: 7 lanes"));
  EXPECT_THAT(stderr_of([&] { say(UCS_LOG_LEVEL_WARN, "odd"); }), HasSubstr("warn: UCX: odd"));
  EXPECT_EQ(stderr_of([&] { EXPECT_EQ(say(UCS_LOG_LEVEL_DIAG, "closed"), UCS_LOG_FUNC_RC_STOP); }), "");
}

TEST(UcxLog, SaysWhyThereIsNoTransport) {
  PostOffice office(1);
  Status status;
  const std::string log = stderr_of([&] {
    status =
        UcxTransport::create({.rank = 0, .world_size = 1, .settings = {{"TLS", "nonsense"}}}, office.of(0)).status();
  });
  EXPECT_EQ(status.code(), Code::unsupported);
  EXPECT_THAT(log, HasSubstr("[tutti"));
  EXPECT_THAT(log, Not(HasSubstr("UCX  ERROR"))) << "UCX's own form";
}

// A peer in a process of its own, which is killed while this one waits for it. Letters go through pipes.
class PipeMail final : public Mail {
 public:
  explicit PipeMail(int fd) : fd_(fd) {}
  void send(int, std::string_view letter) override {
    const auto bytes = static_cast<uint32_t>(letter.size());
    EXPECT_EQ(write(fd_, &bytes, sizeof bytes), static_cast<ssize_t>(sizeof bytes));
    EXPECT_EQ(write(fd_, letter.data(), bytes), static_cast<ssize_t>(bytes));
  }

 private:
  int fd_;
};

bool read_all(int fd, void* data, size_t bytes) {
  for (auto* to = static_cast<char*>(data); bytes > 0;) {
    const ssize_t count = read(fd, to, bytes);
    if (count <= 0) return false;
    to += count;
    bytes -= static_cast<size_t>(count);
  }
  return true;
}

std::string read_letter(int fd) {
  uint32_t bytes = 0;
  if (!read_all(fd, &bytes, sizeof bytes)) return "";
  std::string letter(bytes, '\0');
  return read_all(fd, letter.data(), bytes) ? letter : "";
}

// Sends rank 0 a message when it has come, and then only polls.
[[noreturn]] void be_rank_1(int in, int out) {
  PipeMail mail(out);
  auto transport = make(1, 2, mail, kTcp);
  mail.send(0, transport->address());
  transport->deliver(0, read_letter(in));
  const Endpoint to{0, 1};
  const uint64_t value = 11;
  while (transport->post_send({.channel = 1, .to = {&to, 1}, .data = &value, .bytes = 8}) == Post::failed) pause();
  for (;;) transport->poll({});
}

TEST(UcxFailure, AKilledPeerIsReported) {
  if (const auto why = why_no_device(kInterfaces)) GTEST_SKIP() << *why;
  std::array<int, 2> there{};
  std::array<int, 2> back{};
  ASSERT_EQ(pipe2(there.data(), O_CLOEXEC), 0);
  ASSERT_EQ(pipe2(back.data(), O_CLOEXEC), 0);
  const pid_t child = fork();
  if (child == 0) be_rank_1(there[0], back[1]);
  PipeMail mail(there[1]);
  auto transport = make(0, 2, mail, kTcp);
  const std::string address = read_letter(back[0]);
  std::thread watching([&] { transport->deliver(1, read_letter(back[0])); });
  const Status connected = transport->connect(1, address, Deadline::after_us(20'000'000));
  watching.join();
  ASSERT_TRUE(connected.ok()) << connected.message();
  Rank self(0, *transport);
  uint64_t found = 0;
  EXPECT_EQ(self.wait(self.recv(1, 1, 1, &found, 8)).code, Code::ok);
  EXPECT_EQ(found, 11u);
  const Ticket never = self.recv(1, 1, 2, &found, 8);
  std::vector<std::byte> big(5'000'000);
  const Ticket neither = self.send(1, 1, 3, big.data(), big.size());
  kill(child, SIGKILL);
  waitpid(child, nullptr, 0);
  const PeerFailure failure = self.wait_failure();
  EXPECT_EQ(failure.peer, 1);
  EXPECT_THAT(failure.reason, HasSubstr("UCX has lost the connection"));
  EXPECT_FALSE(self.result(never));
  EXPECT_FALSE(self.result(neither));
  EXPECT_EQ(self.wait(self.send(1, 1, 4, &found, 8)).code, Code::peer_failed);
  EXPECT_EQ(transport->connect(1, address, Deadline::after_us(1000)).code(), Code::peer_failed);
  transport->cancel(1);
  EXPECT_EQ(transport->take_failure().peer, -1);
  for (const int fd : {there[0], there[1], back[0], back[1]}) close(fd);
}

}  // namespace
}  // namespace tutti::internal::conformance
