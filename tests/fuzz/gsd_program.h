// Random small programs of the language with random annotations, as data: a list of inputs and statements that can be
// written as .gsd text and cut down statement by statement (shrink.h). Values are small integers, so that sums are
// exact in any order and equality is exact.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "ir/tensor.h"

namespace gshard::fuzz {

// Forward: some values are handed out. Gradient: their sum as one scalar, and its gradient by every float input.
// Training: some float inputs are parameters, updated from the gradient through a state each.
enum class GsdKind : std::uint8_t { Forward, Gradient, Training };

struct GsdInput {
  Type type;
  std::string annotation;       // " @shard([a, _])" or empty
  std::string stateAnnotation;  // Training: of the parameter's state
  bool parameter = false;       // Training: trained, not fed
  std::int64_t low = 0, high = 0;
  std::uint64_t seed = 0;  // of its numbers, so that dropping another input does not change them
};

struct GsdStatement {
  std::string text;                   // "relu($0)"; $n is the n-th operand
  std::vector<std::size_t> operands;  // values: inputs first, then statements
  Type type;
  std::string annotation;
  bool isIndex = false;  // values are indices, at most `bound`
  std::int64_t bound = 0;
};

struct GsdAxis {
  std::string name;
  std::int64_t size = 1;
};

struct GsdProgram {
  std::uint64_t seed = 0;
  GsdKind kind = GsdKind::Forward;
  std::vector<GsdAxis> mesh;
  std::vector<GsdInput> inputs;
  std::vector<GsdStatement> statements;
  std::vector<std::size_t> outputs;  // values; of a gradient or training program: those that are summed

  const Type& typeOf(std::size_t value) const {
    return value < inputs.size() ? inputs[value].type : statements[value - inputs.size()].type;
  }
  std::int64_t devices() const;
};

// The program of this seed: kind, mesh, size and dtype follow from it.
GsdProgram makeGsdProgram(std::uint64_t seed);
// The same with a kind and mesh of the caller's choice.
GsdProgram makeGsdProgram(std::uint64_t seed, GsdKind kind, const std::vector<GsdAxis>& mesh);

// One entry `t` that does what all of the programs do; they share the mesh of the first. With more than one, names of
// inputs begin with the program's number. Only a single program may be of kind Training.
std::string gsdText(const std::vector<const GsdProgram*>& programs);
std::string gsdText(const GsdProgram& program);

// The name of an input in that text, and its numbers.
std::string inputName(const std::vector<const GsdProgram*>& programs, std::size_t program, std::size_t input);
Tensor inputTensor(const GsdInput& input);

// Drops statements and inputs that no output needs, and axes that nothing names.
GsdProgram withoutUnused(const GsdProgram& program);

}  // namespace gshard::fuzz
