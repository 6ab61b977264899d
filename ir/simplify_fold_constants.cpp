// fold-constants: ops on constants alone are evaluated while compiling, by the rules that evaluator and generated code
// share. Float sums and products over dims are left: their order of additions belongs to the device. Large results are
// kept only where one number says all elements.
#include <bit>

#include "ir/evaluator.h"
#include "ir/op_table.h"
#include "ir/passes.h"
#include "ir/rewrite.h"
#include "ir/scalar_functions.h"
#include "support/check.h"
#include "support/overloaded.h"

namespace gshard {

namespace {

constexpr std::int64_t kMostDenseElements = 256;

Literal literalOf(DType dtype, const ScalarNumber& number) {
  return isFloat(dtype) ? floatLiteral(number.real) : intLiteral(number.integer);
}

class ConstantFolding {
 public:
  ConstantFolding(const Module& module, Function& function) : module_(&module), rewriter_(function) {}

  // Whether anything was folded.
  bool run() {
    rewriter_.run([&](Op& op) {
      const OpKind kind = op.kind;
      fold(op);
      isChanged_ = isChanged_ || op.kind != kind;  // what is folded becomes a constant
      return true;
    });
    return isChanged_;
  }

 private:
  const Type& type(ValueId value) const { return rewriter_.function().type(value); }

  void fold(Op& op) {
    if (op.operands.empty() || op.results.size() != 1) return;
    std::vector<std::optional<Splat>> splats;
    bool areSplats = true;
    for (const ValueId operand : op.operands) {
      const Op* definition = rewriter_.definition(operand);
      if (definition == nullptr || definition->kind != OpKind::Constant) return;
      splats.push_back(splatOf(definition, type(operand).dtype));
      areSplats = areSplats && splats.back().has_value();
    }
    const Type result = type(op.results[0]);
    if (areSplats && foldSplats(op, result, splats)) return;
    if (mayEvaluate(op, result)) evaluateWhole(op, result);
  }

  // A map of splats is one number; a move of one splat is the same number elsewhere.
  bool foldSplats(Op& op, const Type& result, const std::vector<std::optional<Splat>>& splats) {
    if (op.kind == OpKind::Map) {
      const std::optional<ScalarFn> fn = scalarFromName(fnOf(op));
      GSHARD_CHECK(fn.has_value(), "unknown scalar function");
      const DType operand = type(op.operands.back()).dtype;
      std::vector<ScalarNumber> numbers;
      for (std::size_t i = 0; i < splats.size(); ++i) {
        const DType dtype = type(op.operands[i]).dtype;
        numbers.push_back({isFloat(dtype) ? roundTo(dtype, splats[i]->real) : 0, splats[i]->integer});
      }
      if (mayFail(*fn, operand) && numbers.back().integer == 0) return true;  // stays: an error of the run
      becomeConstant(op, result, literalOf(result.dtype, evaluateScalar(*fn, operand, result.dtype, numbers)));
      return true;
    }
    const bool moves = op.operands.size() == 1 && std::holds_alternative<LowerMove>(*opDef(op.kind).lower);
    const bool passes = op.kind == OpKind::StopGradient;
    if (!moves && !passes) return false;
    becomeConstant(op, result, literalOf(result.dtype, {splats[0]->real, splats[0]->integer}));
    return true;
  }

  bool mayEvaluate(const Op& op, const Type& result) const {
    std::int64_t elements = result.elements();
    for (const ValueId operand : op.operands) elements = std::max(elements, type(operand).elements());
    if (elements > kMostDenseElements) return false;
    const bool rounds = isFloat(type(op.operands[0]).dtype);
    return std::visit(
        Overloaded{[&](const LowerMap&) { return !mayFailOn(op); }, [&](const LowerContract&) { return !rounds; },
                   [&](const LowerReduce&) { return !rounds; }, [&](const LowerArgReduce&) { return true; },
                   [&](const LowerScan&) { return !rounds; }, [&](const LowerSort&) { return true; },
                   [&](const LowerMove&) { return true; },
                   [&](const LowerAlias&) { return op.kind != OpKind::Annotate; },
                   [&](const LowerGenerate&) { return false; },
                   [&](const LowerGather&) { return false; },  // may fail while running
                   [&](const LowerScatter&) { return false; }, [&](const LowerWindowRead&) { return false; },
                   [&](const LowerWindowWrite&) { return false; }, [&](const LowerDispatch&) { return false; },
                   [&](const LowerGatherSlots&) { return false; }, [&](const LowerCombine&) { return false; },
                   [&](const LowerRoute&) { return false; }, [&](const LowerCollective&) { return false; },
                   [&](const LowerLocalCopy&) { return false; }},
        *opDef(op.kind).lower);
  }

  bool mayFailOn(const Op& op) const {
    const std::optional<ScalarFn> fn = scalarFromName(fnOf(op));
    return fn && mayFail(*fn, type(op.operands.back()).dtype);
  }

  void evaluateWhole(Op& op, const Type& result) {
    std::vector<Tensor> operands;
    for (const ValueId operand : op.operands) {
      const auto* literal = std::get_if<Literal>(rewriter_.definition(operand)->attributes.find("value"));
      operands.push_back(Tensor::ofLiteral(type(operand), *literal));
    }
    const Tensor value = evaluateOp(OpView(*module_, rewriter_.function(), op), operands)[0];
    Literal literal;
    if (isFloat(result.dtype)) {
      literal.floats = value.floats;
    } else {
      literal.ints = value.ints;
    }
    becomeConstant(op, result, asSplat(std::move(literal)));
  }

  static Literal asSplat(Literal literal) {
    for (std::size_t i = 1; i < literal.floats.size(); ++i) {
      if (std::bit_cast<std::uint64_t>(literal.floats[i]) != std::bit_cast<std::uint64_t>(literal.floats[0]))
        return literal;
    }
    for (std::size_t i = 1; i < literal.ints.size(); ++i) {
      if (literal.ints[i] != literal.ints[0]) return literal;
    }
    if (!literal.floats.empty()) literal.floats.resize(1);
    if (!literal.ints.empty()) literal.ints.resize(1);
    return literal;
  }

  const Module* module_;
  Rewriter rewriter_;
  bool isChanged_ = false;
};

}  // namespace

void foldConstants(Module& module, PassContext& context) {
  for (Function& function : module.functions) {
    if (!ConstantFolding(module, function).run()) context.unchanged.insert(&function);
  }
}

}  // namespace gshard
