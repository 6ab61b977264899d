// Reductions, and contractions as sums of products. The order of a sum depends on its own length and on the target's
// vectors alone: never on threads, on its place, or on what else is reduced.
//
// Columns: the vector runs along the last kept loop; every lane is one chain over the reduced loops.
// Rows: the vector runs along the last reduced loop; kRowChains vectors of partial sums, added pairwise, then lane by
// lane pairwise. A rest that fills no vector is added to its lanes under a mask, or one by one at the end
// where the target has no masks.
#include "codegen/kernel_body.h"
#include "codegen/llvm_math.h"

namespace gshard {
namespace {

using IrValue = llvm::Value*;

constexpr std::int64_t kRowChains = 4;
constexpr std::int64_t kColumnBlock = 4;

class Reducer {
 public:
  explicit Reducer(KernelBody& body)
      : body_(body), kernel_(body.kernel()), dtype_(node(kernel_.outputs[0].node).dtype) {}

  void emit() { keptLoops(0); }

 private:
  const Node& node(int number) const { return kernel_.nodes[static_cast<std::size_t>(number)]; }

  // acc with the element at the current indices; as many lanes as are set.
  IrValue accumulate(IrValue acc) {
    const int element = kernel_.outputs[0].node;
    if (!kernel_.fusedProduct) return body_.combine(kernel_.reduction, dtype_, acc, body_.value(element));
    LlvmBackend math(body_.ir());
    IrValue a = body_.value(node(element).inputs[0]);
    IrValue b = body_.value(node(element).inputs[1]);
    return body_.shape().hasFma ? math.fma(a, b, acc) : math.add(math.mul(a, b), acc);
  }

  IrValue start() { return body_.splat(body_.identity(dtype_, kernel_.reduction)); }

  // -0 stands for nothing while parts are added up; a complete sum of nothing is +0.
  IrValue complete(IrValue sum) {
    if (!kernel_.zeroIfEmpty || kernel_.reduction != Reduction::Sum || !sum->getType()->isFPOrFPVectorTy()) return sum;
    IrValue isEmpty = body_.ir().getFalse();
    for (std::size_t loop = kernel_.keptLoops; loop < kernel_.loops.size(); ++loop) {
      isEmpty = body_.ir().CreateOr(isEmpty, body_.ir().CreateICmpEQ(body_.live(loop), body_.number(0)));
    }
    return body_.ir().CreateSelect(isEmpty, llvm::Constant::getNullValue(sum->getType()), sum);
  }

  void keptLoops(std::size_t depth) {
    body_.evaluateUpTo(depth);
    const bool vectorIsNext = !kernel_.rowReduce && kernel_.keptLoops > 0 && depth + 1 == kernel_.keptLoops;
    if (depth == kernel_.keptLoops) {
      if (kernel_.rowReduce)
        reduceRow();
      else
        reduceColumns(1);
      return;
    }
    auto [begin, end] = depth == 0 ? body_.outerRange() : std::pair{body_.number(0), body_.live(depth)};
    if (!vectorIsNext) {
      body_.forLoop(begin, end, 1, [&](IrValue i) {
        body_.setIndex(depth, i);
        keptLoops(depth + 1);
      });
      return;
    }
    const std::int64_t lanes = body_.chooseLanes(depth);
    const auto run = [&](std::int64_t vectors, std::int64_t width) {
      body_.setLanes(depth, width);
      begin = body_.forWholeSteps(begin, end, vectors * width, [&](IrValue i) {
        body_.setIndex(depth, i);
        reduceColumns(vectors);
      });
      body_.setLanes(depth, 1);
    };
    const std::int64_t size = kernel_.loops[depth].knownSize();
    if (lanes > 1 && size >= kColumnBlock * lanes) {
      run(kColumnBlock, lanes);
      if (kernel_.loops[depth].liveArg < 0 && size % (kColumnBlock * lanes) == 0) return;
    }
    if (lanes > 1 && body_.coversRest(depth, lanes)) {
      body_.forVectors(begin, end, depth, lanes, [&](IrValue) { reduceColumns(1); });
      return;
    }
    if (lanes > 1) run(1, lanes);
    run(1, 1);
  }

  // `vectors` neighbouring vectors of columns at once, so that their chains overlap and whole cache lines are used.
  void reduceColumns(std::int64_t vectors) {
    const std::size_t vectorLoop = kernel_.keptLoops - 1;
    IrValue first = kernel_.keptLoops > 0 ? body_.index(vectorLoop) : nullptr;
    std::vector<IrValue> sums;
    for (std::int64_t v = 0; v < vectors; ++v) {
      sums.push_back(body_.temporary(start()->getType()));
      body_.ir().CreateStore(start(), sums.back());
    }
    const auto at = [&](std::int64_t v) {
      if (first != nullptr) body_.setIndex(vectorLoop, body_.ir().CreateAdd(first, body_.number(v * body_.lanes())));
    };
    reducedLoops(kernel_.keptLoops, [&] {
      const KernelBody::Values before = body_.values();
      for (std::int64_t v = 0; v < vectors; ++v) {
        at(v);
        IrValue slot = sums[static_cast<std::size_t>(v)];
        IrValue acc = body_.ir().CreateLoad(start()->getType(), slot);
        body_.ir().CreateStore(accumulate(acc), slot);
        body_.restore(before);
      }
    });
    for (std::int64_t v = 0; v < vectors; ++v) {
      at(v);
      IrValue acc = body_.ir().CreateLoad(start()->getType(), sums[static_cast<std::size_t>(v)]);
      body_.storeAt(kernel_.outputs[0].access, complete(acc));
    }
    if (first != nullptr) body_.setIndex(vectorLoop, first);
  }

