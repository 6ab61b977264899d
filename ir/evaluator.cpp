// Running functions op by op, on one device or on simulated ones.
#include "ir/evaluator.h"

#include <algorithm>
#include <set>

#include "ir/evaluate_loops.h"
#include "ir/op_table.h"
#include "ir/simulated_devices.h"
#include "ir/text.h"
#include "support/check.h"

namespace gshard {

namespace {
class Machine {
 public:
  Machine(const Module& module, const Function& function, const EvalOptions& options)
      : module_(module),
        function_(function),
        options_(options),
        isSpmd_(!options.global && isSpmd(function)),
        devices_(isSpmd_ ? module.mesh : single_),
        values_(function.values.size()),
        uses_(useCounts(function)) {}

  EvalResult run(std::span<const Tensor> arguments) {
    GSHARD_CHECK(arguments.size() == function_.arguments.size(),
                 "func @" + function_.name + " takes " + std::to_string(function_.arguments.size()) + " arguments");
    result_.bytesReceived.assign(static_cast<std::size_t>(devices_.count()), 0);
    for (std::size_t i = 0; i < arguments.size(); ++i) {
      const ValueId id = function_.arguments[i].value;
      GSHARD_CHECK(arguments[i].type == function_.type(id), "argument " + std::to_string(i) + " is `" +
                                                                printType(arguments[i].type) + "`, not `" +
                                                                printType(function_.type(id)) + "`");
      values_[id.index] = devices_.distribute(arguments[i], shardingOf(id), liveOf(id));
    }
    for (const Op& op : function_.ops) step(op);
    for (const Result& result : function_.results)
      result_.results.push_back(devices_.assemble(values_[result.value.index]));
    return std::move(result_);
  }

 private:
  static bool isSpmd(const Function& function) {
    for (const Argument& argument : function.arguments) {
      if (!function.value(argument.value).sharding) return false;
    }
    for (const Op& op : function.ops) {
      for (const ValueId result : op.results) {
        if (!function.value(result).sharding) return false;
      }
    }
    return !function.arguments.empty() || !function.ops.empty();
  }

  Sharding shardingOf(ValueId id) const {
    const Value& value = function_.value(id);
    return isSpmd_ ? *value.sharding : Sharding::replicated(value.type.rank());
  }

  // Live sizes: the row dim may hold fewer rows than a block; a dim that merged rows with others has them major.
  std::vector<std::int64_t> liveOf(ValueId id) const {
    const Value& value = function_.value(id);
    std::vector<std::int64_t> live = value.type.shape;
    if (value.rowDim >= 0 && options_.rows >= 0 && function_.rows > 0) {
      std::int64_t& size = live[static_cast<std::size_t>(value.rowDim)];
      size = size / function_.rows * options_.rows;
    }
    return live;
  }

  DeviceValue blank(ValueId id) const { return devices_.blank(function_.type(id), shardingOf(id), liveOf(id)); }

  void step(const Op& op) {
    const OpView view(module_, function_, op);
    const OwnTiles* own = std::get_if<OwnTiles>(&*opDef(op.kind).localize);
    for (const ValueId result : op.results) values_[result.index] = blank(result);
    const TileWork work = own != nullptr && isSpmd_ ? *own->work : TileWork::Local;
    switch (work) {
      case TileWork::Local:
        runOnTiles(view);
        break;
      case TileWork::Redistribute:
        for (std::size_t i = 0; i < op.results.size(); ++i) {
          devices_.redistribute(values_[op.operands[i].index], values_[op.results[i].index], &result_.bytesReceived);
        }
        break;
      case TileWork::Whole:
        runWhole(view);
        break;
    }
    dependsOnDevice_ = dependsOnDevice_ || op.kind == OpKind::DeviceIndex;
    for (std::size_t i = 0; i < op.results.size(); ++i) checkAndShow(op, i);
    release(op);
  }

  void checkAndShow(const Op& op, std::size_t result) {
    const DeviceValue& value = values_[op.results[result].index];
    if (isSpmd_ && !dependsOnDevice_) {
      const std::optional<std::int64_t> device = devices_.differingReplica(value);
      GSHARD_CHECK(!device, "device " + std::to_string(device.value_or(0)) +
                                " holds other bits than its replica after `" + printOp(module_, function_, op) + "`");
    }
    if (options_.onValue) options_.onValue(op, result, devices_.assemble(value));
  }

