// Datum: what an expression of the language is while elaborating: a compile-time value, a tensor of the function being
// built, or a thing that can be called. One variant, so that every place that takes one apart names all kinds it knows.
#pragma once

#include <memory>
#include <string>
#include <variant>
#include <vector>

#include "frontend/ast.h"
#include "ir/module.h"

namespace gshard::sema {

struct Datum;
struct Instance;
struct FileUnit;
struct BuiltinRow;

// Does a number depend on how many rows a block has? In a function whose rows are set at run time such a number sizes
// shapes, but must not become a value of the program: the last block is shorter.
enum class RowsUse : std::uint8_t { None, Exact, Derived };
RowsUse derived(RowsUse a, RowsUse b);

struct ErrorDatum {};  // already reported; silent from here on
struct NoneDatum {};
struct IntDatum {
  std::int64_t value = 0;
  RowsUse rows = RowsUse::None;
};
struct FloatDatum {
  double value = 0;
  RowsUse rows = RowsUse::None;
};
struct BoolDatum {
  bool value = false;
};
struct StringDatum {
  std::string value;
};
struct DTypeDatum {
  DType value = DType::F32;
};
struct AxisDatum {
  std::string name;
  std::vector<AxisRef> axes;
};  // `devices`: all axes; as a number, their product
struct RangeDatum {
  std::int64_t low = 0, high = 0;
};  // high excluded
struct ListDatum {
  std::shared_ptr<const std::vector<Datum>> items;
};
struct TupleDatum {
  std::shared_ptr<const std::vector<Datum>> items;
};

// What a builtin gives that has several parts, read by name: a route. `kind` is what messages call it.
struct RecordDatum {
  std::string kind;
  std::shared_ptr<const std::vector<std::pair<std::string, Datum>>> fields;
};

// How the source writes a tensor's shape: for messages ("dim 0 is `hidden` = 256") and for dim names in annotations.
struct Written {
  std::vector<std::string> dims;  // source text per dim
  SourceRange range;              // of the type
};
struct TensorDatum {
  ValueId id;
  Type type;
  std::shared_ptr<const Written> written;  // may be null
};
// `where(c, 1, 0)`: takes its dtype from its use.
struct ChoiceDatum {
  std::shared_ptr<const TensorDatum> condition;
  std::shared_ptr<const Datum> yes, no;  // numbers
};
struct ParameterDatum {
  std::int64_t index = 0;
};  // into Module::parameters; read where it is used
struct StateDatum {
  std::int64_t index = 0;
};
struct InstanceDatum {
  std::shared_ptr<Instance> instance;
};
struct UnitDatum {
  const FileUnit* unit = nullptr;
};  // an imported file
struct SettingDatum {
  std::int64_t index = 0;
};  // into Module::settings

struct FunctionRef {
  const ast::FnDecl* decl = nullptr;
  const FileUnit* unit = nullptr;
  std::shared_ptr<Instance> instance;
};
struct ModelRef {
  const ast::ModelDecl* decl = nullptr;
  const FileUnit* unit = nullptr;
};
struct OptimizerRef {
  const ast::OptimizerDecl* decl = nullptr;
  const FileUnit* unit = nullptr;
};
struct BuiltinRef {
  const BuiltinRow* row = nullptr;
};
// `step`, `steps`: run-time scalars of the function being built.
enum class Given : std::uint8_t { Step, Steps };

struct Datum {
  using Node =
      std::variant<ErrorDatum, NoneDatum, IntDatum, FloatDatum, BoolDatum, StringDatum, DTypeDatum, AxisDatum,
                   RangeDatum, ListDatum, TupleDatum, RecordDatum, TensorDatum, ChoiceDatum, ParameterDatum, StateDatum,
                   InstanceDatum, UnitDatum, SettingDatum, FunctionRef, ModelRef, OptimizerRef, BuiltinRef, Given>;
  Node node;

  Datum() = default;  // an error
  template <class T>
    requires std::is_constructible_v<Node, T&&>
  Datum(T&& value) : node(std::forward<T>(value)) {}

  template <class T>
  const T* as() const {
    return std::get_if<T>(&node);
  }
  template <class T>
  bool is() const {
    return std::holds_alternative<T>(node);
  }
  bool isError() const { return is<ErrorDatum>(); }
  bool isNumber() const { return is<IntDatum>() || is<FloatDatum>(); }
  // Has the value of a tensor, or can become one when its dtype is known.
  bool isTensorLike() const { return is<TensorDatum>() || is<ChoiceDatum>(); }
};

Datum makeInt(std::int64_t value);
Datum makeFloat(double value);
Datum makeBool(bool value);
Datum makeList(std::vector<Datum> items);
Datum makeTuple(std::vector<Datum> items);
Datum makeInts(const std::vector<std::int64_t>& values);
double numberOf(const Datum& number);  // of an IntDatum or FloatDatum

// "`f32[64, 10]`", "`3`", "a list", "model `net`": for messages, in words of the language.
std::string describe(const Datum& datum);
// As -D, info and messages show a compile-time value: "256", "0.5", "f32", "[1, 2]".
std::string printDatum(const Datum& datum);
// What kind of thing: "int", "float", "tensor", "function" …
std::string kindOf(const Datum& datum);

}  // namespace gshard::sema
