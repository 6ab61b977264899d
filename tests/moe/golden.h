// Golden routes of moe.md (10.1) and cases.md (T28), once, for the reference and for compiled programs.
#pragma once

#include <cmath>
#include <cstddef>
#include <vector>

namespace gshard::testing::moe {

struct Route {
  int token, expert, slot;
  double weight;
};

// S tokens of E logits, and the gates of a softmax over them.
struct GoldenGroup {
  std::size_t S, E;
  std::vector<double> logits;
  std::vector<double> gates() const {
    std::vector<double> result(logits.size());
    for (std::size_t s = 0; s < S; ++s) {
      double sum = 0;
      for (std::size_t e = 0; e < E; ++e) sum += std::exp(logits[s * E + e]);
      for (std::size_t e = 0; e < E; ++e) result[s * E + e] = std::exp(logits[s * E + e]) / sum;
    }
    return result;
  }
};

inline const GoldenGroup kGating = {8, 4, {2, 1, 0, -1, 2,   .5, 1.5, 0, 1, 3,  0,  .5,  3,   0, 1, 2,
                                           0, 1, 2, .5, 1.5, 1,  .5,  0, 0, .2, .1, 2.5, 2.5, 2, 1, 0}};
inline const std::vector<float> kUniform = {.9F, .9F, .05F, .9F, .5F, .9F, .3F, .7F};

// T28: group 0, and group 1 with expert e moved to (e + 1) mod 3.
inline const GoldenGroup kT28[2] = {
    {6, 4, {2, 1, 0, -9, 2, 1, 0, -9, 2, 1, 0, -9, 0, 2, 1, -9, 1, 0, 2, -9, 2, 0, 1, -9}},
    {6, 4, {0, 2, 1, -9, 0, 2, 1, -9, 0, 2, 1, -9, 1, 0, 2, -9, 2, 1, 0, -9, 1, 2, 0, -9}}};

}  // namespace gshard::testing::moe