  // Frees values after their last use: memory stays near that of the program's live values.
  void release(const Op& op) {
    for (const ValueId operand : op.operands) {
      if (--uses_[operand.index] == 0) values_[operand.index].tiles.clear();
    }
  }

  EvalFrame frameOf(const OpView& view) {
    EvalFrame frame;
    frame.seed = options_.seed;
    frame.totalRows = options_.totalRows > 0 ? options_.totalRows : function_.totalRows;
    frame.faults = &faults_;
    frame.operandTiles.resize(view.operandCount());
    frame.operands.resize(view.operandCount());
    return frame;
  }

  void runOnTiles(const OpView& view) {
    const Op& op = view.op();
    for (std::int64_t device = 0; device < devices_.count(); ++device) {
      EvalFrame frame = frameOf(view);
      frame.device = device;
      for (std::size_t i = 0; i < op.operands.size(); ++i) {
        const DeviceValue& operand = values_[op.operands[i].index];
        frame.operands[i] = &operand.tiles[static_cast<std::size_t>(device)];
        frame.operandTiles[i] = devices_.tiles(operand, device);
      }
      for (const ValueId id : op.results) {
        DeviceValue& result = values_[id.index];
        frame.results.push_back(std::move(result.tiles[static_cast<std::size_t>(device)]));
        frame.resultTiles.push_back(devices_.tiles(result, device));
      }
      evaluateRule(view, frame);
      for (std::size_t i = 0; i < op.results.size(); ++i) {
        values_[op.results[i].index].tiles[static_cast<std::size_t>(device)] = std::move(frame.results[i]);
      }
    }
    keepLeastFault();
  }

  void evaluateRule(const OpView& view, EvalFrame& frame) {
    try {
      (*opDef(view.op().kind).evaluate)(view, frame);
    } catch (const InternalError& error) {
      throw InternalError("device " + std::to_string(frame.device) + ", `" + printOp(module_, function_, view.op()) +
                          "`: " + error.what());
    }
  }

  // An exchange: the move on the whole value, of which each device takes its tile.
  void runWhole(const OpView& view) {
    const Op& op = view.op();
    EvalFrame frame = frameOf(view);
    std::vector<Tensor> operands;
    for (const ValueId id : op.operands) operands.push_back(devices_.assemble(values_[id.index]));
    for (std::size_t i = 0; i < op.operands.size(); ++i) {
      frame.operands[i] = &operands[i];
      frame.operandTiles[i] = wholeTiles(liveOf(op.operands[i]));
    }
    const ValueId id = op.results[0];
    const Sharding whole = Sharding::replicated(function_.type(id).rank());
    frame.results.push_back(std::move(devices_.blank(function_.type(id), whole, liveOf(id)).tiles[0]));
    frame.resultTiles.push_back(wholeTiles(liveOf(id)));
    evaluateRule(view, frame);
    values_[id.index] = devices_.distribute(frame.out(), shardingOf(id), liveOf(id));
    countFetched(view);
  }

  static std::vector<Tile> wholeTiles(const std::vector<std::int64_t>& live) {
    std::vector<Tile> tiles;
    for (const std::int64_t size : live) tiles.push_back({0, size});
    return tiles;
  }

