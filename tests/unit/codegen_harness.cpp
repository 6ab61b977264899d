// Compiling and running modules in tests: see codegen_harness.h.
#include "codegen_harness.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <random>

#include "codegen_runner.h"
#include "ir/text.h"
#include "ir/verifier.h"

namespace gshard::testing_codegen {
namespace {

std::uint16_t halfBits(double value) {
  const _Float16 half = static_cast<_Float16>(value);
  std::uint16_t bits = 0;
  std::memcpy(&bits, &half, 2);
  return bits;
}

std::vector<char> bytesOf(const Tensor& tile) {
  const std::int64_t size = byteSize(tile.type.dtype);
  std::vector<char> bytes(static_cast<std::size_t>(tile.type.elements() * size));
  for (std::int64_t i = 0; i < tile.type.elements(); ++i) {
    char* at = bytes.data() + i * size;
    const auto put = [&](auto value) { std::memcpy(at, &value, sizeof(value)); };
    const std::size_t k = static_cast<std::size_t>(i);
    switch (tile.type.dtype) {
      case DType::F32:
        put(static_cast<float>(tile.floats[k]));
        break;
      case DType::F64:
        put(tile.floats[k]);
        break;
      case DType::BF16: {
        const float single = static_cast<float>(tile.floats[k]);
        std::uint32_t bits = 0;
        std::memcpy(&bits, &single, 4);
        put(static_cast<std::uint16_t>(bits >> 16));
        break;
      }
      case DType::F16:
        put(halfBits(tile.floats[k]));
        break;
      case DType::I32:
        put(static_cast<std::int32_t>(tile.ints[k]));
        break;
      case DType::I64:
        put(tile.ints[k]);
        break;
      case DType::U8:
      case DType::Bool:
        put(static_cast<std::uint8_t>(tile.ints[k]));
        break;
    }
  }
  return bytes;
}

void readBytes(Tensor& tile, const std::vector<char>& bytes) {
  const std::int64_t size = byteSize(tile.type.dtype);
  for (std::int64_t i = 0; i < tile.type.elements(); ++i) {
    const char* at = bytes.data() + i * size;
    const std::size_t k = static_cast<std::size_t>(i);
    const auto get = [&](auto value) {
      std::memcpy(&value, at, sizeof(value));
      return value;
    };
    switch (tile.type.dtype) {
      case DType::F32:
        tile.floats[k] = get(float{});
        break;
      case DType::F64:
        tile.floats[k] = get(double{});
        break;
      case DType::BF16: {
        const std::uint32_t bits = static_cast<std::uint32_t>(get(std::uint16_t{})) << 16;
        float single = 0;
        std::memcpy(&single, &bits, 4);
        tile.floats[k] = single;
        break;
      }
      case DType::F16:
        tile.floats[k] = static_cast<double>(get(_Float16{}));
        break;
      case DType::I32:
        tile.ints[k] = get(std::int32_t{});
        break;
      case DType::I64:
        tile.ints[k] = get(std::int64_t{});
        break;
      case DType::U8:
      case DType::Bool:
        tile.ints[k] = get(std::uint8_t{});
        break;
    }
  }
}

// The live elements of `bytes`, tails as they are in `tile`: a tail may hold anything.
void readLive(Tensor& tile, const std::vector<char>& bytes, const std::vector<Tile>& tiles) {
  Tensor read = tile;
  readBytes(read, bytes);
  const std::vector<std::int64_t> strides = stridesOf(tile.type.shape);
  for (std::int64_t i = 0; i < tile.type.elements(); ++i) {
    bool isLive = true;
    for (std::size_t dim = 0; dim < tiles.size(); ++dim)
      isLive = isLive && i / strides[dim] % tile.type.shape[dim] < tiles[dim].live;
    const std::size_t k = static_cast<std::size_t>(i);
    if (isLive && tile.isFloat()) tile.floats[k] = read.floats[k];
    if (isLive && !tile.isFloat()) tile.ints[k] = read.ints[k];
  }
}

// Global live sizes of a value when only `rows` rows of its block are there.
std::vector<std::int64_t> liveSizes(const Function& function, const Type& type, std::int64_t rowDim,
                                    std::int64_t rows) {
  std::vector<std::int64_t> live = type.shape;
  if (rowDim >= 0 && rows >= 0 && function.rows > 0) {
    live[static_cast<std::size_t>(rowDim)] = live[static_cast<std::size_t>(rowDim)] / function.rows * rows;
  }
  return live;
}

Sharding shardingOrWhole(const std::optional<Sharding>& sharding, const Type& type) {
  return sharding ? *sharding : Sharding::replicated(type.rank());
}

// Buffers of tiles, by device and number.
struct Tiles {
  std::vector<std::vector<char>> bytes;
  std::vector<void*> pointers;

