// Loops of evaluate rules: over the live box of a tile, and from global indices to places in a tile. Slow and obvious.
#pragma once

#include "ir/evaluator.h"

namespace gshard {

using Index = std::vector<std::int64_t>;

// Calls visit(index) for every index of the box, row-major. A box without dims has one index.
template <class Visit>
void forEachIndex(const std::vector<std::int64_t>& sizes, Visit&& visit) {
  for (const std::int64_t size : sizes) {
    if (size <= 0) return;
  }
  Index index(sizes.size(), 0);
  while (true) {
    visit(static_cast<const Index&>(index));
    std::size_t dim = sizes.size();
    while (dim > 0 && ++index[dim - 1] == sizes[dim - 1]) index[--dim] = 0;
    if (dim == 0) return;
  }
}

std::vector<std::int64_t> liveSizes(const std::vector<Tile>& tiles);
std::int64_t flatOf(const Index& index, const std::vector<std::int64_t>& shape);  // row-major
Index indexOf(std::int64_t flat, const std::vector<std::int64_t>& shape);
Index toGlobal(const Index& local, const std::vector<Tile>& tiles);
// Place of a global index in a tile; an index outside its live part is a bug of the partitioner.
std::int64_t placeOf(const Index& global, const Tensor& tile, const std::vector<Tile>& tiles);

// One element from a tensor to another of the same kind of dtype.
void copyElement(const Tensor& from, std::int64_t place, Tensor& to, std::int64_t at);
// The number that stands for "nothing yet" in a reduction, and one step of it, both in the tensor's representation.
struct Number {
  double real = 0;
  std::int64_t integer = 0;
};
Number numberAt(const Tensor& tensor, std::int64_t place);
void storeNumber(Tensor& tensor, std::int64_t place, const Number& number);  // rounds and wraps to the dtype
Number identityOf(Reduction reduction, DType dtype);                         // sum: -0
// Float steps in double; `rounded` rounds every step to the dtype, as devices do between each other.
Number reduceStep(Reduction reduction, DType dtype, const Number& a, const Number& b, bool rounded);

}  // namespace gshard
