// The order in which rows are drawn: a permutation per epoch that needs no memory and no state, so that every device
// and every resumed run finds the same row. A Feistel network over the next power of four, walked until it falls
// inside (Black and Rogaway, "Ciphers with arbitrary finite domains", 2002), with Philox as round function.
#pragma once
#include <cstdint>

namespace gshard::runtime {

class RowOrder {
 public:
  RowOrder(std::uint64_t seed, std::int64_t rows);

  std::int64_t rows() const { return rows_; }
  // The row at `position` of `epoch`; a bijection of 0..rows for each epoch.
  std::int64_t at(std::int64_t epoch, std::int64_t position) const;

 private:
  std::uint64_t seed_;
  std::int64_t rows_;
  int halfBits_ = 1;
};

}  // namespace gshard::runtime
