// Helpers of the sema tests: elaborate a snippet, run its functions with the evaluator, name what was reported.
#pragma once

#include <gtest/gtest.h>

#include <map>
#include <string>
#include <vector>

#include "frontend/parse.h"
#include "ir/evaluator.h"
#include "ir/text.h"
#include "ir/verifier.h"
#include "sema/elaborate.h"
#include "support/render.h"

namespace gshard::testing_sema {

struct Program {
  SourceManager sources;
  CollectingSink sink;
  std::optional<Module> module;

  std::string codes() const {  // "E0201 W0201"
    std::string text;
    for (const Diagnostic& diagnostic : sink.diagnostics()) text += (text.empty() ? "" : " ") + diagnostic.code;
    return text;
  }
  std::string rendered() const {
    std::string text;
    for (const Diagnostic& diagnostic : sink.diagnostics()) text += renderText(diagnostic, sources);
    return text;
  }
};

inline ElaborateOptions defaults() {
  ElaborateOptions options;
  options.stdlibPath = GSHARD_SOURCE_DIR "/stdlib";
  options.importPaths = {GSHARD_SOURCE_DIR "/examples"};
  return options;
}

inline std::unique_ptr<Program> elaborateText(const std::string& text, const ElaborateOptions& options = defaults(),
                                              const std::string& name = "test.gsd") {
  auto program = std::make_unique<Program>();
  const FileId file = program->sources.addFile(name, text);
  const std::unique_ptr<ast::File> parsed = parseFile(file, program->sources, program->sink);
  if (program->sink.hasErrors()) return program;
  program->module = elaborate(*parsed, program->sources, options, program->sink);
  if (program->module) {
    const std::optional<std::string> fault = verify(*program->module, Form::Global);
    EXPECT_EQ(fault, std::nullopt) << printModule(*program->module);
  }
  return program;
}

inline Tensor tensor(DType dtype, std::vector<std::int64_t> shape, const std::vector<double>& numbers) {
  Tensor result = Tensor::zeros({dtype, std::move(shape)});
  for (std::size_t i = 0; i < numbers.size(); ++i) result.setNumber(static_cast<std::int64_t>(i), numbers[i]);
  return result;
}
inline Tensor floats(std::vector<std::int64_t> shape, const std::vector<double>& numbers) {
  return tensor(DType::F32, std::move(shape), numbers);
}
inline Tensor ints(std::vector<std::int64_t> shape, const std::vector<double>& numbers) {
  return tensor(DType::I32, std::move(shape), numbers);
}

inline std::vector<double> numbers(const Tensor& tensor) {
  std::vector<double> result;
  for (std::int64_t i = 0; i < tensor.type.elements(); ++i) result.push_back(tensor.number(i));
  return result;
}

using Tensors = std::map<std::string, Tensor>;  // by name: inputs, parameters, states, settings, results

// Parameters and states as `init` makes them.
inline Tensors initialValues(const Module& module) {
  const Function& init = *module.find("init");
  const EvalResult result = evaluate(module, init, {});
  Tensors values;
  for (std::size_t i = 0; i < init.results.size(); ++i) values[init.results[i].name] = result.results[i];
  return values;
}

struct RunOptions {
  int step = 0, steps = 10;
  EvalOptions eval;
};

// Results by name; results that are parameters or states have the name of what they replace.
inline Tensors run(const Module& module, const std::string& name, const Tensors& given,
                   const RunOptions& options = {}) {
  const Function* function = module.find(name);
  if (function == nullptr) {
    ADD_FAILURE() << "no function " << name;
    return {};
  }
  std::vector<Tensor> arguments;
  for (const Argument& argument : function->arguments) {
    const Type& type = function->type(argument.value);
    if (argument.kind == ArgumentKind::Step) {
      arguments.push_back(ints({}, {static_cast<double>(options.step)}));
    } else if (argument.kind == ArgumentKind::Steps) {
      arguments.push_back(ints({}, {static_cast<double>(options.steps)}));
    } else if (given.contains(argument.name)) {
      arguments.push_back(given.at(argument.name));
      EXPECT_EQ(printType(arguments.back().type), printType(type)) << argument.name;
    } else if (argument.kind == ArgumentKind::Setting) {
      arguments.push_back(tensor(type.dtype, {}, {module.settings[static_cast<std::size_t>(argument.index)].value}));
    } else {
      ADD_FAILURE() << "no value for " << argument.name;
      arguments.push_back(Tensor::zeros(type));
    }
  }
  const EvalResult result = evaluate(module, *function, arguments, options.eval);
  EXPECT_TRUE(result.faults.empty()) << result.faults.front();
  Tensors values;
  for (std::size_t i = 0; i < function->results.size(); ++i) values[function->results[i].name] = result.results[i];
  return values;
}

inline void expectNear(const Tensor& actual, const std::vector<double>& expected, double tolerance = 1e-6) {
  const std::vector<double> values = numbers(actual);
  ASSERT_EQ(values.size(), expected.size());
  for (std::size_t i = 0; i < values.size(); ++i) EXPECT_NEAR(values[i], expected[i], tolerance) << "at " << i;
}

// Elaborates `entry fn f() -> TYPE { return EXPRESSION }` after `before` and evaluates it.
inline Tensor evaluateExpression(const std::string& expression, const std::string& type = "f32",
                                 const std::string& before = "") {
  const auto program = elaborateText(before + "\nentry fn f() -> " + type + " { return " + expression + " }\n");
  if (!program->module) {
    ADD_FAILURE() << expression << "\n" << program->rendered();
    return Tensor::zeros({});
  }
  return run(*program->module, "f", {}).at("result");
}

}  // namespace gshard::testing_sema
