// Liveness and placement: see memory_plan.h.
#include "codegen/memory_plan.h"

#include <algorithm>
#include <map>
#include <optional>

#include "support/check.h"

namespace gshard {
namespace {

std::int64_t aligned(std::int64_t bytes) {
  return (bytes + kArenaAlign - 1) / kArenaAlign * kArenaAlign;
}

// A piece of the arena that one or several values use one after another.
struct Block {
  std::int64_t bytes = 0;
  std::int64_t begin = 0, end = 0;  // first and last unit, inclusive; -1: before the first
  std::int64_t offset = -1;
  bool isInput = false, isWorkspace = false;
};

struct Alive {  // bytes
  std::int64_t inputs = 0, values = 0, workspace = 0;
};

class Planner {
 public:
  Planner(const FunctionViews& views, const LoweredFunction& lowered, const FixedMemory& fixed,
          const AccumulatorMemory& accumulators, const std::vector<std::int64_t>& workspaceBytes)
      : views_(views),
        function_(views.function()),
        units_(lowered.units),
        fixed_(fixed),
        accumulators_(accumulators),
        workspaceBytes_(workspaceBytes),
        last_(static_cast<std::int64_t>(lowered.units.size())) {}

  FunctionMemory run() {
    const std::size_t values = function_.values.size();
    memory_.offsets.assign(values, -1);
    blockOf_.assign(values, -1);
    begins_.assign(values, last_);
    ends_.assign(values, -1);
    firstWriter_.assign(values, -1);
    lastReader_.assign(values, -1);
    placeArguments();
    findLives();
    placeResults();
    makeBlocks();
    assign();
    finish();
    return std::move(memory_);
  }

 private:
  std::int64_t bytesOf(ValueId value) const { return views_.layout(value).bytes(); }

  std::optional<std::int64_t> fixedPlace(ArgumentKind kind, std::int64_t index) const {
    switch (kind) {
      case ArgumentKind::Parameter:
        return fixed_.parameters[static_cast<std::size_t>(index)];
      case ArgumentKind::State:
        return fixed_.states[static_cast<std::size_t>(index)];
      case ArgumentKind::Accumulator:
        return accumulators_.offsets[static_cast<std::size_t>(index)];
      case ArgumentKind::Input:
      case ArgumentKind::Step:
      case ArgumentKind::Steps:
      case ArgumentKind::Setting:
        return std::nullopt;
    }
    GSHARD_UNREACHABLE("kind of argument");
  }

  std::optional<std::int64_t> fixedPlace(const Result& result) const {
    switch (result.kind) {
      case ResultKind::Parameter:
        return fixedPlace(ArgumentKind::Parameter, result.index);
      case ResultKind::State:
        return fixedPlace(ArgumentKind::State, result.index);
      case ResultKind::Accumulator:
        return fixedPlace(ArgumentKind::Accumulator, result.index);
      case ResultKind::Output:
      case ResultKind::Report:
        return std::nullopt;
    }
    GSHARD_UNREACHABLE("kind of result");
  }

  bool isFixed(ValueId value) const { return memory_.offsets[value.index] >= 0; }

  void placeArguments() {
    for (const Argument& argument : function_.arguments) {
      const std::optional<std::int64_t> place = fixedPlace(argument.kind, argument.index);
      if (place) {
        memory_.offsets[argument.value.index] = *place;
        owner_[*place] = argument.value;
        continue;
      }
      // Inputs and settings are written before the first unit, and may be kept by the runtime from call to call.
      begins_[argument.value.index] = -1;
      ends_[argument.value.index] = last_;
    }
  }

  void findLives() {
    for (std::int64_t u = 0; u < last_; ++u) {
      const Unit& unit = units_[static_cast<std::size_t>(u)];
      for (const ValueId value : unit.writes) {
        if (firstWriter_[value.index] < 0) firstWriter_[value.index] = u;
        begins_[value.index] = std::min(begins_[value.index], u);
        ends_[value.index] = std::max(ends_[value.index], u);
      }
      for (const ValueId value : unit.reads) {
        ends_[value.index] = std::max(ends_[value.index], u);
        lastReader_[value.index] = u;
      }
    }
  }

