// The values of the C++ interface, which need no ranks: element types, small floats, what counts as memory.
#include <gtest/gtest.h>

#include <tutti/tutti.hpp>

#include "tests/kernels/reference.h"

namespace tutti_test {
namespace {

TEST(CppValues, SmallFloatsConvertToFloatAndBack) {
  const tutti::float16 half(0.1F);
  EXPECT_EQ(half.bits(), 0x2E66);
  EXPECT_FLOAT_EQ(half, 0.0999755859375F);
  EXPECT_EQ(tutti::bfloat16(1.0F) + tutti::bfloat16(2.0F), 3.0F);
  static_assert(tutti::float16(65520.0F).bits() == 0x7C00, "overflows to infinity, at compile time too");
}

TEST(CppValues, EveryFloat16AndBFloat16IsWhatItsBitsSay) {
  for (uint32_t i = 0; i < 65536; ++i) {
    const auto bits = static_cast<uint16_t>(i);
    const float half = tutti::float16::from_bits(bits), wanted_half = decode(bits, 5, 10);
    const float brain = tutti::bfloat16::from_bits(bits), wanted_brain = decode(bits, 8, 7);
    ASSERT_EQ(std::isnan(half), std::isnan(wanted_half)) << i;
    ASSERT_EQ(std::isnan(brain), std::isnan(wanted_brain)) << i;
    if (!std::isnan(half)) {
      ASSERT_EQ(std::bit_cast<uint32_t>(half), std::bit_cast<uint32_t>(wanted_half)) << i;
      ASSERT_EQ(tutti::float16(half).bits(), bits);
    }
    if (!std::isnan(brain)) {
      ASSERT_EQ(std::bit_cast<uint32_t>(brain), std::bit_cast<uint32_t>(wanted_brain)) << i;
      ASSERT_EQ(tutti::bfloat16(brain).bits(), bits);
    }
  }
}

TEST(CppValues, FloatsAreRoundedToNearestEven) {
  std::mt19937 random(5);
  for (int i = 0; i < 2000000; ++i) {
    auto bits = static_cast<uint32_t>(random());
    if (i % 2 == 0) bits = (bits & 0x87FFFFFFU) | 0x38000000U;  // float16's range, more often
    if (i % 3 == 0) bits &= 0xFFFFF000U;                        // ties
    const auto value = std::bit_cast<float>(bits);
    if (std::isnan(value)) {
      ASSERT_TRUE(std::isnan(static_cast<float>(tutti::float16(value))));
      ASSERT_TRUE(std::isnan(static_cast<float>(tutti::bfloat16(value))));
      continue;
    }
    ASSERT_EQ(tutti::float16(value).bits(), encode(value, 5, 10)) << bits;
    ASSERT_EQ(tutti::bfloat16(value).bits(), encode(value, 8, 7)) << bits;
  }
}

TEST(CppValues, TypesAreThoseOfTheCInterface) {
  static_assert(tutti::TypeOf<int8_t>::value == TUTTI_INT8 && tutti::TypeOf<uint8_t>::value == TUTTI_UINT8);
  static_assert(tutti::TypeOf<int16_t>::value == TUTTI_INT16 && tutti::TypeOf<uint16_t>::value == TUTTI_UINT16);
  static_assert(tutti::TypeOf<int32_t>::value == TUTTI_INT32 && tutti::TypeOf<uint32_t>::value == TUTTI_UINT32);
  static_assert(tutti::TypeOf<int64_t>::value == TUTTI_INT64 && tutti::TypeOf<uint64_t>::value == TUTTI_UINT64);
  static_assert(tutti::TypeOf<long long>::value == TUTTI_INT64 && tutti::TypeOf<unsigned long>::value == TUTTI_UINT64);
  static_assert(tutti::TypeOf<char>::value == TUTTI_UINT8 && tutti::TypeOf<std::byte>::value == TUTTI_UINT8);
  static_assert(tutti::TypeOf<float>::value == TUTTI_FLOAT32 && tutti::TypeOf<double>::value == TUTTI_FLOAT64);
  static_assert(tutti::TypeOf<tutti::float16>::value == TUTTI_FLOAT16);
  static_assert(tutti::TypeOf<tutti::bfloat16>::value == TUTTI_BFLOAT16);
  static_assert(!tutti::Element<bool> && !tutti::Element<wchar_t> && !tutti::Element<long double>);
  EXPECT_STREQ(tutti::name(tutti::Op::bit_xor), "bit_xor");
  EXPECT_STREQ(tutti::name(tutti::Status::peer_failed), "peer_failed");
}

TEST(CppValues, MemoryIsWhatLastsAndWhatCanBeWritten) {
  static_assert(tutti::Output<std::vector<float>&> && tutti::Output<std::span<float>> && tutti::Output<float(&)[3]>);
  static_assert(tutti::Memory<const std::vector<float>&> && !tutti::Output<const std::vector<float>&>);
  static_assert(tutti::Memory<std::vector<float>> && !tutti::LastingMemory<std::vector<float>>, "a temporary");
  static_assert(!tutti::Memory<std::vector<bool>&> && !tutti::Memory<std::vector<std::string>&>);
  static_assert(tutti::MemoryList<std::vector<std::span<const int>>> &&
                !tutti::OutputList<std::vector<std::span<const int>>>);
  static_assert(tutti::OutputList<std::vector<std::vector<int>>&>);
  static_assert(!std::is_copy_constructible_v<tutti::Group> && std::is_nothrow_move_constructible_v<tutti::Group>);
  static_assert(!std::is_copy_constructible_v<tutti::Work> && std::is_nothrow_move_constructible_v<tutti::Work>);
}

}  // namespace
}  // namespace tutti_test
