// The steps of shrinking, each tried until none of them helps any more.
#include "tests/fuzz/shrink.h"

#include <algorithm>
#include <optional>

namespace gshard::fuzz {

namespace {

using Candidate = std::optional<GsdProgram>;

// The statement's value comes from outside instead: what led to it falls away.
GsdProgram asInput(const GsdProgram& program, std::size_t statement) {
  GsdProgram result = program;
  const GsdStatement& cut = program.statements[statement];
  GsdInput input;
  input.type = cut.type;
  input.annotation = cut.annotation;
  input.low = cut.isIndex ? 0 : -3;
  input.high = cut.isIndex ? cut.bound : 3;
  input.seed = statement + 1;
  const std::size_t inputs = program.inputs.size(), old = inputs + statement;
  result.inputs.push_back(std::move(input));
  result.statements.erase(result.statements.begin() + static_cast<std::ptrdiff_t>(statement));
  const auto renumber = [&](std::size_t& value) {
    if (value == old) {
      value = inputs;
    } else if (value >= inputs && value < old) {
      ++value;
    }  // those behind it: one input more, one statement less
  };
  for (GsdStatement& each : result.statements) std::for_each(each.operands.begin(), each.operands.end(), renumber);
  std::for_each(result.outputs.begin(), result.outputs.end(), renumber);
  return withoutUnused(result);
}

// Users of the statement read one of its operands instead, where types allow it.
Candidate passedBy(const GsdProgram& program, std::size_t statement, std::size_t operand) {
  const GsdStatement& cut = program.statements[statement];
  if (operand >= cut.operands.size() || !(program.typeOf(cut.operands[operand]) == cut.type)) return std::nullopt;
  const std::size_t old = program.inputs.size() + statement, by = cut.operands[operand];
  GsdProgram result = program;
  for (GsdStatement& each : result.statements) std::replace(each.operands.begin(), each.operands.end(), old, by);
  std::replace(result.outputs.begin(), result.outputs.end(), old, by);
  return withoutUnused(result);
}

class Shrinker {
 public:
  Shrinker(GsdProgram program, const std::function<bool(const GsdProgram&)>& fails, int budget)
      : program_(std::move(program)), fails_(fails), budget_(budget) {}

  GsdProgram run() {
    bool changed = true;
    while (changed && budget_ > 0) {
      changed = simplerKind();
      changed |= fewerOutputs();
      changed |= earlierOutputs();
      changed |= fewerStatements();
      changed |= smallerMesh();
      changed |= fewerAnnotations();
    }
    return program_;
  }

 private:
  bool attempt(const Candidate& candidate) {
    if (!candidate || candidate->outputs.empty() || budget_-- <= 0 || !fails_(*candidate)) return false;
    program_ = *candidate;
    return true;
  }

  bool simplerKind() {
    bool changed = false;
    for (const GsdKind kind : {GsdKind::Forward, GsdKind::Gradient}) {
      if (kind >= program_.kind) continue;
      GsdProgram candidate = program_;
      candidate.kind = kind;
      changed |= attempt(candidate);
    }
    return changed;
  }

  bool fewerOutputs() {
    for (const std::size_t output : program_.outputs) {
      if (program_.outputs.size() == 1) return false;
      GsdProgram candidate = program_;
      candidate.outputs = {output};
      if (attempt(withoutUnused(candidate))) return true;
    }
    bool changed = false;
    for (std::size_t i = program_.outputs.size(); i-- > 0 && program_.outputs.size() > 1;) {
      GsdProgram candidate = program_;
      candidate.outputs.erase(candidate.outputs.begin() + static_cast<std::ptrdiff_t>(i));
      changed |= attempt(withoutUnused(candidate));
      i = std::min(i, program_.outputs.size());
    }
    return changed;
  }

  // What led to an output is handed out in its place.
  bool earlierOutputs() {
    for (std::size_t i = 0; i < program_.outputs.size(); ++i) {
      const std::size_t inputs = program_.inputs.size(), output = program_.outputs[i];
      if (output < inputs) continue;
      for (const std::size_t operand : program_.statements[output - inputs].operands) {
        if (program_.kind != GsdKind::Forward && !isFloat(program_.typeOf(operand).dtype)) continue;
        GsdProgram candidate = program_;
        candidate.outputs[i] = operand;
        if (attempt(withoutUnused(candidate))) return true;
      }
    }
    return false;
  }

  bool fewerStatements() {
    bool changed = false;
    for (std::size_t s = program_.statements.size(); s-- > 0; s = std::min(s, program_.statements.size())) {
      if (attempt(asInput(program_, s))) {
        changed = true;
        continue;
      }
      for (std::size_t operand = 0; operand < 3 && s < program_.statements.size(); ++operand) {
        if (!attempt(passedBy(program_, s, operand))) continue;
        changed = true;
        break;
      }
    }
    return changed;
  }

  bool smallerMesh() {
    bool changed = false;
    for (std::size_t a = 0; a < program_.mesh.size(); ++a) {
      for (std::int64_t size = 1; size < program_.mesh[a].size; ++size) {
        GsdProgram candidate = program_;
        candidate.mesh[a].size = size;
        if (!attempt(candidate)) continue;
        changed = true;
        break;
      }
    }
    return changed;
  }

  // Each annotation dropped, or without what stands behind its split.
  template <class Get>
  bool simpler(Get annotation) {
    const std::string now = annotation(program_);
    if (now.empty()) return false;
    GsdProgram candidate = program_;
    annotation(candidate).clear();
    if (attempt(candidate)) return true;
    for (const char* word : {" @open", " @stored"}) {
      if (!now.ends_with(word)) continue;
      candidate = program_;
      annotation(candidate) = now.substr(0, now.size() - std::string_view(word).size());
      if (attempt(candidate)) return true;
    }
    return false;
  }

  bool fewerAnnotations() {
    bool changed = false;
    for (std::size_t i = 0; i < program_.inputs.size(); ++i) {
      changed |= simpler([i](GsdProgram& program) -> std::string& { return program.inputs[i].annotation; });
      changed |= simpler([i](GsdProgram& program) -> std::string& { return program.inputs[i].stateAnnotation; });
    }
    for (std::size_t s = 0; s < program_.statements.size(); ++s) {
      changed |= simpler([s](GsdProgram& program) -> std::string& { return program.statements[s].annotation; });
    }
    return changed;
  }

  GsdProgram program_;
  const std::function<bool(const GsdProgram&)>& fails_;
  int budget_;
};

}  // namespace

GsdProgram shrink(GsdProgram program, const std::function<bool(const GsdProgram&)>& fails, int budget) {
  return Shrinker(std::move(program), fails, budget).run();
}

}  // namespace gshard::fuzz
