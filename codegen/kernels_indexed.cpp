// Kernels whose element order or place is found at run time: argmax, scatter_add, windows, and random numbers, which
// the runtime computes row by row so that every build of it yields the same bits.
#include "codegen/kernel_body.h"
#include "codegen/llvm_math.h"
#include "llvm/IR/Module.h"
#include "runtime/abi.h"
#include "support/check.h"

namespace gshard {

using IrValue = llvm::Value*;

void emitKeptLoops(KernelBody& body, std::size_t depth, std::size_t count, const std::function<void()>& inner) {
  body.evaluateUpTo(depth);
  if (depth == count) {
    inner();
    return;
  }
  const auto [begin, end] = depth == 0 ? body.outerRange() : std::pair{body.number(0), body.live(depth)};
  body.forLoop(begin, end, 1, [&](IrValue i) {
    body.setIndex(depth, i);
    emitKeptLoops(body, depth + 1, count, inner);
  });
}

std::int64_t abiDtype(DType dtype) {
  switch (dtype) {
    case DType::F32:
      return GSHARD_RT_F32;
    case DType::F64:
      return GSHARD_RT_F64;
    case DType::BF16:
      return GSHARD_RT_BF16;
    case DType::F16:
      return GSHARD_RT_F16;
    case DType::I32:
      return GSHARD_RT_I32;
    case DType::I64:
      return GSHARD_RT_I64;
    case DType::U8:
      return GSHARD_RT_U8;
    case DType::Bool:
      return GSHARD_RT_BOOL;
  }
  GSHARD_UNREACHABLE("dtype");
}

// Ties go to the lowest index; a NaN wins over every number, the first NaN over the others.
void emitArgReduceKernel(KernelBody& body) {
  const LoopKernel& kernel = body.kernel();
  llvm::IRBuilder<>& ir = body.ir();
  const std::size_t axis = kernel.loops.size() - 1;
  const bool withValue = kernel.outputs.size() == 2;
  const int element = kernel.outputs[0].node;
  const DType dtype = kernel.nodes[static_cast<std::size_t>(element)].dtype;
  IrValue best = body.temporary(body.laneType(dtype));
  IrValue bestIndex = body.temporary(ir.getInt64Ty());
  emitKeptLoops(body, 0, axis, [&] {
    ir.CreateStore(body.identity(dtype, kernel.isMax ? Reduction::Max : Reduction::Min), best);
    ir.CreateStore(body.number(-1), bestIndex);
    body.forLoop(body.number(0), body.live(axis), 1, [&](IrValue i) {
      body.setIndex(axis, i);
      IrValue x = body.value(element);
      IrValue old = ir.CreateLoad(body.laneType(dtype), best);
      IrValue oldIndex = ir.CreateLoad(ir.getInt64Ty(), bestIndex);
      IrValue better = nullptr;
      if (x->getType()->isFloatingPointTy()) {
        IrValue beats = kernel.isMax ? ir.CreateFCmpOGT(x, old) : ir.CreateFCmpOLT(x, old);
        better = ir.CreateAnd(ir.CreateOr(beats, ir.CreateFCmpUNO(x, x)), ir.CreateFCmpORD(old, old));
      } else if (dtype == DType::Bool) {
        better = kernel.isMax ? ir.CreateICmpUGT(x, old) : ir.CreateICmpULT(x, old);
      } else {
        better = kernel.isMax ? ir.CreateICmpSGT(x, old) : ir.CreateICmpSLT(x, old);
      }
      better = ir.CreateOr(better, ir.CreateICmpSLT(oldIndex, body.number(0)));  // the first one
      ir.CreateStore(ir.CreateSelect(better, x, old), best);
      ir.CreateStore(ir.CreateSelect(better, i, oldIndex), bestIndex);
    });
    IrValue index = ir.CreateLoad(ir.getInt64Ty(), bestIndex);
    index = ir.CreateSelect(ir.CreateICmpSLT(index, body.number(0)), body.number(0), index);
    if (kernel.indexOffsetArg >= 0) index = ir.CreateAdd(index, body.tileBegin(kernel.indexOffsetArg));
    // An empty part begins at the end of the dim.
    IrValue last = body.number(kernel.indexLimit - 1);
    index = ir.CreateSelect(ir.CreateICmpSLT(index, last), index, last);
    if (withValue) body.storeAt(kernel.outputs[0].access, ir.CreateLoad(body.laneType(dtype), best));
    body.storeAt(kernel.outputs.back().access, ir.CreateTrunc(index, ir.getInt32Ty()));
  });
}

// Adds in ascending order of the flat index, so that repeated indices give the same sum on every layout.
void emitScatterKernel(KernelBody& body) {
  const LoopKernel& kernel = body.kernel();
  llvm::IRBuilder<>& ir = body.ir();
  const std::size_t rows = kernel.loops.size() - kernel.rowLoops;
  const KernelOutput& output = kernel.outputs[0];
  const auto add = [&](IrValue more) {
    IrValue old = body.loadAt(output.access, more);
    if (!old->getType()->isVectorTy()) old = body.splat(old);
    body.storeAt(output.access, body.combine(Reduction::Sum, output.dtype, old, body.value(output.node)), more);
  };
  const std::function<void(std::size_t, IrValue)> rowLoops = [&](std::size_t depth, IrValue more) {
    if (depth == kernel.loops.size()) {
      add(more);
      return;
    }
    IrValue begin = body.number(0);
    IrValue end = body.live(depth);
    if (depth + 1 == kernel.loops.size()) {
      const std::int64_t lanes = body.chooseLanes(depth);
      if (lanes > 1 && output.access.index.scales[depth] == 1) {
        body.setLanes(depth, lanes);
        begin = body.forWholeSteps(begin, end, lanes, [&](IrValue i) {
          body.setIndex(depth, i);
          add(more);
        });
        body.setLanes(depth, 1);
      }
    }
    body.forLoop(begin, end, 1, [&](IrValue i) {
      body.setIndex(depth, i);
      rowLoops(depth + 1, more);
    });
  };
  const std::function<void(std::size_t)> indexLoops = [&](std::size_t depth) {
    if (depth < rows) {
      body.forLoop(body.number(0), body.live(depth), 1, [&](IrValue i) {
        body.setIndex(depth, i);
        indexLoops(depth + 1);
      });
      return;
    }
    IrValue index = ir.CreateSExtOrTrunc(body.scalarValue(kernel.indexNode), ir.getInt64Ty());
    IrValue limit = body.number(kernel.axisSize);
    body.ifThen(ir.CreateNot(ir.CreateICmpULT(index, limit)),
                [&] { body.recordFault(kernel.siteArg, body.linear(kernel.position), index, kernel.axisSize); });
    IrValue row = ir.CreateSelect(ir.CreateICmpSLT(index, body.number(0)), body.number(0), index);
    row = ir.CreateSelect(ir.CreateICmpSLT(row, limit), row, body.number(kernel.axisSize - 1));
    IrValue inside = ir.getTrue();
    if (kernel.splitArg >= 0) {
      row = ir.CreateSub(row, body.tileBegin(kernel.splitArg));
      inside = ir.CreateICmpULT(row, body.tileLive(kernel.splitArg));
    }
    body.ifThen(inside, [&] { rowLoops(rows, ir.CreateMul(row, body.number(kernel.axisStride))); });
  };
  emitKeptLoops(body, 0, kernel.keptLoops, [&] { indexLoops(kernel.keptLoops); });
}

void emitWindowWriteKernel(KernelBody& body) {
  const LoopKernel& kernel = body.kernel();
  const KernelOutput& output = kernel.outputs[0];
  const auto store = [&] {
    const KernelBody::Row place = body.place(kernel.placeNode);
    IrValue value = body.value(output.node);
    if (place.inside == nullptr)
      body.storeAt(output.access, value, place.offset);
    else
      body.ifThen(place.inside, [&] { body.storeAt(output.access, value, place.offset); });
  };
  const std::function<void(std::size_t)> loops = [&](std::size_t depth) {
    body.evaluateUpTo(depth);
    if (depth == kernel.loops.size()) {
      store();
      return;
    }
    auto [begin, end] = depth == 0 ? body.outerRange() : std::pair{body.number(0), body.live(depth)};
    const std::int64_t lanes = depth + 1 == kernel.loops.size() ? body.chooseLanes(depth) : 1;
    if (lanes > 1 && body.coversRest(depth, lanes)) {
      body.forVectors(begin, end, depth, lanes, [&](IrValue) { store(); });
      return;
    }
    if (lanes > 1) {
      body.setLanes(depth, lanes);
      begin = body.forWholeSteps(begin, end, lanes, [&](IrValue i) {
        body.setIndex(depth, i);
        store();
      });
      body.setLanes(depth, 1);
    }
    body.forLoop(begin, end, 1, [&](IrValue i) {
      body.setIndex(depth, i);
      loops(depth + 1);
    });
  };
  loops(0);
}

void emitRandomKernel(KernelBody& body) {
  const LoopKernel& kernel = body.kernel();
  llvm::IRBuilder<>& ir = body.ir();
  const KernelOutput& output = kernel.outputs[0];
  llvm::Module& module = *ir.GetInsertBlock()->getModule();
  // A call fills a run of neighbours, which the last loop is unless the tile holds one element of each row.
  const std::size_t loops = kernel.loops.size();
  const bool hasRuns =
      loops > 0 && kernel.position.scales[loops - 1] == 1 && output.access.index.scales[loops - 1] == 1;
  const std::size_t runLoop = hasRuns ? loops - 1 : loops;
  body.evaluateUpTo(0);
  IrValue step = ir.CreateSExtOrTrunc(body.scalarValue(kernel.stepNode), ir.getInt64Ty());
  IrValue first = kernel.firstNode < 0 ? body.number(0) : body.scalarValue(kernel.firstNode);
  const auto call = [&](IrValue count) {
    std::vector<IrValue> args = {body.context(),
                                 body.elementPointer(output.access),
                                 body.number(abiDtype(output.dtype)),
                                 ir.CreateAdd(body.linear(kernel.position), first),
                                 count,
                                 body.extra(kernel.siteArg),
                                 step};
    if (!kernel.isNormal) {
      args.push_back(llvm::ConstantFP::get(ir.getDoubleTy(), kernel.low));
      args.push_back(llvm::ConstantFP::get(ir.getDoubleTy(), kernel.high));
    }
    ir.CreateCall(runtimeFunction(module, kernel.isNormal ? "gshard_rt_random_normal" : "gshard_rt_random_uniform"),
                  args);
  };
  if (!hasRuns) {
    emitKeptLoops(body, 0, loops, [&] { call(body.number(1)); });
    return;
  }
  const auto run = [&](IrValue begin, IrValue end) {
    body.setIndex(runLoop, begin);
    call(ir.CreateSub(end, begin));
  };
  if (runLoop == 0) {
    const auto [begin, end] = body.outerRange();
    run(begin, end);
    return;
  }
  emitKeptLoops(body, 0, runLoop, [&] { run(body.number(0), body.live(runLoop)); });
}

}  // namespace gshard
