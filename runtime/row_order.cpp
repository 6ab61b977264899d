// Row permutations; see row_order.h.
#include "runtime/row_order.h"

#include "runtime/philox.h"

namespace gshard::runtime {

RowOrder::RowOrder(std::uint64_t seed, std::int64_t rows) : seed_(seed), rows_(rows) {
  while ((std::int64_t{1} << (2 * halfBits_)) < rows) ++halfBits_;
}

std::int64_t RowOrder::at(std::int64_t epoch, std::int64_t position) const {
  constexpr int kRounds = 6;
  constexpr random_values::Word kSite = 0x526F7773u;  // "Rows"
  const std::uint32_t mask = halfBits_ >= 32 ? 0xFFFFFFFFu : (std::uint32_t{1} << halfBits_) - 1;
  std::uint64_t value = static_cast<std::uint64_t>(position);
  do {
    std::uint32_t left = static_cast<std::uint32_t>(value >> halfBits_) & mask;
    std::uint32_t right = static_cast<std::uint32_t>(value) & mask;
    for (std::uint32_t round = 0; round < kRounds; ++round) {
      const random_values::Block block =
          random_values::philox(random_values::Block{{right, round, static_cast<random_values::Word>(epoch), kSite}},
                                static_cast<random_values::Word>(seed_), static_cast<random_values::Word>(seed_ >> 32));
      const std::uint32_t mixed = (left ^ block.word[0]) & mask;
      left = right;
      right = mixed;
    }
    value = (static_cast<std::uint64_t>(left) << halfBits_) | right;
  } while (value >= static_cast<std::uint64_t>(rows_));
  return static_cast<std::int64_t>(value);
}

}  // namespace gshard::runtime
