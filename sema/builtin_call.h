// BuiltinCall: one call of a builtin, with its arguments taken out by name and checked. A builder function asks for
// what it needs, then looks at failed() once; every getter has reported by then.
#pragma once

#include <functional>

#include "sema/arguments.h"
#include "sema/tensor_ops.h"

namespace gshard::sema {

class BuiltinCall;

struct BuiltinRow {
  std::string_view name;
  std::string_view signature;
  Datum (*build)(BuiltinCall&);
};

// The row of a name, or null. Rows stand in builtins.def.
const BuiltinRow* findBuiltin(std::string_view name);
std::vector<std::string> builtinNames();
const Signature& signatureOf(const BuiltinRow& row);

// What a builtin needs of the interpreter.
struct BuiltinContext {
  TensorOps* ops = nullptr;  // null outside functions
  DiagSink* sink = nullptr;
  std::optional<Type> declared;  // of the tensor being initialised: gives `shape` and `dtype`
  DType real = DType::F32;
  std::function<std::int64_t(SourceRange)> nextSite;  // of a random call
};

class BuiltinCall {
 public:
  BuiltinCall(const BuiltinRow& row, BuiltinContext& context, std::vector<CallArgument> arguments,
              std::vector<std::vector<std::size_t>> bound, SourceRange range)
      : row_(&row), context_(&context), arguments_(std::move(arguments)), bound_(std::move(bound)), range_(range) {}

  std::string_view name() const { return row_->name; }
  SourceRange range() const { return range_; }
  DiagSink& sink() { return *context_->sink; }
  BuiltinContext& context() { return *context_; }
  bool failed() const { return failed_; }
  void fail() { failed_ = true; }
  // Emitting is possible; reports where it is not (outside functions).
  bool canEmit();
  TensorOps& ops() { return *context_->ops; }

  bool given(std::string_view parameter) const;
  SourceRange range(std::string_view parameter) const;  // of the argument, or of the call
  const Datum& datum(std::string_view parameter);       // NoneDatum when left out
  // All arguments of a variadic parameter.
  std::vector<Datum> data(std::string_view parameter, std::vector<SourceRange>& ranges);

  TensorDatum tensor(std::string_view parameter);
  std::vector<TensorDatum> tensors(std::string_view parameter);  // a list, at least one
  std::int64_t integer(std::string_view parameter, std::int64_t fallback = 0);
  bool boolean(std::string_view parameter, bool fallback);
  double number(std::string_view parameter, double fallback);
  DType dtype(std::string_view parameter, DType fallback);
  std::vector<std::int64_t> integers(std::string_view parameter);  // a list, or one int
  std::string text(std::string_view parameter);
  // An axis of a tensor of this type, counted from the end when negative.
  std::int64_t axis(std::string_view parameter, const Type& of, std::int64_t fallback);
  std::vector<std::int64_t> axes(std::string_view parameter, const Type& of);  // none: all; sorted
  // `shape` and `dtype`, which an initialiser takes from the declared type.
  std::vector<std::int64_t> shapeArgument();
  DType dtypeArgument();

  // Reports that an argument is not what it would have to be, and fails.
  void mismatch(std::string_view parameter, std::string_view wanted);

 private:
  std::size_t indexOf(std::string_view parameter) const;

  const BuiltinRow* row_;
  BuiltinContext* context_;
  std::vector<CallArgument> arguments_;
  std::vector<std::vector<std::size_t>> bound_;
  SourceRange range_;
  bool failed_ = false;
};

}  // namespace gshard::sema