  // May `value` be made right in the place of `old`, whose reads must be over by then?
  bool mayReplace(ValueId value, ValueId old) const {
    const std::int64_t writer = firstWriter_[value.index];
    if (lastReader_[old.index] < writer) return true;
    if (lastReader_[old.index] > writer) return false;
    const Unit& unit = units_[static_cast<std::size_t>(writer)];
    const std::pair<ValueId, ValueId> pair{value, old};
    return std::find(unit.inPlace.begin(), unit.inPlace.end(), pair) != unit.inPlace.end();
  }

  void placeResults() {
    std::map<std::int64_t, bool> overwritten;  // fixed places that get a new value
    std::map<ValueId, bool> isResult;
    for (const Result& result : function_.results) {
      const ValueId storage = views_.storage(result.value);
      const std::optional<std::int64_t> place = fixedPlace(result);
      if (place && !(isFixed(storage) && memory_.offsets[storage.index] == *place)) overwritten[*place] = true;
      isResult[storage] = true;
    }
    for (const Result& result : function_.results) {
      const ValueId storage = views_.storage(result.value);
      const std::optional<std::int64_t> place = fixedPlace(result);
      if (isFixed(storage) && begins_[storage.index] == last_ && firstWriter_[storage.index] < 0) {
        keepOld(storage, place, overwritten);
        continue;
      }
      if (!place || isFixed(storage) || firstWriter_[storage.index] < 0) continue;
      const auto owner = owner_.find(*place);
      const bool fits =
          owner == owner_.end() || (!isResult.contains(owner->second) && mayReplace(storage, owner->second));
      if (fits) memory_.offsets[storage.index] = *place;
    }
    for (const Result& result : function_.results) {
      const ValueId storage = views_.storage(result.value);
      ends_[storage.index] = last_;
    }
  }

  // An argument that is a result too: if its place gets a new value, the old one is kept apart from the beginning on.
  void keepOld(ValueId storage, std::optional<std::int64_t> place, const std::map<std::int64_t, bool>& overwritten) {
    if (place && *place == memory_.offsets[storage.index]) return;
    if (overwritten.contains(memory_.offsets[storage.index])) kept_.emplace(storage, -1);
  }

  void makeBlocks() {
    for (const Argument& argument : function_.arguments) {
      if (!isFixed(argument.value)) continueBlock(argument.value);
    }
    for (std::int64_t u = 0; u < last_; ++u) {
      for (const ValueId value : units_[static_cast<std::size_t>(u)].writes) {
        if (firstWriter_[value.index] == u && !isFixed(value)) continueBlock(value);
      }
    }
    for (auto& [value, block] : kept_) {
      block = addBlock(bytesOf(value), -1, last_);
    }
    memory_.workspaces.assign(units_.size(), -1);
    for (std::size_t u = 0; u < units_.size(); ++u) {
      if (workspaceBytes_[u] == 0) continue;
      const std::int64_t at = static_cast<std::int64_t>(u);
      workspaceBlocks_.emplace_back(u, addBlock(workspaceBytes_[u], at, at));
      blocks_[static_cast<std::size_t>(workspaceBlocks_.back().second)].isWorkspace = true;
    }
  }

  int addBlock(std::int64_t bytes, std::int64_t begin, std::int64_t end) {
    Block block;
    block.bytes = bytes;
    block.begin = begin;
    block.end = end;
    blocks_.push_back(block);
    return static_cast<int>(blocks_.size()) - 1;
  }