  void reducedLoops(std::size_t depth, const std::function<void()>& inner) {
    if (depth == kernel_.loops.size()) {
      inner();
      return;
    }
    body_.forLoop(body_.number(0), body_.live(depth), 1, [&](IrValue i) {
      body_.setIndex(depth, i);
      reducedLoops(depth + 1, inner);
    });
  }

  void reduceRow() {
    const std::size_t last = kernel_.loops.size() - 1;
    const std::int64_t lanes = body_.chooseLanes(last);
    IrValue scalarSum = body_.temporary(body_.laneType(dtype_));
    body_.ir().CreateStore(body_.identity(dtype_, kernel_.reduction), scalarSum);
    const bool manyChains = lanes > 1 && kernel_.loops[last].size >= kRowChains * lanes;
    const std::int64_t chains = lanes == 1 ? 0 : manyChains ? kRowChains : 1;
    body_.setLanes(last, lanes);
    llvm::Type* vectorType = start()->getType();
    std::vector<IrValue> sums;
    for (std::int64_t c = 0; c < chains; ++c) {
      sums.push_back(body_.temporary(vectorType));
      body_.ir().CreateStore(start(), sums.back());
    }
    body_.setLanes(last, 1);
    outerReducedLoops(kernel_.keptLoops, last, [&] {
      IrValue begin = body_.number(0);
      IrValue end = body_.live(last);
      const auto run = [&](std::int64_t count) {
        body_.setLanes(last, lanes);
        begin = body_.forWholeSteps(begin, end, count * lanes, [&](IrValue i) {
          const KernelBody::Values before = body_.values();
          for (std::int64_t c = 0; c < count; ++c) {
            body_.setIndex(last, body_.ir().CreateAdd(i, body_.number(c * lanes)));
            IrValue slot = sums[static_cast<std::size_t>(c)];
            body_.ir().CreateStore(accumulate(body_.ir().CreateLoad(vectorType, slot)), slot);
            body_.restore(before);
          }
        });
        body_.setLanes(last, 1);
      };
      if (chains > 1) {
        run(chains);
        if (kernel_.loops[last].liveArg < 0 && kernel_.loops[last].size % (chains * lanes) == 0) return;
      }
      if (chains > 0 && body_.coversRest(last, lanes)) {
        body_.forVectors(begin, end, last, lanes, [&](IrValue) {
          IrValue acc = body_.ir().CreateLoad(vectorType, sums[0]);
          body_.ir().CreateStore(body_.whereLive(accumulate(acc), acc), sums[0]);
        });
        return;
      }
      if (chains > 0) run(1);
      body_.forLoop(begin, end, 1, [&](IrValue i) {
        body_.setIndex(last, i);
        IrValue acc = body_.ir().CreateLoad(body_.laneType(dtype_), scalarSum);
        body_.ir().CreateStore(accumulate(acc), scalarSum);
      });
    });
    IrValue total = body_.ir().CreateLoad(body_.laneType(dtype_), scalarSum);
    if (chains > 0) total = body_.combine(kernel_.reduction, dtype_, joinLanes(joinChains(sums, vectorType)), total);
    body_.storeAt(kernel_.outputs[0].access, complete(total));
  }

  void outerReducedLoops(std::size_t depth, std::size_t last, const std::function<void()>& inner) {
    body_.evaluateUpTo(depth);
    if (depth == last) {
      inner();
      return;
    }
    body_.forLoop(body_.number(0), body_.live(depth), 1, [&](IrValue i) {
      body_.setIndex(depth, i);
      outerReducedLoops(depth + 1, last, inner);
    });
  }

  IrValue joinChains(const std::vector<IrValue>& slots, llvm::Type* type) {
    std::vector<IrValue> sums;
    for (IrValue slot : slots) sums.push_back(body_.ir().CreateLoad(type, slot));
    while (sums.size() > 1) {
      std::vector<IrValue> half;
      for (std::size_t i = 0; i + 1 < sums.size(); i += 2) {
        half.push_back(body_.combine(kernel_.reduction, dtype_, sums[i], sums[i + 1]));
      }
      sums = half;
    }
    return sums[0];
  }

  // Upper half onto lower half until one lane is left.
  IrValue joinLanes(IrValue vector) {
    std::int64_t lanes =
        static_cast<std::int64_t>(llvm::cast<llvm::FixedVectorType>(vector->getType())->getNumElements());
    while (lanes > 1) {
      lanes /= 2;
      std::vector<int> low, high;
      for (std::int64_t i = 0; i < lanes; ++i) {
        low.push_back(static_cast<int>(i));
        high.push_back(static_cast<int>(i + lanes));
      }
      vector = body_.combine(kernel_.reduction, dtype_, body_.ir().CreateShuffleVector(vector, low),
                             body_.ir().CreateShuffleVector(vector, high));
    }
    return body_.ir().CreateExtractElement(vector, std::uint64_t{0});
  }

  KernelBody& body_;
  const LoopKernel& kernel_;
  DType dtype_;
};

}  // namespace

void emitReduceKernel(KernelBody& body) {
  Reducer(body).emit();
}

}  // namespace gshard
