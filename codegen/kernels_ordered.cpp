// Kernels along an axis whose elements depend on their order: running sums, generated, and sorts and routes, which the
// runtime does row by row.
#include "codegen/kernel_body.h"
#include "codegen/llvm_math.h"
#include "llvm/IR/Module.h"
#include "runtime/abi.h"

namespace gshard {
namespace {

using IrValue = llvm::Value*;

// One chain of sums per lane; the vector runs along the last kept loop where that is dense.
class Scanner {
 public:
  explicit Scanner(KernelBody& body)
      : body_(body),
        kernel_(body.kernel()),
        output_(kernel_.outputs[0]),
        axis_(kernel_.loops.size() - 1),
        dtype_(kernel_.nodes[static_cast<std::size_t>(output_.node)].dtype) {}

  void emit() { keptLoops(0); }

 private:
  void keptLoops(std::size_t depth) {
    body_.evaluateUpTo(depth);
    if (depth == kernel_.keptLoops) {
      scan();
      return;
    }
    auto [begin, end] = depth == 0 ? body_.outerRange() : std::pair{body_.number(0), body_.live(depth)};
    const bool isDense = depth + 1 == kernel_.keptLoops && output_.access.index.scales[depth] == 1;
    const std::int64_t lanes = isDense ? body_.chooseLanes(depth) : 1;
    if (lanes > 1 && body_.coversRest(depth, lanes)) {
      body_.forVectors(begin, end, depth, lanes, [&](IrValue) { scan(); });
      return;
    }
    if (lanes > 1) {
      body_.setLanes(depth, lanes);
      begin = body_.forWholeSteps(begin, end, lanes, [&](IrValue i) {
        body_.setIndex(depth, i);
        scan();
      });
      body_.setLanes(depth, 1);
    }
    body_.forLoop(begin, end, 1, [&](IrValue i) {
      body_.setIndex(depth, i);
      keptLoops(depth + 1);
    });
  }

  void scan() {
    llvm::IRBuilder<>& ir = body_.ir();
    // -0 keeps the sign of a first -0; what comes before the first element is a sum of nothing: +0.
    IrValue start = body_.identity(dtype_, Reduction::Sum);
    if (kernel_.exclusive) start = llvm::Constant::getNullValue(start->getType());
    start = body_.splat(start);
    IrValue sum = body_.temporary(start->getType());
    ir.CreateStore(start, sum);
    const auto add = [&](IrValue element) {
      IrValue before = ir.CreateLoad(start->getType(), sum);
      IrValue after = body_.combine(Reduction::Sum, dtype_, before, body_.splat(element));
      ir.CreateStore(after, sum);
      return kernel_.exclusive ? before : after;
    };
    if (kernel_.totalsPartArg >= 0) {
      IrValue own = body_.tileBegin(kernel_.totalsPartArg);
      IrValue last = body_.number(kernel_.parts - 1);
      IrValue count = kernel_.reverse ? ir.CreateSub(last, own) : own;
      body_.forLoop(body_.number(0), count, 1,
                    [&](IrValue k) { add(body_.loadAt(kernel_.totals, kernel_.reverse ? ir.CreateSub(last, k) : k)); });
    }
    IrValue live = body_.live(axis_);
    body_.forLoop(body_.number(0), live, 1, [&](IrValue k) {
      body_.setIndex(axis_, kernel_.reverse ? ir.CreateSub(ir.CreateSub(live, k), body_.number(1)) : k);
      body_.storeAt(output_.access, add(body_.value(output_.node)));
    });
  }

