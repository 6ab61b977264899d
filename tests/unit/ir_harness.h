// For tests of ir/: IR text in, module or diagnostics out; tensors from numbers.
#pragma once

#include <gtest/gtest.h>

#include "ir/evaluator.h"
#include "ir/op_table.h"
#include "ir/text.h"
#include "ir/verifier.h"

namespace gshard::testing_ir {

inline std::optional<Module> tryParse(const std::string& text, CollectingSink& sink) {
  SourceManager sources;
  return parseModule(sources.addFile("test.ir", text), sources, sink);
}

inline Module parseText(const std::string& text) {
  CollectingSink sink;
  std::optional<Module> module = tryParse(text, sink);
  for (const Diagnostic& each : sink.diagnostics()) ADD_FAILURE() << each.code << ": " << each.message << "\n" << text;
  return module ? std::move(*module) : Module{};
}

// Code and message of the one diagnostic that the text gives.
inline std::string faultOf(const std::string& text) {
  CollectingSink sink;
  if (tryParse(text, sink)) return "";
  EXPECT_EQ(sink.diagnostics().size(), 1u) << text;
  return sink.diagnostics().empty() ? "" : sink.diagnostics()[0].code + " " + sink.diagnostics()[0].message;
}

inline Tensor tensorOf(Type type, const std::vector<double>& numbers) {
  Tensor tensor = Tensor::zeros(std::move(type));
  for (std::size_t i = 0; i < numbers.size(); ++i) tensor.setNumber(static_cast<std::int64_t>(i), numbers[i]);
  return tensor;
}

inline std::vector<double> numbersOf(const Tensor& tensor) {
  std::vector<double> numbers;
  for (std::int64_t i = 0; i < tensor.type.elements(); ++i) numbers.push_back(tensor.number(i));
  return numbers;
}

}  // namespace gshard::testing_ir