  void resize(std::size_t count) {
    bytes.resize(count);
    pointers.assign(count, nullptr);
  }
  void set(std::size_t at, std::vector<char> content) {
    bytes[at] = std::move(content);
    pointers[at] = bytes[at].data();
  }
};

}  // namespace

std::unique_ptr<Module> moduleOf(const std::string& text) {
  SourceManager sources;
  CollectingSink sink;
  std::optional<Module> module = parseModule(sources.addFile("case.ir", text), sources, sink);
  for (const Diagnostic& diagnostic : sink.diagnostics())
    ADD_FAILURE() << diagnostic.code << " " << diagnostic.message << "\n" << text;
  if (!module) return nullptr;
  return std::make_unique<Module>(*std::move(module));
}

std::unique_ptr<Compiled> Compiled::compile(const Module& module, const CodegenOptions& options) {
  auto compiled = std::make_unique<Compiled>();
  compiled->module_ = &module;
  SourceManager sources;
  sources.addFile("case.ir", "");  // ranges of the text that the module was read from: all are its end
  CollectingSink sink;
  CodegenOptions used = options;
  used.listSteps = true;
  if (used.target.level == OptimizationLevel::O3)
    used.target.level = OptimizationLevel::O1;  // tests compile many small programs
  std::optional<CodegenResult> result = generate(module, nullptr, used, sources, sink);
  for (const Diagnostic& diagnostic : sink.diagnostics()) ADD_FAILURE() << diagnostic.code << " " << diagnostic.message;
  if (!result) return nullptr;
  compiled->result_ = *std::move(result);
  std::string error;
  compiled->object_ = LoadedObject::load(compiled->result_.bytes, error);
  if (compiled->object_ == nullptr) {
    ADD_FAILURE() << error;
    return nullptr;
  }
  const auto* image = static_cast<const gshard_rt_image*>(compiled->object_->address("gshard_image"));
  if (image == nullptr) {
    ADD_FAILURE() << "the object defines no gshard_image";
    return nullptr;
  }
  compiled->program_.reset(gshard_rt_load(image));
  if (compiled->program_ == nullptr) {
    ADD_FAILURE() << "the image is of another runtime interface";
    return nullptr;
  }
  return compiled;
}

RunResult Compiled::run(const std::string& name, const std::vector<Tensor>& arguments,
                        const RunOptions& options) const {
  const Function* found = module_->find(name);
  EXPECT_NE(found, nullptr) << name;
  if (found == nullptr) return {};
  const Function& function = *found;
  const std::size_t devices = static_cast<std::size_t>(module_->mesh.devices());
  const SimulatedDevices world(module_->mesh);
  gshard_test_run run{};
  run.program = program_.get();
  run.function = found - module_->functions.data();
  const gshard_rt_function& table = program_->functions[run.function];
  run.rows = options.rows >= 0 ? options.rows : function.rows;
  run.total_rows = options.totalRows >= 0 ? options.totalRows : run.rows;
  run.seed = options.seed;
  run.threads = options.threads;
  std::vector<double> settings(module_->settings.size() + 1);
  for (std::size_t i = 0; i < module_->settings.size(); ++i) settings[i] = module_->settings[i].value;
  Tiles inputs, parameters, states, outputs, newParameters, newStates;
  const std::size_t inputCount = static_cast<std::size_t>(table.input_count),
                    outputCount = static_cast<std::size_t>(table.output_count);
  const std::size_t parameterCount = module_->parameters.size(), stateCount = module_->states.size();
  inputs.resize(devices * inputCount);
  outputs.resize(devices * outputCount);
  for (Tiles* tiles : {&parameters, &newParameters}) tiles->resize(devices * parameterCount);
  for (Tiles* tiles : {&states, &newStates}) tiles->resize(devices * stateCount);
  std::size_t input = 0;
  for (std::size_t a = 0; a < arguments.size(); ++a) {
    const Argument& argument = function.arguments[a];
    const Value& value = function.value(argument.value);
    const DeviceValue spread = world.distribute(arguments[a], shardingOrWhole(value.sharding, value.type),
                                                liveSizes(function, value.type, value.rowDim, run.rows));
    for (std::size_t d = 0; d < devices; ++d) {
      const auto put = [&](Tiles& tiles, std::size_t count, std::size_t number) {
        tiles.set(d * count + number, bytesOf(spread.tiles[d]));
      };
      switch (argument.kind) {
        case ArgumentKind::Input:
          put(inputs, inputCount, input);
          break;
        case ArgumentKind::Parameter:
          put(parameters, parameterCount, static_cast<std::size_t>(argument.index));
          break;
        case ArgumentKind::State:
          put(states, stateCount, static_cast<std::size_t>(argument.index));
          break;
        case ArgumentKind::Step:
          run.step = arguments[a].ints[0];
          break;
        case ArgumentKind::Steps:
          run.steps = arguments[a].ints[0];
          break;
        case ArgumentKind::Setting:
          settings[static_cast<std::size_t>(argument.index)] = arguments[a].floats[0];
          break;
        case ArgumentKind::Accumulator:
          ADD_FAILURE() << "accumulators are not fed";
          break;
      }
    }
    if (argument.kind == ArgumentKind::Input) ++input;
  }
  std::vector<DeviceValue> results;
  std::size_t output = 0;
  std::vector<std::pair<Tiles*, std::size_t>>
      places;  // per result: where device 0's tile is; the next device is `count` on
  std::vector<std::size_t> counts;
  for (const Result& result : function.results) {
    const Value& value = function.value(result.value);
    results.push_back(world.blank(value.type, shardingOrWhole(value.sharding, value.type),
                                  liveSizes(function, value.type, value.rowDim, run.rows)));
    const bool isParameter = result.kind == ResultKind::Parameter, isState = result.kind == ResultKind::State;
    Tiles& tiles = isParameter ? newParameters : isState ? newStates : outputs;
    const std::size_t count = isParameter ? parameterCount : isState ? stateCount : outputCount;
    const std::size_t number = isParameter || isState ? static_cast<std::size_t>(result.index) : output++;
    for (std::size_t d = 0; d < devices; ++d) tiles.set(d * count + number, bytesOf(results.back().tiles[d]));
    places.emplace_back(&tiles, number);
    counts.push_back(count);
  }
  RunResult told;
  told.bytesReceived.assign(devices, 0);
  run.settings = settings.data();
  run.inputs = inputs.pointers.data();
  run.parameters = parameters.pointers.data();
  run.states = states.pointers.data();
  run.outputs = outputs.pointers.data();
  run.new_parameters = newParameters.pointers.data();
  run.new_states = newStates.pointers.data();
  run.bytes_received = told.bytesReceived.data();
  told.code = gshard_test_run_function(&run);
  told.highestByte = run.highest_byte;
  if (run.fault_site >= 0) {
    told.fault = std::string(program_->sites[run.fault_site].text) + ": " + std::to_string(run.fault_value) + " of " +
                 std::to_string(run.fault_limit) + " at " + std::to_string(run.fault_index);
  }
  for (std::size_t r = 0; r < results.size(); ++r) {
    for (std::size_t d = 0; d < devices; ++d) {
      readLive(results[r].tiles[d], places[r].first->bytes[d * counts[r] + places[r].second],
               world.tiles(results[r], static_cast<std::int64_t>(d)));
    }
    told.replicasDiffer =
        told.replicasDiffer || (results[r].sharding.partial.empty() && world.differingReplica(results[r]));
    told.results.push_back(world.assemble(results[r]));
  }
  return told;
}

std::string difference(const Tensor& actual, const Tensor& expected, double tolerance) {
  if (actual.type != expected.type) return "type " + printType(actual.type) + ", not " + printType(expected.type);
  if (tolerance == 0 || !expected.isFloat()) {
    if (sameBits(actual, expected)) return "";
    tolerance = 0;
  }
  double largest = 0;
  for (std::int64_t i = 0; i < expected.type.elements(); ++i) {
    if (std::isfinite(expected.number(i))) largest = std::max(largest, std::abs(expected.number(i)));
  }
  for (std::int64_t i = 0; i < expected.type.elements(); ++i) {
    const double a = actual.number(i), e = expected.number(i);
    const bool same =
        (std::isnan(a) && std::isnan(e)) || (a == e && (tolerance > 0 || std::signbit(a) == std::signbit(e)));
    if (same || std::abs(a - e) <= tolerance * largest) continue;
    return "element " + std::to_string(i) + " of " + printType(expected.type) + " is " + std::to_string(a) + ", not " +
           std::to_string(e);
  }
  return "";
}

Tensor drawTensor(const Type& type, double low, double high, std::uint64_t seed) {
  Tensor tensor = Tensor::zeros(type);
  std::mt19937_64 random(seed);
  for (std::int64_t i = 0; i < type.elements(); ++i) {
    const double unit = static_cast<double>(random() >> 11) * 0x1p-53;
    if (type.dtype == DType::Bool)
      tensor.setNumber(i, static_cast<double>(random() & 1));
    else if (isFloat(type.dtype))
      tensor.setNumber(i, low + (high - low) * unit);
    else
      tensor.setNumber(i, std::floor(low + (high - low + 1) * unit));
  }
  return tensor;
}

std::vector<Tensor> drawAll(const Function& function, double low, double high) {
  std::vector<Tensor> tensors;
  for (const Argument& argument : function.arguments)
    tensors.push_back(drawTensor(function.type(argument.value), low, high, 7 + tensors.size()));
  return tensors;
}

void expectLikeEvaluator(const Module& module, const std::string& name, const std::vector<Tensor>& arguments,
                         double tolerance, const RunOptions& options, const CodegenOptions& codegen) {
  const std::unique_ptr<Compiled> compiled = Compiled::compile(module, codegen);
  if (compiled != nullptr) expectLikeEvaluator(*compiled, module, name, arguments, tolerance, options);
}

void expectLikeEvaluator(const Compiled& compiled, const Module& module, const std::string& name,
                         const std::vector<Tensor>& arguments, double tolerance, const RunOptions& options) {
  const RunResult actual = compiled.run(name, arguments, options);
  EXPECT_EQ(actual.code, 0);
  EXPECT_FALSE(actual.replicasDiffer) << printModule(module);
  const Function& function = *module.find(name);
  const gshard_rt_function& table = compiled.program().functions[&function - module.functions.data()];
  EXPECT_LE(actual.highestByte, table.peak_bytes);
  EvalOptions evalOptions;
  evalOptions.seed = options.seed;
  evalOptions.rows = options.rows;
  evalOptions.totalRows = options.totalRows;
  const EvalResult expected = evaluate(module, function, arguments, evalOptions);
  for (std::size_t i = 0; i < expected.results.size(); ++i) {
    EXPECT_EQ(difference(actual.results[i], expected.results[i], tolerance), "") << "result " << i << "\n"
                                                                                 << printModule(module);
  }
  EXPECT_EQ(actual.fault.empty(), expected.faults.empty())
      << actual.fault << (expected.faults.empty() ? "" : expected.faults[0]);
}

}  // namespace gshard::testing_codegen
