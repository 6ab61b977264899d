// Random numbers: Random123's published answers, the ranges, and independence of how a tensor is cut (case T25).
#include <Random123/philox.h>
#include <gtest/gtest.h>

#include <cmath>
#include <vector>

#include "runtime/philox.h"

namespace gshard::runtime {
namespace {

using random_values::Block;
using random_values::Stream;

TEST(Philox, PublishedAnswers) {
  const Block zero = random_values::philox(Block{{0, 0, 0, 0}}, 0, 0);
  EXPECT_EQ(zero.word[0], 0x6627e8d5u);
  EXPECT_EQ(zero.word[1], 0xe169c58du);
  EXPECT_EQ(zero.word[2], 0xbc57ac4cu);
  EXPECT_EQ(zero.word[3], 0x9b00dbd8u);
  const Block pi =
      random_values::philox(Block{{0x243f6a88u, 0x85a308d3u, 0x13198a2eu, 0x03707344u}}, 0xa4093822u, 0x299f31d0u);
  EXPECT_EQ(pi.word[0], 0xd16cfe09u);
  EXPECT_EQ(pi.word[1], 0x94fdcceb);
  EXPECT_EQ(pi.word[2], 0x5001e420u);
  EXPECT_EQ(pi.word[3], 0x24126ea1u);
}

TEST(Philox, EqualsRandom123) {
  for (std::uint32_t i = 0; i < 1000; ++i) {
    const r123::Philox4x32 generator;
    const r123::Philox4x32::ctr_type counter{{i * 2654435761u, i, ~i, i * i}};
    const r123::Philox4x32::key_type key{{i ^ 0xABCDu, i << 7}};
    const auto expected = generator(counter, key);
    const Block found = random_values::philox(Block{{counter[0], counter[1], counter[2], counter[3]}}, key[0], key[1]);
    for (int word = 0; word < 4; ++word) ASSERT_EQ(found.word[word], expected[static_cast<std::size_t>(word)]);
  }
}

TEST(RandomValues, TilesEqualTheWhole) {
  const Stream stream{42, 7, 3};
  std::vector<float> whole(31);
  std::vector<double> wide(31);
  fillNormal(stream, 0, 31, whole.data());
  fillUniform(stream, 0, 31, -2.0, 5.0, wide.data());
  for (const std::int64_t part : {1, 7, 8, 16}) {
    for (std::int64_t first = 0; first < 31; first += part) {
      const std::int64_t count = std::min<std::int64_t>(part, 31 - first);
      std::vector<float> tile(static_cast<std::size_t>(count));
      std::vector<double> wideTile(static_cast<std::size_t>(count));
      fillNormal(stream, static_cast<std::uint64_t>(first), count, tile.data());
      fillUniform(stream, static_cast<std::uint64_t>(first), count, -2.0, 5.0, wideTile.data());
      for (std::int64_t i = 0; i < count; ++i) {
        EXPECT_EQ(tile[static_cast<std::size_t>(i)], whole[static_cast<std::size_t>(first + i)]);
        EXPECT_EQ(wideTile[static_cast<std::size_t>(i)], wide[static_cast<std::size_t>(first + i)]);
      }
    }
  }
}

TEST(RandomValues, UniformFillEqualsTheFormula) {
  const Stream stream{~0ull, 0xFFFFFFFFu, 9};
  std::vector<float> values(13);
  fillUniform(stream, 6, 13, 0.0f, 1.0f, values.data());
  for (std::uint64_t i = 0; i < 13; ++i) {
    EXPECT_EQ(values[i], random_values::uniformF32(stream, 6 + i, 0.0f, 1.0f));
    EXPECT_EQ(values[i], random_values::uniformF32(stream, 6 + i));
    EXPECT_GE(values[i], 0.0f);
    EXPECT_LT(values[i], 1.0f);
  }
}

TEST(RandomValues, MomentsAreThoseOfTheDistributions) {
  const Stream stream{1, 2, 3};
  constexpr std::int64_t kCount = 200000;
  std::vector<float> values(kCount);
  fillNormal(stream, 0, kCount, values.data());
  double sum = 0;
  double squares = 0;
  for (const float value : values) {
    sum += value;
    squares += static_cast<double>(value) * value;
  }
  EXPECT_NEAR(sum / kCount, 0.0, 0.01);
  EXPECT_NEAR(squares / kCount, 1.0, 0.02);
  fillUniform(stream, 0, kCount, 0.0f, 1.0f, values.data());
  sum = 0;
  for (const float value : values) sum += value;
  EXPECT_NEAR(sum / kCount, 0.5, 0.005);
}

TEST(RandomValues, SeedSiteAndStepAllMatter) {
  const float base = random_values::uniformF32(Stream{1, 1, 1}, 5);
  EXPECT_NE(base, random_values::uniformF32(Stream{2, 1, 1}, 5));
  EXPECT_NE(base, random_values::uniformF32(Stream{1, 2, 1}, 5));
  EXPECT_NE(base, random_values::uniformF32(Stream{1, 1, 2}, 5));
  EXPECT_NE(base, random_values::uniformF32(Stream{1ull << 40, 1, 1}, 5));
}

}  // namespace
}  // namespace gshard::runtime
