// Map kernels: every element of every output from its own indices. The innermost loop runs in vectors; a rest
// under a mask or, where the target has none, one by one, with the same arithmetic.
#include "codegen/kernel_body.h"

namespace gshard {
namespace {

void storeOutputs(KernelBody& body) {
  const LoopKernel& kernel = body.kernel();
  // All loads come before any store: an output may lie where an input was.
  std::vector<llvm::Value*> values;
  for (const KernelOutput& output : kernel.outputs) values.push_back(body.value(output.node));
  for (std::size_t i = 0; i < values.size(); ++i) body.storeAt(kernel.outputs[i].access, values[i]);
}

void emitLoop(KernelBody& body, std::size_t depth) {
  const std::size_t loops = body.kernel().loops.size();
  body.evaluateUpTo(depth);
  if (depth == loops) {
    storeOutputs(body);
    return;
  }
  auto [begin, end] = depth == 0 ? body.outerRange() : std::pair{body.number(0), body.live(depth)};
  if (depth + 1 < loops) {
    body.forLoop(begin, end, 1, [&](llvm::Value* i) {
      body.setIndex(depth, i);
      emitLoop(body, depth + 1);
    });
    return;
  }
  const auto inner = [&](llvm::Value* i) {
    body.setIndex(depth, i);
    storeOutputs(body);
  };
  const std::int64_t lanes = body.chooseLanes(depth);
  if (lanes > 1 && body.coversRest(depth, lanes)) {
    body.forVectors(begin, end, depth, lanes, [&](llvm::Value*) { storeOutputs(body); });
    return;
  }
  if (lanes > 1) {
    body.setLanes(depth, lanes);
    begin = body.forWholeSteps(begin, end, lanes, inner);
    body.setLanes(depth, 1);
  }
  body.forLoop(begin, end, 1, inner);
}

}  // namespace

void emitMapKernel(KernelBody& body) {
  emitLoop(body, 0);
}

}  // namespace gshard