  // A block of its own, or that of a value which dies where this one begins.
  void continueBlock(ValueId value) {
    const std::size_t i = value.index;
    if (firstWriter_[i] >= 0) {
      for (const auto& [write, read] : units_[static_cast<std::size_t>(firstWriter_[i])].inPlace) {
        if (write != value || isFixed(read) || ends_[read.index] != firstWriter_[i]) continue;
        const int block = blockOf_[read.index];
        if (block < 0 || bytesOf(read) != bytesOf(value) || blocks_[static_cast<std::size_t>(block)].isInput) continue;
        if (blocks_[static_cast<std::size_t>(block)].end != firstWriter_[i]) continue;  // taken by another output
        blocks_[static_cast<std::size_t>(block)].end = std::max(ends_[i], firstWriter_[i] + 1);
        blockOf_[i] = block;
        return;
      }
    }
    blockOf_[i] = addBlock(bytesOf(value), begins_[i], ends_[i]);
    blocks_.back().isInput = begins_[i] < 0;
  }

  // Largest first, each at the lowest offset that is free for its whole life.
  void assign() {
    std::vector<std::size_t> order(blocks_.size());
    for (std::size_t i = 0; i < order.size(); ++i) order[i] = i;
    std::stable_sort(order.begin(), order.end(),
                     [&](std::size_t a, std::size_t b) { return blocks_[a].bytes > blocks_[b].bytes; });
    std::vector<std::size_t> placed;  // by offset
    for (const std::size_t number : order) {
      Block& block = blocks_[number];
      const std::int64_t bytes = aligned(block.bytes);
      std::int64_t offset = accumulators_.end;
      for (const std::size_t other : placed) {
        const Block& neighbour = blocks_[other];
        if (neighbour.end < block.begin || block.end < neighbour.begin) continue;
        if (neighbour.offset >= offset + bytes) break;
        offset = std::max(offset, neighbour.offset + aligned(neighbour.bytes));
      }
      block.offset = offset;
      const auto at =
          std::upper_bound(placed.begin(), placed.end(), offset,
                           [&](std::int64_t value, std::size_t other) { return value < blocks_[other].offset; });
      placed.insert(at, number);
    }
  }

  void finish() {
    for (std::size_t i = 0; i < blockOf_.size(); ++i) {
      if (blockOf_[i] >= 0) memory_.offsets[i] = blocks_[static_cast<std::size_t>(blockOf_[i])].offset;
    }
    for (const auto& [unit, block] : workspaceBlocks_)
      memory_.workspaces[unit] = blocks_[static_cast<std::size_t>(block)].offset;
    for (const auto& [value, block] : kept_) {
      memory_.before.push_back(
          {memory_.offsets[value.index], blocks_[static_cast<std::size_t>(block)].offset, bytesOf(value)});
    }
    for (const Result& result : function_.results) {
      const ValueId storage = views_.storage(result.value);
      const std::optional<std::int64_t> place = fixedPlace(result);
      std::int64_t from = memory_.offsets[storage.index];
      GSHARD_CHECK(from >= 0, "every result has a place");
      const auto kept = kept_.find(storage);
      if (kept != kept_.end() && (!place || *place != from))
        from = blocks_[static_cast<std::size_t>(kept->second)].offset;
      if (place && *place != from) memory_.after.push_back({from, *place, bytesOf(storage)});
      memory_.results.push_back(place.value_or(from));
    }
    findSelfCopies();
    measure();
  }

  void findSelfCopies() {
    for (const Unit& unit : units_) {
      const auto* work = std::get_if<KernelWork>(&unit.work);
      bool isCopy = work != nullptr && unit.writes.size() == 1 && unit.reads.size() == 1 && unit.inPlace.size() == 1 &&
                    work->kernel.outputs.size() == 1;
      if (isCopy) {
        const Node& node = work->kernel.nodes[static_cast<std::size_t>(work->kernel.outputs[0].node)];
        isCopy = node.kind == NodeKind::Load && node.dtype == work->kernel.outputs[0].dtype &&
                 memory_.offsets[unit.writes[0].index] == memory_.offsets[unit.reads[0].index];
      }
      memory_.skipped.push_back(isCopy);
    }
  }

