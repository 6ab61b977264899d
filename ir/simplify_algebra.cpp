// simplify-algebra: identities that leave every bit as it is, NaN payloads excepted. So x + 0 stays (it turns -0 into
// 0) and so does x * 0 (NaN); sums are not reordered. A rule turns the op at hand into a simpler one or names the value
// that it equals.
#include <algorithm>

#include "ir/passes.h"
#include "ir/rewrite.h"
#include "support/check.h"

namespace gshard {

namespace {

using Dims = std::vector<std::int64_t>;

// Does a cast from `from` to `to` keep every value?
bool isExactCast(DType from, DType to) {
  if (from == to || from == DType::Bool) return true;
  switch (from) {
    case DType::BF16:
    case DType::F16:
      return to == DType::F32 || to == DType::F64;
    case DType::F32:
      return to == DType::F64;
    case DType::U8:
      return isFloat(to) || to == DType::I32 || to == DType::I64;
    case DType::I32:
      return to == DType::F64 || to == DType::I64;
    case DType::F64:
    case DType::I64:
    case DType::Bool:
      return false;
  }
  GSHARD_UNREACHABLE("dtype");
}

bool isIota(const Dims& dims) {
  for (std::size_t i = 0; i < dims.size(); ++i) {
    if (dims[i] != static_cast<std::int64_t>(i)) return false;
  }
  return true;
}

bool areAll(const Dims& dims, std::int64_t value) {
  return std::all_of(dims.begin(), dims.end(), [&](std::int64_t dim) { return dim == value; });
}

class Algebra {
 public:
  explicit Algebra(Function& function) : rewriter_(function) {}

  // Whether any rule applied.
  bool run() {
    rewriter_.run([&](Op& op) {
      // Each rule makes the op smaller or moves it towards the arguments, so this ends.
      while (true) {
        changed_ = false;
        const ValueId same = simplify(op);
        isChanged_ = isChanged_ || changed_ || same.known();
        if (same.known()) {
          if (type(same) == type(op.results[0])) {
            rewriter_.replace(op.results[0], same);
            return false;
          }
          becomeBroadcast(op, type(op.results[0]), same, type(same).rank());
          changed_ = true;
        }
        if (!changed_) return true;
      }
    });
    return isChanged_;
  }

 private:
  const Function& function() const { return rewriter_.function(); }
  const Type& type(ValueId value) const { return function().type(value); }
  const Op* definition(ValueId value, OpKind kind) const {
    const Op* op = rewriter_.definition(value);
    return op != nullptr && op->kind == kind ? op : nullptr;
  }
  const Op* mapOf(ValueId value, std::string_view fn) const {
    const Op* op = definition(value, OpKind::Map);
    return op != nullptr && fnOf(*op) == fn ? op : nullptr;
  }
  bool isSplat(ValueId value, double number) const {
    return isNumber(splatOf(rewriter_.definition(value), type(value).dtype), type(value).dtype, number);
  }

  // The value that the op's only result equals (up to broadcasting), or an unknown id; sets changed_ when it changed
  // the op.
  ValueId simplify(Op& op) {
    struct Rule {
      OpKind kind;
      ValueId (Algebra::*apply)(Op&);
    };
    static constexpr Rule kRules[] = {
        {OpKind::Broadcast, &Algebra::simplifyBroadcast},
        {OpKind::Concat, &Algebra::simplifyConcat},
        {OpKind::DimSize, &Algebra::simplifyDimSize},
        {OpKind::Map, &Algebra::simplifyMap},
        {OpKind::Pad, &Algebra::simplifyPad},
        {OpKind::Reduce, &Algebra::simplifyReduce},
        {OpKind::Reshape, &Algebra::simplifyReshape},
        {OpKind::Reverse, &Algebra::simplifyReverse},
        {OpKind::Slice, &Algebra::simplifySlice},
        {OpKind::Transpose, &Algebra::simplifyTranspose},
    };
    for (const Rule& rule : kRules) {
      if (rule.kind == op.kind) return (this->*rule.apply)(op);
    }
    return {};
  }

  bool sameType(const Op& op) const { return type(op.operands[0]) == type(op.results[0]); }

