// What shrinking makes of failing programs, with failures that are said here instead of found: a program that fails for
// one statement must come down to that statement, and stay a program of the language all the way.
#include "tests/fuzz/shrink.h"

#include <gtest/gtest.h>

#include "tests/fuzz/gsd_check.h"

namespace gshard::fuzz {
namespace {

bool uses(const GsdProgram& program, const std::string& builtin) {
  for (const GsdStatement& statement : program.statements) {
    if (statement.text.starts_with(builtin)) return true;
  }
  return false;
}

bool isSplit(const GsdProgram& program) {
  for (const GsdInput& input : program.inputs) {
    if (input.annotation.starts_with(" @shard")) return true;
  }
  return false;
}

// The first program from `seed` on that `fails`.
GsdProgram firstWith(std::uint64_t seed, const std::function<bool(const GsdProgram&)>& fails) {
  for (;; ++seed) {
    const GsdProgram program = makeGsdProgram(seed);
    if (fails(program)) return program;
  }
}

TEST(Shrink, OneStatementIsLeft) {
  for (const std::string builtin :
       {"reverse(", "einsum(", "pad(", "argmax(", "cast(argmax(", "scatter_add(", "take("}) {
    const auto fails = [&](const GsdProgram& each) { return uses(each, builtin); };
    const GsdProgram small = shrink(firstWith(1, fails), fails);
    ASSERT_TRUE(fails(small)) << builtin;
    EXPECT_EQ(small.statements.size(), 1u) << gsdText(small);
    EXPECT_EQ(small.kind, GsdKind::Forward) << gsdText(small);
    EXPECT_EQ(small.devices(), 1) << gsdText(small);
    EXPECT_FALSE(isSplit(small)) << gsdText(small);
  }
}

TEST(Shrink, WhatTheFailureNeedsIsKept) {
  const auto fails = [](const GsdProgram& each) {
    return each.kind == GsdKind::Training && each.devices() > 2 && isSplit(each) && uses(each, "sum(");
  };
  const GsdProgram small = shrink(firstWith(1, fails), fails);
  ASSERT_TRUE(fails(small));
  EXPECT_LE(small.statements.size(), 2u) << gsdText(small);
  EXPECT_EQ(small.devices(), 3) << gsdText(small);
}

TEST(Shrink, EveryStepIsAProgramOfTheLanguage) {
  int steps = 0;
  for (std::uint64_t seed = 1; seed <= 12; ++seed) {
    const auto fails = [&](const GsdProgram& each) {
      ++steps;
      const std::optional<std::string> fault = checkOnEvaluator(each);
      EXPECT_FALSE(fault) << *fault << gsdText(each);
      return each.statements.size() > 2;
    };
    shrink(makeGsdProgram(seed), fails, 60);
  }
  EXPECT_GT(steps, 100);
}

TEST(Programs, AreTheSameForTheSameSeed) {
  for (std::uint64_t seed = 1; seed <= 20; ++seed)
    EXPECT_EQ(gsdText(makeGsdProgram(seed)), gsdText(makeGsdProgram(seed)));
  EXPECT_NE(gsdText(makeGsdProgram(1)), gsdText(makeGsdProgram(2)));
}

TEST(Programs, AllKindsOccurAndAreSplit) {
  std::map<GsdKind, int> kinds;
  int split = 0;
  for (std::uint64_t seed = 1; seed <= 300; ++seed) {
    const GsdProgram program = makeGsdProgram(seed);
    ++kinds[program.kind];
    split += isSplit(program) ? 1 : 0;
  }
  EXPECT_EQ(kinds.size(), 3u);
  for (const auto& [kind, count] : kinds) EXPECT_GT(count, 50);
  EXPECT_GT(split, 150);
}

}  // namespace
}  // namespace gshard::fuzz
