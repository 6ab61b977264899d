// The program as text: shapes, shardings, sizes and counts as users read them in help, info and messages.
#pragma once
#include <string>
#include <vector>

#include "runtime/abi.h"

namespace gshard::runtime {

std::string tensorText(const gshard_rt_tensor& tensor);  // f32[64, 256]
std::vector<std::int64_t> shapeOf(const gshard_rt_tensor& tensor);
std::string shardedText(const gshard_rt_program& program, const gshard_rt_tensor& tensor);  // f32[64, 256@model]
std::string tileText(const gshard_rt_program& program, const gshard_rt_tensor& tensor);     // f32[64, 128]
std::string axesText(const gshard_rt_program& program, const gshard_rt_axis_ref* axes, std::int64_t count);
std::string meshText(const gshard_rt_program& program);     // data 2 x model 2
std::string bytesText(std::int64_t bytes);                  // 38.8 KiB
std::string countText(std::int64_t count);                  // 19,210
std::int64_t elementCount(const gshard_rt_tensor& tensor);  // global

// Names that may follow the binary's name: train, eval, predict (if any), info and the entries.
std::vector<std::string> commandNames(const gshard_rt_program& program);

// Functions to run for a command, finish functions left out (they hang on their accumulate).
std::vector<const gshard_rt_function*> functionsOf(const gshard_rt_program& program, std::int64_t kind);
const gshard_rt_function* entryNamed(const gshard_rt_program& program, const std::string& name);

// "loss.accumulate" and "loss.eval" without the suffix: what a user wrote.
std::string baseName(const gshard_rt_function& function);

std::string firstLine(const gshard_rt_program& program, const char* transport, bool threads);
std::string helpText(const gshard_rt_program& program);
std::string infoText(const gshard_rt_program& program);
std::string infoJson(const gshard_rt_program& program);

}  // namespace gshard::runtime