  ValueId simplifyMap(Op& op) {
    const std::string_view fn = fnOf(op);
    const ValueId x = op.operands[0];
    const DType dtype = type(x).dtype;
    // What is added or taken away without effect: -0 to a float, since -0 + 0 is 0.
    const double nothing = isFloat(dtype) ? -0.0 : 0.0;
    if (fn == "add") return isSplat(op.operands[1], nothing) ? x : isSplat(x, nothing) ? op.operands[1] : ValueId{};
    if (fn == "sub") return isSplat(op.operands[1], 0) ? x : ValueId{};
    if (fn == "mul") return isSplat(op.operands[1], 1) ? x : isSplat(x, 1) ? op.operands[1] : ValueId{};
    if (fn == "div") return isSplat(op.operands[1], 1) ? x : ValueId{};
    if (fn == "and")
      return isSplat(op.operands[1], 1) || x == op.operands[1] ? x : isSplat(x, 1) ? op.operands[1] : ValueId{};
    if (fn == "or")
      return isSplat(op.operands[1], 0) || x == op.operands[1] ? x : isSplat(x, 0) ? op.operands[1] : ValueId{};
    if (fn == "maximum" || fn == "minimum") return x == op.operands[1] ? x : ValueId{};
    if (fn == "relu") return mapOf(x, "relu") != nullptr ? x : ValueId{};
    if (fn == "neg" || fn == "not") return undo(x, fn);
    if (fn == "abs") return simplifyAbs(op);
    if (fn == "where") return simplifyWhere(op);
    if (fn == "cast") return simplifyCast(op);
    return {};
  }

  ValueId undo(ValueId x, std::string_view fn) const {
    const Op* inner = mapOf(x, fn);
    return inner != nullptr ? inner->operands[0] : ValueId{};
  }

  ValueId simplifyAbs(Op& op) {
    const ValueId x = op.operands[0];
    if (mapOf(x, "abs") != nullptr) return x;
    if (const Op* inner = mapOf(x, "neg"); inner != nullptr) {
      op.operands[0] = inner->operands[0];
      changed_ = true;
    }
    return {};
  }

  ValueId simplifyWhere(Op& op) {
    const ValueId condition = op.operands[0];
    if (op.operands[1] == op.operands[2]) return op.operands[1];
    if (isSplat(condition, 1)) return op.operands[1];
    if (isSplat(condition, 0)) return op.operands[2];
    if (const Op* inner = mapOf(condition, "not"); inner != nullptr) {
      op.operands = {inner->operands[0], op.operands[2], op.operands[1]};
      changed_ = true;
    }
    return {};
  }

  ValueId simplifyCast(Op& op) {
    const ValueId x = op.operands[0];
    const DType to = type(op.results[0]).dtype;
    if (type(x).dtype == to) return x;
    const Op* inner = mapOf(x, "cast");
    if (inner == nullptr) return {};
    const ValueId source = inner->operands[0];
    const DType from = type(source).dtype, by = type(x).dtype;
    if (!isExactCast(from, by)) return {};
    if (from == to) return source;
    // An integer saturates when it becomes one by way of a float, and wraps on the direct way.
    if (isInteger(from) && isFloat(by) && isInteger(to)) return {};
    op.operands[0] = source;
    changed_ = true;
    return {};
  }

  ValueId simplifyTranspose(Op& op) {
    const Dims permutation = intsOf(op, "perm");
    const ValueId x = op.operands[0];
    if (isIota(permutation)) return x;
    const Op* inner = definition(x, OpKind::Transpose);
    if (inner == nullptr) return {};
    Dims composed;
    for (const std::int64_t dim : permutation)
      composed.push_back(intsOf(*inner, "perm")[static_cast<std::size_t>(dim)]);
    op.operands[0] = inner->operands[0];
    op.attributes.set("perm", std::move(composed));
    changed_ = true;
    return {};
  }

  ValueId simplifyReshape(Op& op) {
    if (sameType(op)) return op.operands[0];
    const Op* inner = definition(op.operands[0], OpKind::Reshape);
    if (inner == nullptr) return {};
    op.operands[0] = inner->operands[0];
    changed_ = true;
    return {};
  }

