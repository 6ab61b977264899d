// What random_uniform and random_normal share.
#pragma once

#include "ir/evaluate_loops.h"
#include "ir/op_rules.h"
#include "ir/random_values.h"

namespace gshard {

// Operands: step and, where the result is a block of rows of something larger, how many elements lie before the block.
std::optional<ResultTypes> inferRandom(const OpView& op, DiagSink& diag);
// Calls value(stream, global flat index) for every live element.
template <class ValueOf>
void evaluateRandom(const OpView& op, EvalFrame& frame, ValueOf&& value) {
  const RandomStream stream{frame.seed, static_cast<std::uint32_t>(op.intAttr("site")),
                            static_cast<std::uint32_t>(frame.in(0).ints[0])};
  const std::int64_t first = op.operandCount() > 1 ? frame.in(1).ints[0] : 0;
  forEachIndex(liveSizes(frame.resultTiles[0]), [&](const Index& local) {
    const std::int64_t global = first + flatOf(toGlobal(local, frame.resultTiles[0]), op.resultType().shape);
    frame.out().floats[static_cast<std::size_t>(flatOf(local, frame.out().type.shape))] =
        value(stream, static_cast<std::uint64_t>(global));
  });
}

}  // namespace gshard
