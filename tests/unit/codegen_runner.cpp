// The runtime's side of code generation tests: see codegen_runner.h.
#include "codegen_runner.h"

#include <algorithm>
#include <cstring>
#include <thread>
#include <vector>

#include "runtime/device.h"
#include "runtime/local_transport.h"

namespace {

constexpr int kPoison = 0xFF;  // a NaN as a float, out of range as an index

void putScalar(std::byte* at, std::int64_t dtype, double value) {
  if (dtype == GSHARD_RT_F64) std::memcpy(at, &value, 8);
  const float single = static_cast<float>(value);
  if (dtype == GSHARD_RT_F32) std::memcpy(at, &single, 4);
}

struct DeviceRun {
  gshard::runtime::Fault fault;
  std::int64_t highest = 0;
  int code = 0;
};

void runDevice(gshard_test_run& run, gshard::runtime::LocalWorld& world, int rank, DeviceRun& told) {
  const gshard_rt_program& program = *run.program;
  const gshard_rt_function& function = program.functions[run.function];
  gshard::runtime::Transport& transport = world.device(rank);
  std::byte* arena = transport.arena();
  std::memset(arena, kPoison, static_cast<std::size_t>(program.arena_bytes));
  const auto put = [&](const gshard_rt_tensor& tensor, const void* tile) {
    if (tile != nullptr) std::memcpy(arena + tensor.offset, tile, static_cast<std::size_t>(tensor.bytes));
  };
  const auto get = [&](const gshard_rt_tensor& tensor, void* tile) {
    if (tile != nullptr) std::memcpy(tile, arena + tensor.offset, static_cast<std::size_t>(tensor.bytes));
  };
  const std::int64_t device = rank;
  for (std::int64_t i = 0; i < program.parameter_count; ++i)
    put(program.parameters[i].tensor, run.parameters[device * program.parameter_count + i]);
  for (std::int64_t i = 0; i < program.state_count; ++i)
    put(program.states[i].tensor, run.states[device * program.state_count + i]);
  for (std::int64_t i = 0; i < function.input_count; ++i)
    put(function.inputs[i].tensor, run.inputs[device * function.input_count + i]);
  for (std::int64_t i = 0; i < function.setting_count; ++i) {
    const gshard_rt_setting_use& use = function.settings[i];
    putScalar(arena + use.offset, program.settings[use.setting].dtype, run.settings[use.setting]);
  }
  const std::int32_t step = static_cast<std::int32_t>(run.step), steps = static_cast<std::int32_t>(run.steps);
  if (function.step_offset >= 0) std::memcpy(arena + function.step_offset, &step, 4);
  if (function.steps_offset >= 0) std::memcpy(arena + function.steps_offset, &steps, 4);
  gshard::runtime::Device own(program, transport, static_cast<int>(run.threads), run.seed);
  own.setRows(run.rows, run.total_rows);
  const std::int64_t before = transport.bytesReceived();
  if (!transport.barrier() || !own.run(function, 0) || !transport.barrier()) {
    told.code = std::max(transport.abortNote().code, 1);
    return;
  }
  run.bytes_received[device] = transport.bytesReceived() - before;
  told.fault = own.takeFault();
  told.highest = program.arena_bytes;
  while (told.highest > 0 && arena[told.highest - 1] == static_cast<std::byte>(kPoison)) --told.highest;
  for (std::int64_t i = 0; i < function.output_count; ++i)
    get(function.outputs[i].tensor, run.outputs[device * function.output_count + i]);
  for (std::int64_t i = 0; i < program.parameter_count; ++i)
    get(program.parameters[i].tensor, run.new_parameters[device * program.parameter_count + i]);
  for (std::int64_t i = 0; i < program.state_count; ++i)
    get(program.states[i].tensor, run.new_states[device * program.state_count + i]);
}

}  // namespace

// What generated code and the harness call is pulled out of the archive by being named here.
extern "C" {
extern const void* const gshard_test_called[];
const void* const gshard_test_called[] = {
#define GSHARD_ADDRESS(function, result, parameters) reinterpret_cast<const void*>(&(function)),
    GSHARD_RT_FUNCTIONS(GSHARD_ADDRESS)
#undef GSHARD_ADDRESS
        reinterpret_cast<const void*>(&gshard_rt_load),
};
}

int gshard_test_run_function(gshard_test_run* run) {
  const gshard_rt_program& program = *run->program;
  gshard::runtime::LocalWorld world(static_cast<int>(program.devices), std::max<std::int64_t>(program.arena_bytes, 1));
  std::vector<DeviceRun> told(static_cast<std::size_t>(program.devices));
  std::vector<std::thread> threads;
  for (int rank = 0; rank < program.devices; ++rank) {
    threads.emplace_back([&, rank] { runDevice(*run, world, rank, told[static_cast<std::size_t>(rank)]); });
  }
  for (std::thread& thread : threads) thread.join();
  gshard::runtime::Fault least;
  run->highest_byte = 0;
  int code = 0;
  for (const DeviceRun& device : told) {
    code = std::max(code, device.code);
    run->highest_byte = std::max(run->highest_byte, device.highest);
    const gshard::runtime::Fault& fault = device.fault;
    if (fault.happened() &&
        (!least.happened() || std::pair(fault.order, fault.index) < std::pair(least.order, least.index)))
      least = fault;
  }
  run->fault_site = least.site;
  run->fault_index = least.index;
  run->fault_value = least.value;
  run->fault_limit = least.limit;
  return code;
}