  ValueId simplifyBroadcast(Op& op) {
    const Dims dims = intsOf(op, "dims");
    const ValueId x = op.operands[0];
    if (sameType(op) && isIota(dims)) return x;
    const Op* inner = definition(x, OpKind::Broadcast);
    if (inner == nullptr) return {};
    Dims composed;
    for (const std::int64_t dim : intsOf(*inner, "dims")) composed.push_back(dims[static_cast<std::size_t>(dim)]);
    op.operands[0] = inner->operands[0];
    op.attributes.set("dims", std::move(composed));
    changed_ = true;
    return {};
  }

  ValueId simplifySlice(Op& op) {
    const Dims start = intsOf(op, "start"), step = intsOf(op, "step"), limit = intsOf(op, "limit");
    if (sameType(op) && areAll(step, 1)) return op.operands[0];
    const Op* inner = definition(op.operands[0], OpKind::Slice);
    if (inner == nullptr) return {};
    const Dims innerStart = intsOf(*inner, "start"), innerStep = intsOf(*inner, "step");
    const Dims& shape = type(op.results[0]).shape;
    Dims newStart, newStep, newLimit;
    for (std::size_t i = 0; i < start.size(); ++i) {
      newStart.push_back(innerStart[i] + start[i] * innerStep[i]);
      newStep.push_back(step[i] * innerStep[i]);
      // Just past the last element that is read.
      newLimit.push_back(shape[i] == 0 ? newStart[i] : newStart[i] + (shape[i] - 1) * newStep[i] + 1);
    }
    op.operands[0] = inner->operands[0];
    op.attributes.set("start", std::move(newStart));
    op.attributes.set("step", std::move(newStep));
    op.attributes.set("limit", std::move(newLimit));
    changed_ = true;
    return {};
  }

  ValueId simplifyConcat(Op& op) { return op.operands.size() == 1 ? op.operands[0] : ValueId{}; }

  ValueId simplifyReduce(Op& op) { return intsOf(op, "dims").empty() && sameType(op) ? op.operands[0] : ValueId{}; }

  ValueId simplifyPad(Op& op) {
    const bool pads = !areAll(intsOf(op, "low"), 0) || !areAll(intsOf(op, "high"), 0);
    return !pads && sameType(op) ? op.operands[0] : ValueId{};  // interior of a dim with one element pads nothing
  }

  ValueId simplifyReverse(Op& op) {
    const Dims dims = intsOf(op, "dims");
    const ValueId x = op.operands[0];
    const Type& source = type(x);
    const bool turns = std::any_of(dims.begin(), dims.end(),
                                   [&](std::int64_t dim) { return source.shape[static_cast<std::size_t>(dim)] > 1; });
    if (!turns) return x;
    const Op* inner = definition(x, OpKind::Reverse);
    if (inner == nullptr) return {};
    const Dims innerDims = intsOf(*inner, "dims");
    Dims remaining;  // dims turned once
    for (std::int64_t dim = 0; dim < source.rank(); ++dim) {
      const bool here = std::find(dims.begin(), dims.end(), dim) != dims.end();
      const bool there = std::find(innerDims.begin(), innerDims.end(), dim) != innerDims.end();
      if (here != there) remaining.push_back(dim);
    }
    op.operands[0] = inner->operands[0];
    op.attributes.set("dims", std::move(remaining));
    changed_ = true;
    return {};
  }

  // A constant where no row dim is involved: before split-rows, only in functions without rows.
  ValueId simplifyDimSize(Op& op) {
    const Value& x = function().value(op.operands[0]);
    const Dims& dims = intsOf(op, "dims");
    if (function().rows > 0 && function().stage == Stage::Whole) return {};
    if (std::find(dims.begin(), dims.end(), x.rowDim) != dims.end()) return {};
    std::int64_t size = 1;
    for (const std::int64_t dim : dims) size *= x.type.shape[static_cast<std::size_t>(dim)];
    const Type result = type(op.results[0]);
    becomeConstant(op, result, isFloat(result.dtype) ? floatLiteral(static_cast<double>(size)) : intLiteral(size));
    changed_ = true;
    return {};
  }

  Rewriter rewriter_;
  bool changed_ = false;    // the op at hand, by the last rule
  bool isChanged_ = false;  // anything
};

}  // namespace

void simplifyAlgebra(Module& module, PassContext& context) {
  for (Function& function : module.functions) {
    if (!Algebra(function).run()) context.unchanged.insert(&function);
  }
}

}  // namespace gshard
