// gshard_rt_load: an image as codegen lays it out, by hand.
#include <gtest/gtest.h>

#include <array>
#include <cstddef>
#include <cstdlib>
#include <cstring>
#include <vector>

#include "runtime/abi.h"

namespace {

constexpr std::size_t kProgramWords = sizeof(gshard_rt_program) / 8;
// Numbers of words: of a field of the program, of what lies behind it.
constexpr std::uint32_t kName = offsetof(gshard_rt_program, name) / 8, kAxes = offsetof(gshard_rt_program, axes) / 8;
constexpr std::uint32_t kAxisName = kProgramWords, kKernel = kProgramWords + 2;

struct Image {
  std::vector<std::uint64_t> words = std::vector<std::uint64_t>(kProgramWords + 4);
  std::array<std::uint32_t, 3> addresses = {kName, kAxes, kAxisName};
  std::array<std::uint32_t, 1> symbolUses = {kKernel};
  std::array<const void*, 2> symbols = {nullptr, &kAxes};
  gshard_rt_image image{};

  Image() {
    const std::uint64_t text = (kProgramWords + 3) * 8;
    words[kName] = text;
    words[offsetof(gshard_rt_program, axis_count) / 8] = 1;
    words[kAxes] = kAxisName * 8;
    words[kAxisName] = text;
    words[kAxisName + 1] = 4;
    words[kKernel] = 1;
    std::memcpy(&words[kProgramWords + 3], "data", 5);
    image = {GSHARD_RT_ABI,
             static_cast<std::int64_t>(words.size() * 8),
             reinterpret_cast<const char*>(words.data()),
             3,
             addresses.data(),
             1,
             symbolUses.data(),
             2,
             symbols.data()};
  }
};

TEST(Image, OffsetsBecomeAddresses) {
  const Image made;
  const std::vector<std::uint64_t> before = made.words;
  const gshard_rt_program* program = gshard_rt_load(&made.image);
  ASSERT_NE(program, nullptr);
  EXPECT_STREQ(program->name, "data");
  EXPECT_EQ(program->axis_count, 1);
  EXPECT_STREQ(program->axes[0].name, "data");
  EXPECT_EQ(program->axes[0].size, 4);
  EXPECT_EQ(program->parameters, nullptr);
  EXPECT_EQ(reinterpret_cast<const void* const*>(program)[kKernel], made.symbols[1]);
  EXPECT_EQ(made.words, before) << "an image can be loaded twice";
  std::free(const_cast<gshard_rt_program*>(program));
}

TEST(Image, OfAnotherInterfaceIsRefused) {
  Image made;
  made.image.abi = GSHARD_RT_ABI - 1;
  EXPECT_EQ(gshard_rt_load(&made.image), nullptr);
}

}  // namespace