  // What each device fetches: the operands' elements that its result tile reads and that it does not hold. They are
  // found by running the move on tensors of element numbers.
  void countFetched(const OpView& view) {
    const Op& op = view.op();
    const ValueId id = op.results[0];
    const Type numbers{DType::I64, function_.type(id).shape};
    EvalFrame frame = frameOf(view);
    std::vector<Tensor> operands;
    std::int64_t next = 1;  // 0: padding
    std::vector<std::int64_t> firsts;
    for (const ValueId operand : op.operands) {
      Tensor& tensor = operands.emplace_back(Tensor::zeros({DType::I64, function_.type(operand).shape}));
      firsts.push_back(next);
      const bool isScalarValue = operands.size() > 1 && moveKindOf(view) == OpKind::Pad;
      if (isScalarValue) continue;
      for (std::int64_t& number : tensor.ints) number = next++;
    }
    for (std::size_t i = 0; i < op.operands.size(); ++i) {
      frame.operands[i] = &operands[i];
      frame.operandTiles[i] = wholeTiles(liveOf(op.operands[i]));
    }
    frame.results.push_back(Tensor::zeros(numbers));
    frame.resultTiles.push_back(wholeTiles(liveOf(id)));
    evaluateRule(view, frame);
    const DeviceValue& result = values_[id.index];
    for (std::int64_t device = 0; device < devices_.count(); ++device) {
      std::set<std::int64_t> fetched;
      const std::vector<Tile> tiles = devices_.tiles(result, device);
      forEachIndex(liveSizes(tiles), [&](const Index& local) {
        const std::int64_t number =
            frame.out().ints[static_cast<std::size_t>(flatOf(toGlobal(local, tiles), numbers.shape))];
        if (number > 0 && !holds(op, firsts, number, device)) fetched.insert(number);
      });
      result_.bytesReceived[static_cast<std::size_t>(device)] +=
          static_cast<std::int64_t>(fetched.size()) * byteSize(result.type.dtype);
    }
  }

  bool holds(const Op& op, const std::vector<std::int64_t>& firsts, std::int64_t number, std::int64_t device) const {
    std::size_t operand = firsts.size() - 1;
    while (firsts[operand] > number) --operand;
    const DeviceValue& value = values_[op.operands[operand].index];
    const Index index = indexOf(number - firsts[operand], value.type.shape);
    const std::vector<Tile> tiles = devices_.tiles(value, device);
    for (std::size_t i = 0; i < tiles.size(); ++i) {
      if (index[i] < tiles[i].offset || index[i] >= tiles[i].offset + tiles[i].live) return false;
    }
    return true;
  }

  void keepLeastFault() {
    const auto least = std::min_element(faults_.begin(), faults_.end(),
                                        [](const Fault& a, const Fault& b) { return a.position < b.position; });
    if (least != faults_.end()) result_.faults.push_back(least->text);
    faults_.clear();
  }

  const Module& module_;
  const Function& function_;
  const EvalOptions& options_;
  const Mesh single_;
  const bool isSpmd_;
  SimulatedDevices devices_;
  std::vector<DeviceValue> values_;
  std::vector<std::int64_t> uses_;
  std::vector<Fault> faults_;     // of the op at hand, of all devices
  bool dependsOnDevice_ = false;  // device_index has run: replicas may differ
  EvalResult result_;
};
}  // namespace

EvalResult evaluate(const Module& module, const Function& function, std::span<const Tensor> arguments,
                    const EvalOptions& options) {
  return Machine(module, function, options).run(arguments);
}

std::vector<Tensor> evaluateOp(const OpView& op, std::span<const Tensor> operands) {
  EvalFrame frame;
  const auto whole = [](const Type& type) {
    std::vector<Tile> tiles;
    for (const std::int64_t size : type.shape) tiles.push_back({0, size});
    return tiles;
  };
  for (const Tensor& operand : operands) {
    frame.operands.push_back(&operand);
    frame.operandTiles.push_back(whole(operand.type));
  }
  for (const ValueId result : op.op().results) {
    frame.results.push_back(Tensor::zeros(op.function().type(result)));
    frame.resultTiles.push_back(whole(op.function().type(result)));
  }
  (*opDef(op.op().kind).evaluate)(op, frame);
  return std::move(frame.results);
}

Tensor tileOfTensor(const Tensor& global, const std::vector<Tile>& tiles, const std::vector<std::int64_t>& localShape) {
  const Type type{global.type.dtype, localShape};
  Mesh one;
  Tensor tile = std::move(SimulatedDevices(one).blank(type, Sharding::replicated(type.rank()), localShape).tiles[0]);
  forEachIndex(liveSizes(tiles), [&](const Index& local) {
    copyElement(global, flatOf(toGlobal(local, tiles), global.type.shape), tile, flatOf(local, localShape));
  });
  return tile;
}

}  // namespace gshard
