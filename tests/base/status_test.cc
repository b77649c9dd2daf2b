// Status, Result and Deadline: what a caller may rely on.
#include "src/base/status.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cerrno>
#include <limits>
#include <string>

#include "src/base/clock.h"

namespace tutti::internal {
namespace {

using ::testing::HasSubstr;

Result<int> half(int number) {
  if (number % 2 != 0) return Status(Code::invalid_argument, "number is odd");
  return number / 2;
}

Status quarter(int number, int* result) {
  auto first = half(number);
  TUTTI_RETURN_IF_ERROR(first.status());
  auto second = half(*first);
  TUTTI_RETURN_IF_ERROR(second.status());
  *result = *second;
  return Status();
}

TEST(Status, AnErrorTravelsUpWithItsMessage) {
  int result = -1;
  EXPECT_TRUE(quarter(8, &result).ok());
  EXPECT_EQ(result, 2);
  const Status error = quarter(6, &result);
  EXPECT_EQ(error.code(), Code::invalid_argument);
  EXPECT_EQ(error.message(), "number is odd");
  EXPECT_EQ(result, 2) << "outputs are written on success alone";
}

TEST(Status, OkCostsOnePointerAndSaysNothing) {
  EXPECT_EQ(sizeof(Status), sizeof(void*));
  EXPECT_EQ(Status().message(), "");
  EXPECT_EQ(Status().code(), Code::ok);
  EXPECT_EQ(Status().failed_rank(), -1);
}

TEST(Status, CopiesAreWhole) {
  const Status first = Status::peer_failed(5, "rank 5 died");
  Status second;
  second = first;
  EXPECT_EQ(second.code(), Code::peer_failed);
  EXPECT_EQ(second.failed_rank(), 5);
  EXPECT_EQ(second.message(), first.message());
  second = Status();
  EXPECT_TRUE(second.ok());
  EXPECT_EQ(first.failed_rank(), 5);
}

TEST(Status, ASystemCallsErrorHasItsText) {
  const Status error = Status::system(Code::out_of_resources, "open /nowhere", ENOENT);
  EXPECT_EQ(error.code(), Code::out_of_resources);
  EXPECT_THAT(error.message(), HasSubstr("open /nowhere"));
  EXPECT_THAT(error.message(), HasSubstr("No such file or directory"));
}

TEST(Status, EveryCodeHasAName) {
  for (int code = TUTTI_OK; code <= TUTTI_INTERNAL; ++code) EXPECT_STRNE(code_name(static_cast<Code>(code)), "?");
  EXPECT_STREQ(code_name(static_cast<Code>(99)), "?");
  EXPECT_STREQ(code_name(Code::peer_failed), "peer_failed");
}

TEST(Deadline, SaturatesInsteadOfWrapping) {
  EXPECT_TRUE(Deadline::after_us(std::numeric_limits<int64_t>::max()).is_never());
  EXPECT_TRUE(Deadline::after_us(std::numeric_limits<int64_t>::max() - 1).is_never());
  EXPECT_EQ(Deadline::never().remaining_us(), std::numeric_limits<int64_t>::max());
  EXPECT_EQ(Deadline::never().poll_ms(500), 500);
  EXPECT_FALSE(Deadline::never().passed());
}

TEST(Deadline, OfZeroHasPassed) {
  const Deadline deadline = Deadline::after_us(0);
  EXPECT_TRUE(deadline.passed());
  EXPECT_EQ(deadline.remaining_us(), 0);
  EXPECT_EQ(deadline.poll_ms(500), 0);
}

TEST(Deadline, RoundsUpForPollSoThatNobodySpinsThroughTheLastMillisecond) {
  const int ms = Deadline::after_us(60'000'000).poll_ms(1'000'000);
  EXPECT_GT(ms, 0);
  EXPECT_LE(ms, 60'000);
}

}  // namespace
}  // namespace tutti::internal