  void measure() {
    memory_.peakBytes = accumulators_.end;
    for (const Block& block : blocks_) memory_.peakBytes = std::max(memory_.peakBytes, block.offset + block.bytes);
    // What begins and ends at each unit, summed on the way: blocks times units would be the square of the depth.
    const std::int64_t units = std::max<std::int64_t>(last_, 1);
    std::vector<Alive> changes(static_cast<std::size_t>(units) + 1);
    const auto kindOf = [](const Block& block) {
      return block.isInput ? &Alive::inputs : block.isWorkspace ? &Alive::workspace : &Alive::values;
    };
    for (const Block& block : blocks_) {
      const std::int64_t begin = std::max<std::int64_t>(block.begin, 0), end = std::min(block.end + 1, units);
      if (begin >= end) continue;
      changes[static_cast<std::size_t>(begin)].*kindOf(block) += block.bytes;
      changes[static_cast<std::size_t>(end)].*kindOf(block) -= block.bytes;
    }
    std::int64_t most = -1;
    Alive now;
    for (std::int64_t u = 0; u < units; ++u) {
      const Alive& change = changes[static_cast<std::size_t>(u)];
      now.inputs += change.inputs;
      now.values += change.values;
      now.workspace += change.workspace;
      if (now.inputs + now.values + now.workspace <= most) continue;
      most = now.inputs + now.values + now.workspace;
      memory_.peakUnit = last_ > 0 ? u : -1;
      memory_.inputs = now.inputs;
      memory_.values = now.values;
      memory_.workspace = now.workspace;
    }
    // (Values in fixed places are the module's, and alive throughout.)
    const std::int64_t at = std::max<std::int64_t>(memory_.peakUnit, 0);
    for (std::size_t v = 0; v < blockOf_.size(); ++v) {
      if (blockOf_[v] >= 0 && begins_[v] <= at && at <= ends_[v])
        memory_.alive.push_back(ValueId{static_cast<std::uint32_t>(v)});
    }
  }

  const FunctionViews& views_;
  const Function& function_;
  const std::vector<Unit>& units_;
  const FixedMemory& fixed_;
  const AccumulatorMemory& accumulators_;
  const std::vector<std::int64_t>& workspaceBytes_;
  std::int64_t last_;  // end of results: after all units
  FunctionMemory memory_;
  std::vector<int> blockOf_;  // per value
  std::vector<std::int64_t> begins_, ends_, firstWriter_, lastReader_;
  std::vector<Block> blocks_;
  std::map<std::int64_t, ValueId> owner_;  // argument that lies in a fixed place
  std::map<ValueId, int> kept_;            // old values kept apart: their block
  std::vector<std::pair<std::size_t, int>> workspaceBlocks_;
};

}  // namespace

FixedMemory placeFixed(const Module& module, ExtentTable& extents) {
  FixedMemory fixed;
  for (const Parameter& parameter : module.parameters) {
    fixed.parameters.push_back(fixed.bytes);
    fixed.bytes += aligned(layoutOf(parameter.type, parameter.sharding, extents).bytes());
  }
  for (const State& state : module.states) {
    fixed.states.push_back(fixed.bytes);
    fixed.bytes += aligned(layoutOf(state.type, state.sharding, extents).bytes());
  }
  return fixed;
}

AccumulatorMemory placeAccumulators(const FunctionViews& views, std::int64_t begin) {
  std::map<std::int64_t, std::int64_t> sizes;
  for (const Argument& argument : views.function().arguments) {
    if (argument.kind == ArgumentKind::Accumulator) sizes[argument.index] = views.layout(argument.value).bytes();
  }
  for (const Result& result : views.function().results) {
    if (result.kind == ResultKind::Accumulator) sizes[result.index] = views.layout(result.value).bytes();
  }
  AccumulatorMemory memory;
  memory.end = begin;
  for (const auto& [index, bytes] : sizes) {
    while (static_cast<std::int64_t>(memory.offsets.size()) < index) memory.offsets.push_back(memory.end);
    memory.offsets.push_back(memory.end);
    memory.end += aligned(bytes);
  }
  return memory;
}

FunctionMemory planMemory(const FunctionViews& views, const LoweredFunction& lowered, const FixedMemory& fixed,
                          const AccumulatorMemory& accumulators, const std::vector<std::int64_t>& workspaceBytes) {
  return Planner(views, lowered, fixed, accumulators, workspaceBytes).run();
}

}  // namespace gshard
