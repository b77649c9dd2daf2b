// What rdma_cm's messages carry, and the addresses that ports are found by: tables of cases, no device.
#include <arpa/inet.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <stdexcept>

#include "transport/verbs/cm_message.h"
#include "transport/verbs/listeners.h"

namespace tutti::internal::verbs {
namespace {

GidBytes raw(const char* text) {
  GidBytes bytes{};
  if (inet_pton(AF_INET6, text, bytes.data()) != 1) throw std::invalid_argument(text);
  return bytes;
}

CmRequest example() {
  return {.rank = 3,
          .to_nonce = 0x0123456789abcdef,
          .from_nonce = 7,
          .attempt = 5,
          .credits = 64,
          .path = 1,
          .path_count = 2,
          .mtu = 3};
}

TEST(VerbsCmMessage, ARequestArrivesAsItWasSentThoughInALongerPlace) {
  const std::string sent = example().encode();
  EXPECT_LE(sent.size(), 56u) << "what InfiniBand leaves of a request";
  const auto found = CmRequest::decode(sent + std::string(16, '\0'));
  ASSERT_TRUE(found.has_value());
  EXPECT_EQ(found->encode(), sent);
  EXPECT_EQ(found->rank, 3);
  EXPECT_EQ(found->to_nonce, 0x0123456789abcdefU);
  EXPECT_EQ(found->path, 1);
  EXPECT_EQ(found->path_count, 2);
}

TEST(VerbsCmMessage, ARequestThatMakesNoSenseIsNone) {
  const auto with = [](auto change) {
    CmRequest request = example();
    change(request);
    return CmRequest::decode(request.encode()).has_value();
  };
  EXPECT_TRUE(with([](CmRequest&) {}));
  EXPECT_FALSE(with([](CmRequest& request) { request.rank = -1; }));
  EXPECT_FALSE(with([](CmRequest& request) { request.credits = 0; }));
  EXPECT_FALSE(with([](CmRequest& request) { request.credits = 1 << 20; }));
  EXPECT_FALSE(with([](CmRequest& request) { request.path = 2; }));
  EXPECT_FALSE(with([](CmRequest& request) { request.path_count = 9; }));
  EXPECT_FALSE(with([](CmRequest& request) { request.path = request.path_count = 0; }));
  EXPECT_FALSE(with([](CmRequest& request) { request.mtu = 0; }));
  EXPECT_FALSE(with([](CmRequest& request) { request.mtu = 6; }));
  const std::string sent = example().encode();
  for (size_t bytes = 0; bytes < sent.size(); ++bytes) EXPECT_FALSE(CmRequest::decode(sent.substr(0, bytes))) << bytes;
  std::string other_version = sent;
  ++other_version[0];
  EXPECT_FALSE(CmRequest::decode(other_version));
}

TEST(VerbsCmMessage, AnAnswerBringsCreditsAndARejectionItsReason) {
  EXPECT_EQ(CmAnswer::decode(CmAnswer{.credits = 9}.encode())->credits, 9u);
  EXPECT_FALSE(CmAnswer::decode(CmAnswer{.credits = 0}.encode()));
  EXPECT_FALSE(CmAnswer::decode(""));

  const CmRejection rejection{CmRejection::Kind::crossed, "both ask"};
  const auto found = CmRejection::decode(rejection.encode());
  ASSERT_TRUE(found.has_value());
  EXPECT_EQ(found->kind, CmRejection::Kind::crossed);
  EXPECT_EQ(found->text, "both ask");
  const CmRejection long_one{CmRejection::Kind::refused, std::string(300, 'x')};
  EXPECT_LE(long_one.encode().size(), 148u) << "what InfiniBand leaves of a rejection";
  EXPECT_EQ(CmRejection::decode(long_one.encode())->text.size(), 142u);
  EXPECT_EQ(CmRejection::decode(CmRejection{CmRejection::Kind::refused, "a\nb"}.encode())->text, "a?b");
  EXPECT_FALSE(CmRejection::decode(CmRejection{CmRejection::Kind{}, ""}.encode()));
  EXPECT_FALSE(CmRejection::decode(std::string(148, '\0'))) << "whoever rejects without saying anything";
}

TEST(VerbsCmName, GoesThroughAPointer) {
  for (const CmName& name : {CmName{.rank = 123456, .generation = CmName::kMostGenerations, .index = 7},
                             CmName{.rank = -1, .index = 255}, CmName{.rank = 0, .generation = 1}}) {
    const CmName found = CmName::unpack(name.pack());
    EXPECT_EQ(found.rank, name.rank);
    EXPECT_EQ(found.generation, name.generation);
    EXPECT_EQ(found.index, name.index);
  }
}

TEST(VerbsListeners, APortIsFoundByAnIpAddressThatMeansSomethingElsewhere) {
  const auto ip = [](std::initializer_list<const char*> gids) {
    PortAddress port{.name = "a:1"};
    for (const char* text : gids) port.gids.push_back({.raw = raw(text)});
    return ip_of(port, {});
  };
  EXPECT_EQ(ip({"fe80::1", "::ffff:10.0.0.1", "2001:db8::1"}), raw("::ffff:10.0.0.1"));
  EXPECT_EQ(ip({"2001:db8::1", "::ffff:10.0.0.1"}), raw("2001:db8::1")) << "the first, which is the best";
  EXPECT_EQ(ip({"::ffff:169.254.0.1"}), raw("::ffff:169.254.0.1"));
  EXPECT_EQ(ip({"fe80::1"}), std::nullopt);
  EXPECT_EQ(ip({}), std::nullopt);
}

TEST(VerbsListeners, AnIpoibDeviceIsOfThePortWhoseGidEndsItsLinkAddress) {
  EXPECT_EQ(gid_of_ipoib("80:00:02:08:fe:80:00:00:00:00:00:00:7c:fe:90:03:00:29:26:52"),
            raw("fe80::7cfe:9003:29:2652"));
  for (const char* text : {"", "02:00:0a:4d:00:01", "80-00-02-08-fe-80-00-00-00-00-00-00-7c-fe-90-03-00-29-26-52",
                           "80:00:02:08:fe:80:00:00:00:00:00:00:7c:fe:90:03:00:29:26:5",
                           "80:00:02:08:fe:80:00:00:00:00:00:00:7c:fe:90:03:00:29:26:5x"})
    EXPECT_EQ(gid_of_ipoib(text), std::nullopt) << text;
}

TEST(VerbsListeners, SayWhereTheyAre) {
  EXPECT_EQ(to_string(Listener{.ip = raw("::ffff:10.0.0.1"), .port = 4791}), "10.0.0.1 port 4791");
  EXPECT_EQ(to_string(Listener{.ip = raw("2001:db8::1"), .port = 1}), "2001:db8::1 port 1");
}

}  // namespace
}  // namespace tutti::internal::verbs
