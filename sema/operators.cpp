// Folding and emitting of operators. Over 400 lines, because each is one rule on numbers and one on tensors that must
// agree, and they stand together.
#include "sema/operators.h"

#include <cmath>
#include <set>

#include "sema/diagnostics.h"
#include "support/check.h"
#include "support/checked.h"

namespace gshard::sema {

namespace {

using ast::BinaryOp;

bool isArithmetic(BinaryOp op) {
  switch (op) {
    case BinaryOp::Add:
    case BinaryOp::Sub:
    case BinaryOp::Mul:
    case BinaryOp::Div:
    case BinaryOp::Mod:
    case BinaryOp::Pow:
      return true;
    case BinaryOp::Equal:
    case BinaryOp::NotEqual:
    case BinaryOp::Less:
    case BinaryOp::LessEqual:
    case BinaryOp::Greater:
    case BinaryOp::GreaterEqual:
    case BinaryOp::And:
    case BinaryOp::Or:
      return false;
  }
  GSHARD_UNREACHABLE("binary operator");
}

const char* scalarFunction(BinaryOp op) {
  switch (op) {
    case BinaryOp::Add:
      return "add";
    case BinaryOp::Sub:
      return "sub";
    case BinaryOp::Mul:
      return "mul";
    case BinaryOp::Div:
      return "div";
    case BinaryOp::Mod:
      return "mod";
    case BinaryOp::Pow:
      return "pow";
    case BinaryOp::Equal:
      return "eq";
    case BinaryOp::NotEqual:
      return "ne";
    case BinaryOp::Less:
      return "lt";
    case BinaryOp::LessEqual:
      return "le";
    case BinaryOp::Greater:
      return "gt";
    case BinaryOp::GreaterEqual:
      return "ge";
    case BinaryOp::And:
      return "and";
    case BinaryOp::Or:
      return "or";
  }
  GSHARD_UNREACHABLE("binary operator");
}

Datum foldInts(BinaryOp op, const IntDatum& a, const IntDatum& b, SourceRange range, DiagSink& sink) {
  std::optional<std::int64_t> result;
  switch (op) {
    case BinaryOp::Add:
      result = checkedAdd(a.value, b.value);
      break;
    case BinaryOp::Sub:
      result = checkedSub(a.value, b.value);
      break;
    case BinaryOp::Mul:
      result = checkedMul(a.value, b.value);
      break;
    case BinaryOp::Div:
      if (b.value == 0) {
        sink.emit(range, diag::DivisionByZero, a.value);
        return {};
      }
      if (const auto quotient = checkedFloorDiv(a.value, b.value); quotient && *quotient * b.value != a.value) {
        sink.emit(range, diag::DivisionNotExact, a.value, b.value)
            .help("`floordiv(a, b)` rounds down, `ceildiv(a, b)` up; with a float on either side `/` gives a float");
        return {};
      }
      result = checkedFloorDiv(a.value, b.value);
      break;
    case BinaryOp::Mod:
      if (b.value == 0) {
        sink.emit(range, diag::DivisionByZero, a.value);
        return {};
      }
      result = b.value == -1 ? 0 : a.value % b.value;
      if (*result != 0 && (*result < 0) != (b.value < 0)) *result += b.value;
      break;
    case BinaryOp::Pow:
      if (b.value < 0) {
        sink.emit(range, diag::NegativePower, a.value, b.value).help("with a float base the result is a float");
        return {};
      }
      result = checkedPow(a.value, b.value);
      break;
    case BinaryOp::Equal:
    case BinaryOp::NotEqual:
    case BinaryOp::Less:
    case BinaryOp::LessEqual:
    case BinaryOp::Greater:
    case BinaryOp::GreaterEqual:
    case BinaryOp::And:
    case BinaryOp::Or:
      GSHARD_UNREACHABLE("arithmetic");
  }
  if (!result) {
    sink.emit(range, diag::NumberBeyond64Bits, std::string(ast::spelling(op)), a.value, b.value);
    return {};
  }
  return IntDatum{*result, derived(a.rows, b.rows)};
}

Datum foldFloats(BinaryOp op, double a, double b, RowsUse rows) {
  switch (op) {
    case BinaryOp::Add:
      return FloatDatum{a + b, rows};
    case BinaryOp::Sub:
      return FloatDatum{a - b, rows};
    case BinaryOp::Mul:
      return FloatDatum{a * b, rows};
    case BinaryOp::Div:
      return FloatDatum{a / b, rows};
    case BinaryOp::Mod:
      return FloatDatum{b == 0 ? std::nan("") : a - b * std::floor(a / b), rows};
    case BinaryOp::Pow:
      return FloatDatum{std::pow(a, b), rows};
    case BinaryOp::Equal:
    case BinaryOp::NotEqual:
    case BinaryOp::Less:
    case BinaryOp::LessEqual:
    case BinaryOp::Greater:
    case BinaryOp::GreaterEqual:
    case BinaryOp::And:
    case BinaryOp::Or:
      GSHARD_UNREACHABLE("arithmetic");
  }
  GSHARD_UNREACHABLE("binary operator");
}

template <class T>
bool compare(BinaryOp op, const T& a, const T& b) {
  switch (op) {
    case BinaryOp::Less:
      return a < b;
    case BinaryOp::LessEqual:
      return a <= b;
    case BinaryOp::Greater:
      return a > b;
    case BinaryOp::GreaterEqual:
      return a >= b;
    case BinaryOp::Equal:
      return a == b;
    case BinaryOp::NotEqual:
      return a != b;
    case BinaryOp::Add:
    case BinaryOp::Sub:
    case BinaryOp::Mul:
    case BinaryOp::Div:
    case BinaryOp::Mod:
    case BinaryOp::Pow:
    case BinaryOp::And:
    case BinaryOp::Or:
      GSHARD_UNREACHABLE("comparison");
  }
  GSHARD_UNREACHABLE("binary operator");
}

RowsUse rowsOf(const Datum& number) {
  if (const auto* i = number.as<IntDatum>()) return i->rows;
  if (const auto* f = number.as<FloatDatum>()) return f->rows;
  return RowsUse::None;
}

// Lists and strings double in a loop: sixty rounds would be more than any memory.
constexpr std::size_t kMostElements = 1'000'000;

static Datum tooLong(std::size_t length, const char* kind, SourceRange range, DiagSink& sink) {
  sink.emit(range, diag::ValueTooLong, std::string(kind), static_cast<std::int64_t>(length),
            static_cast<std::int64_t>(kMostElements));
  return {};
}

std::optional<Datum> foldBinary(BinaryOp op, const Datum& left, const Datum& right, const OperandRanges& ranges,
                                DiagSink& sink) {
  const auto* a = left.as<IntDatum>();
  const auto* b = right.as<IntDatum>();
  if (isArithmetic(op)) {
    if (a != nullptr && b != nullptr) return foldInts(op, *a, *b, ranges.whole, sink);
    if (left.isNumber() && right.isNumber()) {
      return foldFloats(op, numberOf(left), numberOf(right), derived(rowsOf(left), rowsOf(right)));
    }
    if (op == BinaryOp::Add) {
      const auto* list = left.as<ListDatum>();
      const auto* other = right.as<ListDatum>();
      if (list != nullptr && other != nullptr) {
        const std::size_t length = list->items->size() + other->items->size();
        if (length > kMostElements) return tooLong(length, "list", ranges.whole, sink);
        std::vector<Datum> items = *list->items;
        items.insert(items.end(), other->items->begin(), other->items->end());
        return makeList(std::move(items));
      }
      const auto* text = left.as<StringDatum>();
      const auto* tail = right.as<StringDatum>();
      if (text != nullptr && tail != nullptr) {
        const std::size_t length = text->value.size() + tail->value.size();
        if (length > kMostElements) return tooLong(length, "string", ranges.whole, sink);
        return Datum(StringDatum{text->value + tail->value});
      }
    }
    return std::nullopt;
  }
  if (ast::isComparison(op)) {
    if (op == BinaryOp::Equal || op == BinaryOp::NotEqual) {
      if (left.isTensorLike() || right.isTensorLike()) return std::nullopt;
      const std::optional<bool> equal = equalDatums(left, right);
      if (!equal) return std::nullopt;
      return makeBool(*equal == (op == BinaryOp::Equal));
    }
    if (a != nullptr && b != nullptr) return makeBool(compare(op, a->value, b->value));
    if (left.isNumber() && right.isNumber()) return makeBool(compare(op, numberOf(left), numberOf(right)));
    return std::nullopt;
  }
  const auto* p = left.as<BoolDatum>();
  const auto* q = right.as<BoolDatum>();
  if (p == nullptr || q == nullptr) return std::nullopt;
  return makeBool(op == BinaryOp::And ? p->value && q->value : p->value || q->value);
}

// x ** n with an integer literal: repeated multiplication by squaring, the same on every device and mesh.
Datum integerPower(const TensorDatum& x, std::int64_t exponent, SourceRange range, TensorOps& ops) {
  const bool negative = exponent < 0;
  std::uint64_t left = negative ? 0 - static_cast<std::uint64_t>(exponent) : static_cast<std::uint64_t>(exponent);
  std::optional<TensorDatum> result;
  TensorDatum power = x;
  while (left != 0) {
    if ((left & 1) != 0) {
      const Datum product = result ? ops.map("mul", {*result, power}, range) : Datum(power);
      if (product.isError()) return {};
      result = *product.as<TensorDatum>();
    }
    left >>= 1;
    if (left == 0) break;
    const Datum square = ops.map("mul", {power, power}, range);
    if (square.isError()) return {};
    power = *square.as<TensorDatum>();
  }
  if (!result) return ops.full(x.type.shape, makeInt(1), x.type.dtype, range);
  if (!negative) return *result;
  const std::optional<TensorDatum> one = ops.constant(makeInt(1), x.type.dtype, range);
  return one ? ops.map("div", {*one, *result}, range) : Datum{};
}

}  // namespace

namespace {

// Lists that were compared and found equal. Nested lists share parts: `s = [s, s]` sixty times over is small in memory
// and has more leaves than could ever be walked.
using ListPair = std::pair<const void*, const void*>;

std::optional<bool> equalParts(const Datum& left, const Datum& right, std::set<ListPair>& known) {
  if (left.is<NoneDatum>() || right.is<NoneDatum>()) return left.is<NoneDatum>() && right.is<NoneDatum>();
  if (const auto *a = left.as<IntDatum>(), *b = right.as<IntDatum>(); a != nullptr && b != nullptr)
    return a->value == b->value;
  if (left.isNumber() && right.isNumber()) return numberOf(left) == numberOf(right);
  if (const auto *a = left.as<BoolDatum>(), *b = right.as<BoolDatum>(); a != nullptr && b != nullptr)
    return a->value == b->value;
  if (const auto *a = left.as<StringDatum>(), *b = right.as<StringDatum>(); a != nullptr && b != nullptr)
    return a->value == b->value;
  if (const auto *a = left.as<DTypeDatum>(), *b = right.as<DTypeDatum>(); a != nullptr && b != nullptr)
    return a->value == b->value;
  if (const auto *a = left.as<AxisDatum>(), *b = right.as<AxisDatum>(); a != nullptr && b != nullptr)
    return a->axes == b->axes;
  const auto *a = left.as<ListDatum>(), *b = right.as<ListDatum>();
  if (a == nullptr || b == nullptr) return std::nullopt;
  if (a->items->size() != b->items->size()) return false;
  const ListPair pair = {a->items.get(), b->items.get()};
  if (known.contains(pair)) return true;
  for (std::size_t i = 0; i < a->items->size(); ++i) {
    const std::optional<bool> equal = equalParts((*a->items)[i], (*b->items)[i], known);
    if (!equal || !*equal) return equal;
  }
  known.insert(pair);
  return true;
}

}  // namespace

std::optional<bool> equalDatums(const Datum& left, const Datum& right) {
  std::set<ListPair> known;
  return equalParts(left, right, known);
}

Datum foldDivision(IntegerDivision kind, const Datum& left, const Datum& right, SourceRange range, DiagSink& sink) {
  const auto* a = left.as<IntDatum>();
  const auto* b = right.as<IntDatum>();
  if (a == nullptr || b == nullptr) {
    const double quotient = numberOf(left) / numberOf(right);
    return FloatDatum{kind == IntegerDivision::Floor ? std::floor(quotient) : std::ceil(quotient),
                      derived(rowsOf(left), rowsOf(right))};
  }
  if (b->value == 0) {
    sink.emit(range, diag::DivisionByZero, a->value);
    return {};
  }
  std::optional<std::int64_t> quotient = checkedFloorDiv(a->value, b->value);
  if (quotient && kind == IntegerDivision::Ceil && *quotient * b->value != a->value) ++*quotient;
  if (!quotient) {
    sink.emit(range, diag::NumberBeyond64Bits, std::string("/"), a->value, b->value);
    return {};
  }
  return IntDatum{*quotient, derived(a->rows, b->rows)};
}

Datum applyBinary(BinaryOp op, const Datum& left, const Datum& right, const OperandRanges& ranges, TensorOps* ops,
                  DiagSink& sink) {
  if (left.isError() || right.isError()) return {};
  if (!left.isTensorLike() && !right.isTensorLike()) {
    if (const std::optional<Datum> folded = foldBinary(op, left, right, ranges, sink)) return *folded;
  }
  const bool bothFit = (left.isTensorLike() || left.isNumber() || left.is<BoolDatum>()) &&
                       (right.isTensorLike() || right.isNumber() || right.is<BoolDatum>()) &&
                       (left.isTensorLike() || right.isTensorLike());
  if (!bothFit) {
    DiagBuilder builder = sink.emit(ranges.whole, diag::OperatorDoesNotFit, std::string(ast::spelling(op)),
                                    describe(left), describe(right));
    builder.label(ranges.left, kindOf(left)).label(ranges.right, kindOf(right));
    return {};
  }
  GSHARD_CHECK(ops != nullptr, "tensors exist only inside functions");
  const auto* x = left.as<TensorDatum>();
  const auto* exponent = right.as<IntDatum>();
  if (op == BinaryOp::Pow && x != nullptr && exponent != nullptr && exponent->rows == RowsUse::None) {
    if (x->type.dtype == DType::Bool || (isInteger(x->type.dtype) && exponent->value < 0)) {
      sink.emit(ranges.whole, diag::OperatorDoesNotFit, std::string("**"), describe(left), describe(right));
      return {};
    }
    return integerPower(*x, exponent->value, ranges.whole, *ops);
  }
  const bool logic = op == BinaryOp::And || op == BinaryOp::Or;
  for (const Datum* side : {&left, &right}) {
    const auto* tensor = side->as<TensorDatum>();
    if (!logic || tensor == nullptr || tensor->type.dtype == DType::Bool) continue;
    sink.emit(ranges.whole, diag::OperatorDoesNotFit, std::string(ast::spelling(op)), describe(left), describe(right))
        .help("compare first: `x != 0`");
    return {};
  }
  const std::string what = std::string("`") + ast::spelling(op) + "`";
  const std::optional<std::vector<TensorDatum>> operands =
      ops->unify({left, right}, {ranges.left, ranges.right}, what, ranges.whole);
  if (!operands) return {};
  const DType dtype = operands->front().type.dtype;
  const bool equality = op == BinaryOp::Equal || op == BinaryOp::NotEqual;
  if (logic != (dtype == DType::Bool) && !(equality && dtype == DType::Bool)) {
    sink.emit(ranges.whole, diag::OperatorDoesNotFit, std::string(ast::spelling(op)), describe(left), describe(right))
        .help("`cast` to a number type first");
    return {};
  }
  if (op == BinaryOp::Div && !isFloat(dtype)) {
    sink.emit(ranges.whole, diag::IntegerDivision, std::string(dtypeName(dtype)))
        .help("`floordiv(a, b)` rounds down; or `cast` both to a float type");
    return {};
  }
  if (op == BinaryOp::Pow && !isFloat(dtype)) {
    sink.emit(ranges.whole, diag::OperatorDoesNotFit, std::string("**"), describe(left), describe(right))
        .help("integers take a whole number written in the program as exponent");
    return {};
  }
  return ops->map(scalarFunction(op), *operands, ranges.whole);
}

Datum applyUnary(ast::UnaryOp op, const Datum& operand, SourceRange operandRange, SourceRange range, TensorOps* ops,
                 DiagSink& sink) {
  if (operand.isError()) return {};
  const bool isNot = op == ast::UnaryOp::Not;
  if (!isNot) {
    if (const auto* i = operand.as<IntDatum>()) {
      const std::optional<std::int64_t> result = checkedSub(0, i->value);
      if (result) return IntDatum{*result, derived(i->rows, i->rows)};
      sink.emit(range, diag::NumberBeyond64Bits, std::string("-"), std::int64_t{0}, i->value);
      return {};
    }
    if (const auto* f = operand.as<FloatDatum>()) return FloatDatum{-f->value, derived(f->rows, f->rows)};
  } else if (const auto* b = operand.as<BoolDatum>()) {
    return makeBool(!b->value);
  }
  if (const auto* choice = operand.as<ChoiceDatum>(); choice != nullptr && !isNot) {
    const Datum yes = applyUnary(op, *choice->yes, operandRange, range, ops, sink);
    const Datum no = applyUnary(op, *choice->no, operandRange, range, ops, sink);
    return ChoiceDatum{choice->condition, std::make_shared<const Datum>(yes), std::make_shared<const Datum>(no)};
  }
  const auto* tensor = operand.as<TensorDatum>();
  if (tensor != nullptr && isNot == (tensor->type.dtype == DType::Bool)) {
    return ops->map(isNot ? "not" : "neg", {*tensor}, range);
  }
  sink.emit(range, diag::UnaryDoesNotFit, std::string(ast::spelling(op)), describe(operand))
      .label(operandRange, kindOf(operand));
  return {};
}

}  // namespace gshard::sema
