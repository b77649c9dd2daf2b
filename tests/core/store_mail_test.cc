// The mail of a world from end to end: a transport's letter goes through the session and the store, and the watch
// thread of the other rank hands it to that rank's transport.
#include "src/core/store_mail.h"

#include <gtest/gtest.h>

#include <future>
#include <map>

#include "src/core/watcher.h"
#include "store_world.h"

namespace tutti::internal {
namespace {

// A transport that moves nothing, and keeps the letters that it gets.
class Letterbox final : public Transport {
 public:
  const char* name() const override { return "letterbox"; }
  std::string address() const override { return {}; }
  Status reachable(std::string_view) const override { return {}; }
  Status answers(std::string_view, Deadline) const override { return {}; }
  Status connect(int, std::string_view, Deadline) override { return {}; }
  std::vector<Watch> watches() override {
    watch_thread_ = std::this_thread::get_id();
    return {};
  }
  void serve(uint64_t) override {}
  Result<void*> allocate(size_t) override { return Status(Code::unsupported, ""); }
  Status release(void*) override { return {}; }
  Status register_memory(void*, size_t) override { return {}; }
  Status unregister_memory(void*) override { return {}; }
  Post post_send(const SendRequest&) override { return Post::failed; }
  Post post_recv(const RecvRequest&) override { return Post::failed; }
  Post post_reduce(const ReduceRequest&) override { return Post::failed; }
  size_t poll(std::span<Completion>) override { return 0; }
  void cancel(uint64_t) override {}
  void forget(uint64_t) override {}
  void disconnect(int) override {}
  PeerFailure take_failure() override { return {}; }
  void idle(Deadline) override {}

  // Until there are so many letters of this peer.
  void expect(int peer, size_t count) {
    expected_peer_ = peer;
    expected_count_ = count;
  }
  bool wait() { return came_.get_future().wait_for(std::chrono::minutes(1)) == std::future_status::ready; }

  void deliver(int peer, std::string_view letter) override {
    EXPECT_EQ(std::this_thread::get_id(), watch_thread_);
    if (on_letter) on_letter(letter);
    letters[peer].emplace_back(letter);
    if (peer == expected_peer_ && letters[peer].size() == expected_count_) came_.set_value();
  }

  std::function<void(std::string_view)> on_letter;
  std::map<int, std::vector<std::string>> letters;  // by sender; the watch thread's until wait() is over

 private:
  std::thread::id watch_thread_;
  int expected_peer_ = -1;
  size_t expected_count_ = 0;
  std::promise<void> came_;
};

// A rank as the core has it.
struct PostOffice {
  explicit PostOffice(Session& session) : mail(session), watcher(session, letterbox, notices) {}
  Letterbox letterbox;
  Notices notices;
  StoreMail mail;
  Watcher watcher;
};

std::vector<std::string> numbered(const std::string& text, int count) {
  std::vector<std::string> letters;
  for (int i = 0; i < count; ++i) letters.push_back(text + std::to_string(i));
  return letters;
}

TEST(StoreMail, LettersGoBothWaysInOrderWhileAnotherRankDoesNotRead) {
  constexpr int kLetters = 10'000;
  for (const auto& [a, b, idle] : {std::array{0, 1, 2}, std::array{2, 1, 0}}) {
    auto world = joined_world("both ways", 3);
    ASSERT_EQ(world.size(), 3u);
    {
      PostOffice first(*world[a]), second(*world[b]);
      first.letterbox.expect(b, kLetters);
      second.letterbox.expect(a, kLetters);
      ASSERT_TRUE(first.watcher.start().ok());
      ASSERT_TRUE(second.watcher.start().ok());
      const auto write = [idle = idle](Mail& mail, int peer, const std::string& text) {
        for (const std::string& letter : numbered(text, kLetters)) {
          mail.send(idle, letter);
          mail.send(peer, letter);
        }
      };
      std::thread other([&, a = a] { write(second.mail, a, "from b "); });
      write(first.mail, b, "from a ");
      EXPECT_TRUE(first.letterbox.wait());
      EXPECT_TRUE(second.letterbox.wait());
      other.join();
      first.watcher.stop();
      second.watcher.stop();
      EXPECT_EQ(first.letterbox.letters[b], numbered("from b ", kLetters));
      EXPECT_EQ(second.letterbox.letters[a], numbered("from a ", kLetters));
    }
    // What was sent to the one that did not read has waited.
    std::map<int, std::vector<std::string>> late;
    for (int i = 0; i < 2 * kLetters; ++i) {
      Event event = world[idle].next_event();
      ASSERT_EQ(event.kind, Event::Kind::letter) << event.text;
      late[event.rank].push_back(std::move(event.text));
    }
    EXPECT_EQ(late[a], numbered("from a ", kLetters));
    EXPECT_EQ(late[b], numbered("from b ", kLetters));
    leave_all(world);
  }
}

TEST(StoreMail, LettersKeepTheirPlaceAmongOtherEvents) {
  auto world = joined_world("among events", 2);
  ASSERT_EQ(world.size(), 2u);
  {
    PostOffice office(*world[0]);
    office.letterbox.expect(1, 2);
    std::vector<bool> aborted_before;
    office.letterbox.on_letter = [&](std::string_view) { aborted_before.push_back(office.notices.any()); };
    ASSERT_TRUE(office.watcher.start().ok());
    StoreMail mail(*world[1]);
    mail.send(0, "before");
    world[1]->abort(7, Status(Code::aborted, "given up"));
    mail.send(0, "after");
    ASSERT_TRUE(office.letterbox.wait());
    office.watcher.stop();
    EXPECT_EQ(office.letterbox.letters[1], (std::vector<std::string>{"before", "after"}));
    EXPECT_EQ(aborted_before, (std::vector<bool>{false, true}));
    const auto notices = office.notices.take();
    ASSERT_EQ(notices.size(), 1u) << "a letter is no notice";
    EXPECT_EQ(notices[0].text, "given up");
  }
  leave_all(world);
}

TEST(StoreMail, WhatCannotBeSentChangesNothing) {
  auto world = joined_world("cannot be sent", 3);
  ASSERT_EQ(world.size(), 3u);
  world[2].vanish();
  EXPECT_EQ(world[0].next_event().rank, 2);
  {
    PostOffice office(*world[1]);
    office.letterbox.expect(0, 1);
    ASSERT_TRUE(office.watcher.start().ok());
    StoreMail mail(*world[0]);
    mail.send(2, "to a dead rank");
    mail.send(1, std::string(kMaxLetterBytes + 1, 'x'));
    mail.send(1, "well");
    ASSERT_TRUE(office.letterbox.wait());
    office.watcher.stop();
    EXPECT_EQ(office.letterbox.letters[0], std::vector<std::string>{"well"});
  }
  world.pop_back();
  leave_all(world);
}

}  // namespace
}  // namespace tutti::internal
