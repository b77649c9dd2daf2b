// What a child of fork keeps of its parent's things: nothing that the parent's peers wait to see closed.
#include "src/base/fork.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

namespace tutti::internal {
namespace {

// The exit code of a child that runs `body`.
template <class Body>
int in_child(Body body) {
  const pid_t pid = fork();
  if (pid == 0) _exit(body());
  int status = 0;
  waitpid(pid, &status, 0);
  return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

bool is_open(int fd) { return fcntl(fd, F_GETFD) != -1; }

TEST(Fork, ChildrenCloseWhatWasNamedAndKeepTheRest) {
  int fds[2];
  ASSERT_EQ(pipe(fds), 0);
  close_in_child(fds[0]);
  EXPECT_EQ(in_child([&] { return is_open(fds[0]) ? 1 : is_open(fds[1]) ? 0 : 2; }), 0);
  EXPECT_TRUE(is_open(fds[0])) << "the parent's stays";
  release_from_fork(fds[0]);
  EXPECT_EQ(in_child([&] { return is_open(fds[0]) ? 0 : 1; }), 0);
  close(fds[0]);
  close(fds[1]);
}

TEST(Fork, TheEpochCountsGenerations) {
  const uint32_t mine = process_epoch();
  EXPECT_EQ(in_child([&] { return static_cast<int>(process_epoch() - mine); }), 1);
  EXPECT_EQ(in_child([&] { return in_child([&] { return static_cast<int>(process_epoch() - mine); }); }), 2);
  EXPECT_EQ(process_epoch(), mine);
}

}  // namespace
}  // namespace tutti::internal
