// For tests of codegen/: a module is compiled, loaded into this process and run on the runtime's devices; values go in
// and come out as the evaluator's tensors.
#pragma once

#include <cstdlib>
#include <memory>
#include <string>
#include <vector>

#include "codegen/codegen.h"
#include "codegen/loaded_object.h"
#include "ir/evaluator.h"
#include "ir/simulated_devices.h"
#include "runtime/abi.h"

namespace gshard::testing_codegen {

struct RunOptions {
  std::uint64_t seed = 0;
  std::int64_t rows = -1;  // live rows; -1: all
  std::int64_t totalRows = -1;
  std::int64_t threads = 1;
};

struct RunResult {
  std::vector<Tensor> results;  // global, in the order of Function::results (accumulators: empty)
  std::string fault;            // "take (site text) 9 of 4"
  std::int64_t highestByte = 0;
  std::vector<std::int64_t> bytesReceived;
  bool replicasDiffer = false;
  int code = 0;
};

class Compiled {
 public:
  // Fails the test and returns null on an error. The module must outlive the result.
  static std::unique_ptr<Compiled> compile(const Module& module, const CodegenOptions& options = {});
  const CodegenResult& result() const { return result_; }
  const gshard_rt_program& program() const { return *program_; }
  // Arguments in the order of Function::arguments, global tensors.
  RunResult run(const std::string& function, const std::vector<Tensor>& arguments,
                const RunOptions& options = {}) const;

 private:
  const Module* module_ = nullptr;
  CodegenResult result_;
  std::unique_ptr<LoadedObject> object_;
  struct Free {
    void operator()(const gshard_rt_program* program) const { std::free(const_cast<gshard_rt_program*>(program)); }
  };
  std::unique_ptr<const gshard_rt_program, Free> program_;
};

// Parses IR text; fails the test when it does not parse.
std::unique_ptr<Module> moduleOf(const std::string& text);
// The first difference in words; tolerance relative to the largest magnitude, 0: same bits.
std::string difference(const Tensor& actual, const Tensor& expected, double tolerance);
Tensor drawTensor(const Type& type, double low, double high, std::uint64_t seed);
// One for each argument of the function.
std::vector<Tensor> drawAll(const Function& function, double low = -2, double high = 2);
// Runs a function of a compiled module and of the evaluator and compares all results.
void expectLikeEvaluator(const Compiled& compiled, const Module& module, const std::string& function,
                         const std::vector<Tensor>& arguments, double tolerance, const RunOptions& options = {});
// The same for a module that is compiled here.
void expectLikeEvaluator(const Module& module, const std::string& function, const std::vector<Tensor>& arguments,
                         double tolerance, const RunOptions& options = {}, const CodegenOptions& codegen = {});

}  // namespace gshard::testing_codegen
