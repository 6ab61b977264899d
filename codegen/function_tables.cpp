// Tables of one function: inputs, outputs, and its steps with the calls of kernels, products and collectives.
#include <algorithm>

#include "codegen/infinities.h"
#include "codegen/program_tables.h"
#include "llvm/IR/Function.h"
#include "llvm/IR/GlobalVariable.h"
#include "runtime/abi.h"
#include "support/check.h"

namespace gshard {
namespace {

std::int64_t kindNumber(FunctionKind kind) {
  switch (kind) {
    case FunctionKind::Init:
      return GSHARD_RT_INIT;
    case FunctionKind::Train:
      return GSHARD_RT_TRAIN;
    case FunctionKind::Eval:
      return GSHARD_RT_EVAL;
    case FunctionKind::Entry:
      return GSHARD_RT_ENTRY;
  }
  GSHARD_UNREACHABLE("kind of function");
}

std::int64_t stageNumber(Stage stage) {
  switch (stage) {
    case Stage::Whole:
      return GSHARD_RT_WHOLE;
    case Stage::Accumulate:
      return GSHARD_RT_ACCUMULATE;
    case Stage::Finish:
      return GSHARD_RT_FINISH;
  }
  GSHARD_UNREACHABLE("stage of a function");
}

std::int64_t collectiveNumber(OpKind kind) {
  if (kind == OpKind::AllReduce) return GSHARD_RT_ALL_REDUCE;
  if (kind == OpKind::ReduceScatter) return GSHARD_RT_REDUCE_SCATTER;
  if (kind == OpKind::AllGather) return GSHARD_RT_ALL_GATHER;
  if (kind == OpKind::AllToAll) return GSHARD_RT_ALL_TO_ALL;
  if (kind == OpKind::CollectivePermute) return GSHARD_RT_COLLECTIVE_PERMUTE;
  if (kind == OpKind::Exchange) return GSHARD_RT_EXCHANGE;
  if (kind == OpKind::AllSlice) return GSHARD_RT_ALL_SLICE;
  GSHARD_CHECK(kind == OpKind::MakePartial, "a step of the runtime");
  return GSHARD_RT_MAKE_PARTIAL;
}

bool isPadExchange(const OpView& op) {
  return op.op().kind == OpKind::Exchange && moveKindOf(op) == OpKind::Pad;
}

}  // namespace

std::vector<AxisRef> groupAxes(const OpView& op) {
  const OpKind kind = op.op().kind;
  if (kind != OpKind::Exchange && kind != OpKind::CollectivePermute) return op.axesAttr("axes");
  // Whole axes, since pieces of one axis may overlap between source and target.
  std::vector<bool> isUsed(op.mesh().axes.size(), false);
  const auto use = [&](ValueId value) {
    const std::optional<Sharding>& sharding = op.function().value(value).sharding;
    if (!sharding) return;
    for (const std::vector<AxisRef>& dim : sharding->dims) {
      for (const AxisRef& ref : dim) isUsed[static_cast<std::size_t>(ref.axis)] = true;
    }
  };
  for (const ValueId value : op.op().operands) use(value);
  for (const ValueId value : op.op().results) use(value);
  std::vector<AxisRef> axes;
  for (std::size_t i = 0; i < isUsed.size(); ++i) {
    if (isUsed[i]) axes.push_back(wholeAxis(op.mesh(), static_cast<int>(i)));
  }
  return axes;
}

// A name that debuggers take for one of C: "relu_h".
static std::string debugName(const Function& function, const Op& op) {
  std::string name;
  for (const char c : function.name + "_" + describeOp(function, op)) {
    const bool plain = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9');
    if (plain || !name.ends_with('_')) name += plain ? c : '_';
  }
  while (name.ends_with('_')) name.pop_back();
  return name;
}

TableWord ProgramTables::kernelCall(const KernelWork& work, std::int64_t op, const PlannedFunction& planned,
                                    std::int64_t workspace) {
  std::vector<std::int64_t> args;
  for (const ValueId buffer : work.buffers) {
    const std::int64_t offset = planned.memory.offsets[buffer.index];
    GSHARD_CHECK(offset >= 0, "buffer `" + planned.views->function().value(buffer).name + "` has no place in " +
                                  kernelSummary(work.kernel));
    args.push_back(offset);
  }
  args.insert(args.end(), work.extras.begin(), work.extras.end());
  if (work.kernel.workspaceArg >= 0)
    args[work.buffers.size() + static_cast<std::size_t>(work.kernel.workspaceArg)] =
        std::max<std::int64_t>(workspace, 0);
  const Function& function = planned.views->function();
  KernelSource source;
  if (options_.debug) {
    const Op& reported = function.ops[static_cast<std::size_t>(op)];
    source = {debugName(function, reported), reported.range,
              [&](std::int64_t other) { return function.ops[static_cast<std::size_t>(other)].range; }};
  }
  TableRows call;
  call.add(tables_.symbol(*kernels_.emit(work.kernel, source)), tables_.integers(args), work.kernel.chunks);
  return tables_.place<gshard_rt_kernel_call>(call);
}

TableWord ProgramTables::gemmCall(const ProductWork& work, const PlannedFunction& planned, std::int64_t workspace) {
  const std::int64_t size = work.desc.element == GemmElement::F64 ? 8 : 4;
  const auto at = [&](ValueId value, std::int64_t base) { return planned.memory.offsets[value.index] + base * size; };
  TableRows call;
  call.add(tables_.symbol(*gemms_.emit(planGemm(work.desc, target_.shape()))), at(work.a, work.baseA),
           at(work.b, work.baseB), at(work.c, 0), std::max<std::int64_t>(workspace, 0));
  return tables_.place<gshard_rt_gemm_call>(call);
}

void ProgramTables::addTransfer(TableRows& rows, const OpView& op, std::size_t operand, std::size_t piece,
                                const PlannedFunction& planned) {
  const FunctionViews& views = *planned.views;
  const ValueId from = op.op().operands[operand];
  const ValueId to = op.op().results[op.op().results.size() == 1 ? 0 : operand];
  const auto at = [&](ValueId value) {
    return tensor(op.function().type(value), views.layout(value), planned.memory.offsets[views.storage(value).index]);
  };
  TableWord move;
  std::int64_t kind = GSHARD_RT_MOVE_AFFINE;
  if (op.op().kind == OpKind::Exchange) {
    const std::optional<OpKind> moved = moveKindOf(op);
    if (moved == OpKind::Reshape) {
      kind = GSHARD_RT_MOVE_RESHAPE;
    } else if (moved) {
      std::vector<std::int64_t> numbers;
      for (const MoveDim& dim : moveMap(op, operand, piece)) {
        for (const std::int64_t number : {dim.operandDim, dim.scale, dim.offset, dim.divide}) numbers.push_back(number);
      }
      move = tables_.integers(numbers);
    }
  }
  rows.add(at(from), at(to), move, kind);
}

TableWord ProgramTables::collective(std::size_t function, const Unit& unit, const PlannedFunction& planned,
                                    std::int64_t workspace) {
  const FunctionViews& views = *planned.views;
  const OpView op = views.view(static_cast<std::size_t>(unit.op));
  const OpKind kind = op.op().kind;
  std::int64_t reduction = GSHARD_RT_SUM;
  if (op.hasAttr("reduction")) {
    const std::optional<Reduction> parsed = reductionFromName(op.stringAttr("reduction"));
    GSHARD_CHECK(parsed.has_value(), "a reduction that the verifier let pass");
    reduction = static_cast<std::int64_t>(*parsed);
  }
  std::int64_t dim = -1, otherDim = -1, fill = -1;
  if (kind == OpKind::AllToAll) {
    dim = op.intAttr("split_dim");
    otherDim = op.intAttr("concat_dim");
  } else if (kind != OpKind::Exchange && op.hasAttr("dim")) {
    dim = op.intAttr("dim");
  }
  std::size_t operands = op.operandCount();
  if (isPadExchange(op)) {
    --operands;
    fill = planned.memory.offsets[views.storage(op.op().operands[operands]).index];
  }
  TableRows transfers;
  const std::size_t pieces = kind == OpKind::Exchange ? movePieces(op) : 1;
  for (std::size_t i = 0; i < operands * pieces; ++i) addTransfer(transfers, op, i / pieces, i % pieces, planned);
  const std::vector<AxisRef> group = groupAxes(op);
  TableRows row;
  row.add(collectiveNumber(kind), reduction, std::ssize(group), axes(group), dim, otherDim, transfers.count(),
          tables_.place<gshard_rt_transfer>(transfers), fill, std::max<std::int64_t>(workspace, 0), 0,
          planIndex(function, unit.op));
  return tables_.place<gshard_rt_collective>(row);
}

TableRows ProgramTables::madeTensors(std::size_t unit, const PlannedFunction& planned, const std::vector<bool>& written,
                                     const std::vector<std::size_t>& lastWriters) {
  const FunctionViews& views = *planned.views;
  TableRows made;
  for (const ValueId value : planned.lowered.units[unit].writes) {
    // Where several units fill a buffer part by part, the last one completes it.
    const std::int64_t offset = planned.memory.offsets[value.index];
    if (lastWriters[value.index] != unit || offset < 0) continue;
    std::int64_t op = views.definition(value);
    if (op < 0) op = planned.lowered.units[unit].op;
    made.add(planned.firstSite + 1 + op, written[value.index] ? 1 : 0,
             tensor(views.function().type(value), views.layout(value), offset));
  }
  return made;
}

TableRows ProgramTables::stepList(std::size_t number, const PlannedFunction& planned) {
  const Function& function = planned.views->function();
  TableRows rows;
  TableRows made;  // of the unit that is added next
  // `text` is asked for the list of steps alone.
  const auto add = [&](std::int64_t kind, std::int64_t op, TableWord call, const char* kindName, const auto& text) {
    rows.add(kind, planned.firstSite + 1 + op, call, made.count(), tables_.place<gshard_rt_made>(made));
    made.clear();
    if (!options_.listSteps) return;
    steps_.push_back({function.name, kindName, text(),
                      sources_.describe(op < 0 ? function.range : function.ops[static_cast<std::size_t>(op)].range)});
  };
  const auto addCopy = [&](const MemoryCopy& copy) {
    TableRows call;
    call.add(copy.from, copy.to, copy.bytes);
    add(GSHARD_RT_STEP_COPY, -1, tables_.place<gshard_rt_copy>(call), "copy",
        [&] { return std::to_string(copy.bytes) + " bytes"; });
  };
  const std::vector<bool> written = writtenInfinities(*planned.views);
  std::vector<std::size_t> lastWriters(function.values.size(), 0);
  for (std::size_t u = 0; u < planned.lowered.units.size(); ++u) {
    for (const ValueId value : planned.lowered.units[u].writes) lastWriters[value.index] = u;
  }
  for (const MemoryCopy& copy : planned.memory.before) addCopy(copy);
  for (std::size_t u = 0; u < planned.lowered.units.size(); ++u) {
    if (planned.memory.skipped[u]) continue;
    const Unit& unit = planned.lowered.units[u];
    const std::int64_t workspace = planned.memory.workspaces[u];
    made = madeTensors(u, planned, written, lastWriters);
    if (const auto* kernel = std::get_if<KernelWork>(&unit.work)) {
      add(GSHARD_RT_STEP_KERNEL, unit.op, kernelCall(*kernel, unit.op, planned, workspace), "kernel",
          [&] { return kernelSummary(kernel->kernel); });
    } else if (const auto* product = std::get_if<ProductWork>(&unit.work)) {
      add(GSHARD_RT_STEP_GEMM, unit.op, gemmCall(*product, planned, workspace), "gemm",
          [&] { return planGemm(product->desc, target_.shape()).key(); });
    } else {
      add(GSHARD_RT_STEP_COLLECTIVE, unit.op, collective(number, unit, planned, workspace), "collective",
          [&] { return std::string(*opDef(function.ops[static_cast<std::size_t>(unit.op)].kind).name); });
    }
  }
  for (const MemoryCopy& copy : planned.memory.after) addCopy(copy);
  return rows;
}

void ProgramTables::addArguments(TableRows& rows, const PlannedFunction& planned) {
  const FunctionViews& views = *planned.views;
  const Function& function = views.function();
  TableRows inputs, outputs, accumulators, settings;
  std::int64_t step = -1, steps = -1;
  const auto place = [&](ValueId value) { return planned.memory.offsets[views.storage(value).index]; };
  for (const Argument& argument : function.arguments) {
    const Type& type = function.type(argument.value);
    const Layout& layout = views.layout(argument.value);
    switch (argument.kind) {
      case ArgumentKind::Input: {
        const bool isRows = function.value(argument.value).rowDim == 0 ||
                            (function.rows > 0 && !type.shape.empty() && type.shape[0] == function.rows);
        inputs.add(tables_.text(argument.name), tensor(type, layout, place(argument.value)), isRows ? 1 : 0);
        break;
      }
      case ArgumentKind::Accumulator:
      case ArgumentKind::Parameter:
      case ArgumentKind::State:
        break;
      case ArgumentKind::Step:
        step = place(argument.value);
        break;
      case ArgumentKind::Steps:
        steps = place(argument.value);
        break;
      case ArgumentKind::Setting:
        settings.add(argument.index, place(argument.value));
        break;
    }
  }
  for (std::size_t i = 0; i < function.results.size(); ++i) {
    const Result& result = function.results[i];
    const Tensor lies = tensor(function.type(result.value), views.layout(result.value), planned.memory.results[i]);
    if (result.kind == ResultKind::Accumulator) {
      accumulators.add(lies, static_cast<std::int64_t>(result.reduction));
    } else if (result.kind == ResultKind::Output || result.kind == ResultKind::Report) {
      const std::int64_t kind = result.kind == ResultKind::Output ? GSHARD_RT_OUTPUT : GSHARD_RT_REPORT;
      const bool isRows = function.value(result.value).rowDim >= 0;
      outputs.add(tables_.text(result.name), lies, kind, isRows ? 1 : 0);
    }
  }
  rows.extend(inputs.count(), tables_.place<gshard_rt_input>(inputs));
  rows.extend(outputs.count(), tables_.place<gshard_rt_output>(outputs));
  rows.extend(accumulators.count(), tables_.place<gshard_rt_accumulator>(accumulators));
  rows.extend(settings.count(), tables_.place<gshard_rt_setting_use>(settings));
  rows.extend(step, steps);
}

void ProgramTables::addFunction(TableRows& rows, std::size_t number, const std::vector<PlannedFunction>& functions) {
  const PlannedFunction& planned = functions[number];
  const Function& function = planned.views->function();
  std::int64_t finish = -1;
  if (function.stage == Stage::Accumulate) {
    const std::string stem = function.name.substr(0, function.name.rfind('.'));
    for (std::size_t i = 0; i < functions.size(); ++i) {
      const Function& other = functions[i].views->function();
      if (other.stage == Stage::Finish && other.name == stem + ".finish") finish = static_cast<std::int64_t>(i);
    }
  }
  rows.add(tables_.text(function.name), kindNumber(function.kind), stageNumber(function.stage), function.rows,
           function.blocks, finish);
  addArguments(rows, planned);
  const TableRows steps = stepList(number, planned);
  rows.extend(steps.count(), tables_.place<gshard_rt_step>(steps));
  std::int64_t peakSite = planned.firstSite;
  if (planned.memory.peakUnit >= 0) {
    peakSite += 1 + planned.lowered.units[static_cast<std::size_t>(planned.memory.peakUnit)].op;
  }
  std::int64_t bytesMax = 0, bytesTotal = 0;
  if (plan_ != nullptr) {
    for (const PlanFunction& entry : plan_->functions) {
      if (entry.function != static_cast<std::int64_t>(number)) continue;
      bytesMax = entry.bytesMax;
      bytesTotal = entry.bytesTotal;
    }
  }
  const std::int64_t stepRows = function.stage == Stage::Accumulate && rowsVary(function) ? function.totalRows : 0;
  rows.extend(planned.memory.peakBytes, peakSite, bytesMax, bytesTotal, stepRows);
  arenaBytes_ = std::max(arenaBytes_, planned.memory.peakBytes);
}

}  // namespace gshard
