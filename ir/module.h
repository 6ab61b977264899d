// Module, functions, ops and values: plain data. Passes read a function and build its next op list; values are
// append-only, so a ValueId stays meaningful across passes. There are no use lists: ask useCounts or usersOf.
//
// SPMD form: a value keeps its GLOBAL type and says by its sharding which tile each device holds. Ops keep their global
// meaning too; a collective is an identity on the global value that changes the sharding. Local shapes, offsets and
// live sizes follow from type, sharding and mesh (ir/mesh.h), so no op attribute ever changes when a program is
// partitioned.
#pragma once

#include "ir/attribute.h"
#include "ir/op_kind.h"

namespace gshard {

struct ValueId {
  std::uint32_t index = UINT32_MAX;
  bool known() const { return index != UINT32_MAX; }
  friend bool operator==(const ValueId&, const ValueId&) = default;
  friend auto operator<=>(const ValueId&, const ValueId&) = default;
};

struct Value {
  Type type;
  std::optional<Sharding> sharding;  // absent before propagation
  std::int64_t rowDim = -1;          // the dim whose live size is set at run time (split-rows), or -1
  std::string name;                  // readable, need not be unique: "h", "matmul"
  SourceRange range;                 // the expression that it came from
  std::vector<SplitOrigin> origins;  // one per (dim, axis); not part of the text form
};

enum class Phase : std::uint8_t { Forward, Backward, Update };
std::string_view phaseName(Phase phase);

struct Op {
  OpKind kind;
  std::vector<ValueId> operands;
  std::vector<ValueId> results;
  Attributes attributes;
  SourceRange range;
  Phase phase = Phase::Forward;
  std::string reason;  // collectives: why it is there, for the plan; not part of the text form
};

enum class ArgumentKind : std::uint8_t { Input, Parameter, State, Step, Steps, Setting, Accumulator };
struct Argument {
  ArgumentKind kind = ArgumentKind::Input;
  std::string name;         // input name; parameter, state or setting path
  std::int64_t index = -1;  // into Module::parameters/states/settings; accumulator number
  ValueId value;
  std::optional<Annotation> annotation;  // inputs: what the source says
};

enum class ResultKind : std::uint8_t { Output, Report, Parameter, State, Accumulator };
struct Result {
  ResultKind kind = ResultKind::Output;
  std::string name;         // "result", "result.0", report path; parameter or state path
  std::int64_t index = -1;  // into Module::parameters/states; accumulator number
  ValueId value;
  Reduction reduction = Reduction::Sum;  // accumulators: how the blocks of rows are joined
  SourceRange range;
};

enum class FunctionKind : std::uint8_t { Init, Train, Eval, Entry };  // Eval: the trained entry without update
enum class Stage : std::uint8_t { Whole, Accumulate, Finish };        // split-rows cuts a function in two

struct Function {
  std::string name;  // "loss", "predict", "init"; stages: "loss.accumulate", "loss.finish"
  FunctionKind kind = FunctionKind::Entry;
  Stage stage = Stage::Whole;
  std::int64_t rows = 0;       // rows of one block: the row dim of its row inputs; 0 if it has none
  std::int64_t blocks = 1;     // Accumulate of a train function: microbatches; 0: as many as the data has
  std::int64_t totalRows = 0;  // what dim_size of the row dim gives; 0: known at run time
  std::vector<Argument> arguments;
  std::vector<Result> results;
  std::vector<Value> values;
  std::vector<Op> ops;  // in SSA order
  SourceRange range;
  std::string doc;

  Value& value(ValueId id) { return values[id.index]; }
  const Value& value(ValueId id) const { return values[id.index]; }
  const Type& type(ValueId id) const { return values[id.index].type; }
  ValueId addValue(Value value);
};

struct Parameter {
  std::string name;  // "net.w1"
  Type type;
  std::optional<Annotation> annotation;
  std::optional<Sharding> sharding;  // after propagation; one per module
  bool trained = false;
  SourceRange range;
  std::string doc;
};

struct State {
  std::string name;  // "net.w1.adam.m"
  Type type;
  std::optional<Annotation> annotation;
  std::optional<Sharding> sharding;
  std::int64_t parameter = -1;  // optimizer states: whose
  SourceRange range;
};

struct Setting {  // a constant that shapes nothing and may be set at run time (--set)
  std::string name;
  DType dtype = DType::F32;
  double value = 0;
  std::string doc;
};

struct Constant {  // for info and --help
  std::string name;
  std::string type;
  std::string value;
  std::string doc;
};

struct Module {
  std::string name;  // stem of the source file
  Mesh mesh;
  bool meshDeclared = false;
  std::vector<Parameter> parameters;
  std::vector<State> states;
  std::vector<Setting> settings;
  std::vector<Constant> constants;
  std::vector<Function> functions;

  Function* find(std::string_view name);
  const Function* find(std::string_view name) const;
};

// Does a block of rows have a live size that is known at run time only? (Elsewhere rowDim says what is fed by rows.)
bool rowsVary(const Function& function);

// Number of uses of every value by ops and results.
std::vector<std::int64_t> useCounts(const Function& function);
// Per value, the indices of the ops that read it, in order.
std::vector<std::vector<std::int64_t>> usersOf(const Function& function);
// Per value, the index of the op that defines it, or -1.
std::vector<std::int64_t> definitionsOf(const Function& function);
void replaceUses(Function& function, ValueId from, ValueId to);
// Drops ops none of whose results are used (they have no effects); keeps order.
void eraseUnused(Function& function);

// Read access to an op together with its function: what the rules of the op table get.
class OpView {
 public:
  OpView(const Module& module, const Function& function, const Op& op)
      : module_(&module), function_(&function), op_(&op) {}

  const Op& op() const { return *op_; }
  const Module& module() const { return *module_; }
  const Function& function() const { return *function_; }
  const Mesh& mesh() const { return module_->mesh; }
  SourceRange range() const { return op_->range; }
  SourceRange operandRange(std::size_t i) const { return function_->value(op_->operands[i]).range; }
  std::size_t operandCount() const { return op_->operands.size(); }
  const Type& operandType(std::size_t i) const { return function_->type(op_->operands[i]); }
  const Type& resultType(std::size_t i = 0) const { return function_->type(op_->results[i]); }
  bool hasAttr(std::string_view name) const;
  std::int64_t intAttr(std::string_view name) const;  // a missing or mistyped attribute is an InternalError
  double floatAttr(std::string_view name) const;
  bool boolAttr(std::string_view name) const;  // false when absent
  const std::string& stringAttr(std::string_view name) const;
  const std::vector<std::int64_t>& intsAttr(std::string_view name) const;
  const std::vector<AxisRef>& axesAttr(std::string_view name) const;
  DType dtypeAttr(std::string_view name) const;
  const Literal& literalAttr(std::string_view name) const;
  const Annotation& annotationAttr(std::string_view name) const;

 private:
  const Module* module_;
  const Function* function_;
  const Op* op_;
};

}  // namespace gshard