  KernelBody& body_;
  const LoopKernel& kernel_;
  const KernelOutput& output_;
  std::size_t axis_;
  DType dtype_;
};

// Places in the part become global indices, and the rest of the list is filled.
void finishCandidates(KernelBody& body, IrValue kept) {
  const LoopKernel& kernel = body.kernel();
  llvm::IRBuilder<>& ir = body.ir();
  const Access &values = kernel.outputs.front().access, &indices = kernel.outputs.back().access;
  const auto at = [&](IrValue i) { return ir.CreateMul(i, body.number(kernel.sortOutputStride)); };
  IrValue begin = ir.CreateTrunc(body.tileBegin(kernel.indexOffsetArg), ir.getInt32Ty());
  body.forLoop(body.number(0), kept, 1,
               [&](IrValue i) { body.storeAt(indices, ir.CreateAdd(body.loadAt(indices, at(i)), begin), at(i)); });
  IrValue least = body.identity(kernel.nodes[0].dtype, Reduction::Max);
  IrValue last = ir.getInt32(static_cast<std::uint32_t>(kernel.indexLimit - 1));
  body.forLoop(kept, body.number(kernel.sortKept), 1, [&](IrValue i) {
    body.storeAt(values, least, at(i));
    body.storeAt(indices, last, at(i));
  });
}

}  // namespace

void emitScanKernel(KernelBody& body) {
  Scanner(body).emit();
}

void emitSortKernel(KernelBody& body) {
  const LoopKernel& kernel = body.kernel();
  llvm::IRBuilder<>& ir = body.ir();
  const Node& row = kernel.nodes[0];
  IrValue workspace = body.workspace(kernel.workspaceArg, kernel.sortRowBytes());
  IrValue none = llvm::ConstantPointerNull::get(ir.getPtrTy());
  const std::function<void(std::size_t)> loops = [&](std::size_t depth) {
    if (depth < kernel.loops.size()) {
      const auto [begin, end] = depth == 0 ? body.outerRange() : std::pair{body.number(0), body.live(depth)};
      body.forLoop(begin, end, 1, [&](IrValue i) {
        body.setIndex(depth, i);
        loops(depth + 1);
      });
      return;
    }
    // A part of a split dim: its live elements; what is missing of them loses against every element (arg_candidates).
    const bool isOfPart = kernel.indexOffsetArg >= 0;
    IrValue size = isOfPart ? body.tileLive(kernel.indexOffsetArg) : body.number(kernel.sortSize);
    IrValue kept = body.number(kernel.sortKept);
    if (isOfPart) kept = ir.CreateSelect(ir.CreateICmpSLT(size, kept), size, kept);
    ir.CreateCall(runtimeFunction(*ir.GetInsertBlock()->getModule(), "gshard_rt_sort"),
                  {body.elementPointer(row.access),
                   kernel.sortsValues ? body.elementPointer(kernel.outputs.front().access) : none,
                   kernel.sortsIndices ? body.elementPointer(kernel.outputs.back().access) : none, workspace,
                   body.number(abiDtype(row.dtype)), size, kept, body.number(kernel.sortStride),
                   body.number(kernel.sortOutputStride), body.number(kernel.descending ? 1 : 0)});
    if (isOfPart) finishCandidates(body, kept);
  };
  loops(0);
}

void emitRouteKernel(KernelBody& body) {
  const LoopKernel& kernel = body.kernel();
  const RouteNumbers& route = kernel.route;
  llvm::IRBuilder<>& ir = body.ir();
  IrValue none = llvm::ConstantPointerNull::get(ir.getPtrTy());
  emitKeptLoops(body, 0, kernel.loops.size(), [&] {
    std::size_t next = 0;
    const auto input = [&](bool isGiven) { return isGiven ? body.elementPointer(kernel.nodes[next++].access) : none; };
    std::vector<IrValue> args;
    for (const bool isGiven : {true, route.hasUniform, route.hasLive}) args.push_back(input(isGiven));
    for (const KernelOutput& output : kernel.outputs) args.push_back(body.elementPointer(output.access));
    for (const std::int64_t number : {abiDtype(kernel.nodes[0].dtype), route.tokens, route.experts, route.choices,
                                      route.capacity, route.rest, route.normalise}) {
      args.push_back(body.number(number));
    }
    args.push_back(llvm::ConstantFP::get(ir.getDoubleTy(), route.limit));
    ir.CreateCall(runtimeFunction(*ir.GetInsertBlock()->getModule(), "gshard_rt_route"), args);
  });
}

}  // namespace gshard
