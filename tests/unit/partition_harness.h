// For tests of partition/: IR text in, the SPMD module and its values on simulated devices out.
#pragma once

#include <gtest/gtest.h>

#include "ir/evaluator.h"
#include "ir/op_table.h"
#include "ir/text.h"
#include "partition/passes.h"

namespace gshard::testing_partition {

struct Partitioned {
  Module global, spmd;
  CollectingSink sink;
};

inline std::string replaceAll(std::string text, const std::string& from, const std::string& to) {
  for (std::size_t at = text.find(from); at != std::string::npos; at = text.find(from, at + to.size()))
    text.replace(at, from.size(), to);
  return text;
}

// Parses `text` and runs the pipeline; failures are test failures.
inline std::unique_ptr<Partitioned> partitionText(const std::string& text, bool strict = false) {
  auto result = std::make_unique<Partitioned>();
  SourceManager sources;
  const FileId file = sources.addFile("case.ir", text);
  std::optional<Module> module = parseModule(file, sources, result->sink);
  for (const Diagnostic& diagnostic : result->sink.diagnostics())
    ADD_FAILURE() << diagnostic.code << " " << diagnostic.message << "\n" << text;
  if (!module) return nullptr;
  const std::optional<std::string> fault = verify(*module, Form::Global);
  EXPECT_FALSE(fault) << *fault << "\n" << text;
  result->global = *module;
  result->spmd = *std::move(module);
  PassOptions options;
  options.strictSharding = strict;
  PassContext context{options, result->sink};
  PassManagerOptions managerOptions;
  managerOptions.checkRoundTrip = true;
  const PassRun run = runPasses(result->spmd, partitionPipeline(), context, managerOptions);
  if (run.failure) {
    ADD_FAILURE() << run.failure->pass << ": " << run.failure->fault << "\n"
                  << run.failure->textBefore << "\n"
                  << printModule(result->spmd);
    return nullptr;
  }
  return result;
}

inline Tensor tensorOf(Type type, const std::vector<double>& numbers) {
  Tensor tensor = Tensor::zeros(std::move(type));
  for (std::size_t i = 0; i < numbers.size(); ++i) tensor.setNumber(static_cast<std::int64_t>(i), numbers[i]);
  return tensor;
}

inline Tensor iotaOf(Type type, double start = 0) {
  Tensor tensor = Tensor::zeros(std::move(type));
  for (std::int64_t i = 0; i < tensor.type.elements(); ++i) tensor.setNumber(i, start + static_cast<double>(i));
  return tensor;
}

inline std::vector<double> numbersOf(const Tensor& tensor) {
  std::vector<double> numbers;
  for (std::int64_t i = 0; i < tensor.type.elements(); ++i) numbers.push_back(tensor.number(i));
  return numbers;
}

// "all_reduce f32[1, 3]", in program order; several values of one op are joined by "+".
inline std::vector<std::string> collectivesOf(const Module& module, std::string_view function) {
  std::vector<std::string> result;
  const Function& f = *module.find(function);
  for (const Op& op : f.ops) {
    if (!std::holds_alternative<LowerCollective>(*opDef(op.kind).lower)) continue;
    std::string text(*opDef(op.kind).name);
    for (std::size_t i = 0; i < op.results.size(); ++i) text += (i == 0 ? " " : "+") + printType(f.type(op.results[i]));
    result.push_back(std::move(text));
  }
  return result;
}

inline std::int64_t maxBytes(const EvalResult& result) {
  return result.bytesReceived.empty() ? 0 : *std::max_element(result.bytesReceived.begin(), result.bytesReceived.end());
}

// Runs the SPMD form; checks it against `expected` (one list per result) within a relative tolerance.
inline EvalResult runSpmd(const Partitioned& program, std::string_view function, const std::vector<Tensor>& arguments,
                          const std::vector<std::vector<double>>& expected, double tolerance = 1e-6) {
  const EvalResult result = evaluate(program.spmd, *program.spmd.find(function), arguments);
  EXPECT_EQ(result.results.size(), expected.size());
  for (std::size_t r = 0; r < std::min(result.results.size(), expected.size()); ++r) {
    const std::vector<double> numbers = numbersOf(result.results[r]);
    EXPECT_EQ(numbers.size(), expected[r].size()) << "result " << r;
    for (std::size_t i = 0; i < std::min(numbers.size(), expected[r].size()); ++i) {
      const double scale = std::max(1.0, std::abs(expected[r][i]));
      EXPECT_LE(std::abs(numbers[i] - expected[r][i]), tolerance * scale)
          << "result " << r << " [" << i << "] is " << numbers[i] << ", not " << expected[r][i] << "\n"
          << printModule(program.spmd);
    }
  }
  return result;
}

}  // namespace gshard::testing_partition
