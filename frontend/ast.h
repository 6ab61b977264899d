// The AST: what was written, as plain data. Nodes do not check, print or resolve themselves; names are unresolved text.
// Every node has the range it was written in, every identifier its own (`Name`). Expressions, statements, types and
// declarations are each one struct with a `std::variant`, so a visit that forgets a kind does not compile. Over 400
// lines because it is the one list of all nodes, a third of it comments.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "support/source.h"

namespace gshard::ast {

struct Expr;
struct Type;
struct Stmt;
struct Annotation;
using ExprPtr = std::unique_ptr<Expr>;
using TypePtr = std::unique_ptr<Type>;
using StmtPtr = std::unique_ptr<Stmt>;

/// An identifier where it stands. Names with an unknown range and empty text are absent.
struct Name {
  std::string text;
  SourceRange range;
  bool present() const { return !text.empty(); }
};

/// `optim.adam`: at least one part.
struct DottedName {
  std::vector<Name> parts;
  SourceRange range;
};

// ---- expressions

/// What could not be parsed; already reported. Sema gives it the error type and stays silent.
struct ErrorExpr {};
struct IntLiteral {
  std::int64_t value = 0;
};
struct FloatLiteral {
  double value = 0;
};
struct BoolLiteral {
  bool value = false;
};
struct StringLiteral {
  std::string value;
};  // escapes resolved
struct NoneLiteral {};
struct NameRef {
  std::string name;
};  // range: that of the expression

/// `route.aux_loss`, `nn.cross_entropy`, `net.embed`: modules, records and sub-models look alike.
struct Member {
  ExprPtr object;
  Name name;
};

/// `x` or `axis: 1`. Positional ones come first (checked by the parser).
struct Argument {
  Name name;  // absent: positional
  ExprPtr value;
  SourceRange range;
};

/// `f(x, axis: 1)`; the callee may be any postfix expression, as `blocks[i](x)`.
struct Call {
  ExprPtr callee;
  std::vector<Argument> arguments;
};

/// One item between the brackets of an index: `i`, `none` (a NoneLiteral), or a slice `low:high:step` of which each
/// part may be null.
struct IndexItem {
  bool isSlice = false;
  ExprPtr index;  // when not a slice
  ExprPtr low, high, step;
  SourceRange range;
};

/// `x[1:, ::2, none, i]`, also the indexing of compile-time lists.
struct Index {
  ExprPtr object;
  std::vector<IndexItem> items;  // at least one
};

enum class UnaryOp { Negate, Not };
struct Unary {
  UnaryOp op = UnaryOp::Negate;
  SourceRange opRange;
  ExprPtr operand;
};

enum class BinaryOp { Add, Sub, Mul, Div, Mod, Pow, Equal, NotEqual, Less, LessEqual, Greater, GreaterEqual, And, Or };
struct Binary {
  BinaryOp op = BinaryOp::Add;
  SourceRange opRange;
  ExprPtr left, right;
};

/// `low..high`, compile-time, high excluded.
struct RangeExpr {
  ExprPtr low, high;
};

/// `[a, b]`
struct ListExpr {
  std::vector<ExprPtr> elements;
};

/// `[element for variable in source]`
struct Comprehension {
  ExprPtr element;
  Name variable;
  ExprPtr source;
};

/// `(a, b)`: two or more elements. A parenthesised expression is no node; its range includes the parentheses.
struct TupleExpr {
  std::vector<ExprPtr> elements;
};

/// `if c { a } else if d { b } else { e }`
struct IfExpr {
  struct Arm {
    ExprPtr condition;
    ExprPtr value;
  };
  std::vector<Arm> arms;  // at least one
  ExprPtr otherwise;      // never null
};

/// `a + b @split(0, data) @open`: annotations of the whole expression before them.
struct AnnotatedExpr {
  ExprPtr operand;
  std::vector<Annotation> annotations;  // at least one
};

struct Expr {
  using Node =
      std::variant<ErrorExpr, IntLiteral, FloatLiteral, BoolLiteral, StringLiteral, NoneLiteral, NameRef, Member, Call,
                   Index, Unary, Binary, RangeExpr, ListExpr, Comprehension, TupleExpr, IfExpr, AnnotatedExpr>;
  SourceRange range;
  Node node;
};

// ---- annotations

/// `@split(dim, n)`, `@split(dim, a, b)`. `dim` is a NameRef (the dim so written in the type before) or an integer
/// expression; each part is a NameRef (an axis, `devices`, or a compile-time integer of that name) or an integer
/// expression.
struct SplitAnnotation {
  ExprPtr dim;
  std::vector<ExprPtr> parts;  // at least one
};

/// `@replicate`
struct ReplicateAnnotation {};

/// `@shard([a, _, (b, c)])`: all dims at once.
struct ShardAnnotation {
  struct Dim {
    std::vector<Name> axes;  // major first; empty for `_`
    SourceRange range;
  };
  std::vector<Dim> dims;
};

/// `@shard(tiles: [2, 2], devices: [0, 2, 1, 3], copies: 1)`
struct DeviceListAnnotation {
  ExprPtr tiles;
  ExprPtr devices;
  ExprPtr copies;  // null: 1
};

/// `@open`, `@stored`: after a split
struct OpenAnnotation {};
struct StoredAnnotation {};

/// `@partial(axis, …)`: results of manual functions
struct PartialAnnotation {
  std::vector<Name> axes;  // at least one
};

/// `@remat`
struct RematAnnotation {};

/// One `@name(...)`; the range starts at the `@`.
struct Annotation {
  using Node = std::variant<SplitAnnotation, ReplicateAnnotation, ShardAnnotation, DeviceListAnnotation, OpenAnnotation,
                            StoredAnnotation, PartialAnnotation, RematAnnotation>;
  SourceRange range;
  Node node;
};

// ---- types

/// One dim of a shape: an expression, or `...S` (any number of dims; `spread` is then present and `size` null).
struct Dim {
  ExprPtr size;
  Name spread;
  SourceRange range;
};

/// `f32[B, 4*H]`, `f32[]`, `real`, `T[...S]`, `int`, `string`, `dtype`, `axis`: a name with or without a shape. Whether
/// a bare name is a run-time scalar or a compile-time type is sema's to say.
struct NamedType {
  Name name;
  bool hasShape = false;  // `f32[]` has one, `f32` has none
  std::vector<Dim> dims;
};

/// `(T, U)`: two or more
struct TupleType {
  std::vector<TypePtr> elements;
};

/// `[int]`
struct ListType {
  TypePtr element;
};

/// What could not be parsed; already reported.
struct ErrorType {};

/// A type and the annotations written after it (also inside a tuple: `(f32[B] @split(0, data), f32)`).
struct Type {
  using Node = std::variant<NamedType, TupleType, ListType, ErrorType>;
  SourceRange range;  // without the annotations
  Node node;
  std::vector<Annotation> annotations;
};

// ---- declarations and statements

struct Block {
  std::vector<StmtPtr> statements;
  SourceRange range;  // with the braces
};

/// `x: f32[B, 64] @split(0, data) = default`, of functions, models and optimizers.
struct Parameter {
  Name name;
  TypePtr type;
  ExprPtr defaultValue;  // null: none
  SourceRange range;
};

/// One entry of a `[T: dtype, ...S, B]` list.
struct Generic {
  enum class Kind { Dtype, Dims, Dim };
  Kind kind = Kind::Dim;
  Name name;
  SourceRange range;
};

/// `fn f[B](x: f32[B]) -> f32 manual over data { … }`, also as a member of a model and as `entry fn`.
struct FnDecl {
  bool isEntry = false;
  Name name;
  std::vector<Generic> generics;
  std::vector<Parameter> parameters;
  TypePtr result;                // null: left out
  std::vector<Name> manualOver;  // axes; empty: not manual
  Block body;
  std::string doc;  // text of the `///` lines before it, without the slashes
};

/// `let x = e`, `let (a, b) = e`, `let x: T = e`; top level, model member or statement.
struct Let {
  std::vector<Name> names;  // one, or two and more when `isTuple`; `_` throws away
  bool isTuple = false;
  TypePtr type;  // null: inferred
  ExprPtr value;
  std::string doc;
};

/// `param w: f32[M, N] @split(0, data) = glorot_uniform()`; model member.
struct ParamDecl {
  Name name;
  TypePtr type;
  ExprPtr init;
  std::string doc;
};

/// `state m: T = init`, `state m = zeros_like(w)`; model member or statement.
struct StateDecl {
  Name name;
  TypePtr type;  // null: that of the initialiser
  ExprPtr init;
  std::string doc;
};

/// `name = e`
struct Assign {
  Name name;
  ExprPtr value;
};

/// `report name = e`
struct Report {
  Name name;
  ExprPtr value;
};

/// `return e`
struct Return {
  ExprPtr value;
};

/// `for i in source { … }`: compile-time, unrolled; also around model members.
struct For {
  Name variable;
  ExprPtr source;
  Block body;
};

/// `loop t in low..high { … }`: at run time.
struct Loop {
  Name variable;
  ExprPtr low, high;
  Block body;
};

/// `if c { … } else if d { … } else { … }`: compile-time; also around model members.
struct If {
  struct Arm {
    ExprPtr condition;
    Block body;
  };
  std::vector<Arm> arms;  // at least one
  std::optional<Block> otherwise;
};

/// A statement, or a member of a model (then one of Let, ParamDecl, StateDecl, FnDecl, For, If).
struct Stmt {
  using Node = std::variant<Let, ParamDecl, StateDecl, FnDecl, Assign, Report, Return, For, Loop, If>;
  SourceRange range;
  Node node;
};

/// `import nn`, `import models.mlp`
struct ImportDecl {
  DottedName path;
};

/// `const hidden: int = 256`
struct ConstDecl {
  Name name;
  TypePtr type;  // null: inferred
  ExprPtr value;
  std::string doc;
};

/// `mesh [data: 2, model: 2]`
struct MeshDecl {
  struct Axis {
    Name name;
    ExprPtr size;
  };
  std::vector<Axis> axes;
};

/// `model Mlp(inputs: int) { members }`
struct ModelDecl {
  Name name;
  std::vector<Parameter> parameters;
  Block body;
  std::string doc;
};

/// `optimizer sgd(lr: wide) for (w, g) { … }`
struct OptimizerDecl {
  Name name;
  std::vector<Parameter> parameters;
  Name weight;
  Name gradient;
  Block body;
  std::string doc;
};

/// One segment of a path pattern.
struct PatternSegment {
  enum class Kind { Name, Index, Star, DoubleStar };
  Kind kind = Kind::Name;
  std::string name;        // of a Name
  std::int64_t index = 0;  // of an Index
  SourceRange range;
};

/// `net.**.adam.*`
struct PathPattern {
  std::vector<PatternSegment> segments;  // at least one
  SourceRange range;
};

/// `train f with opt(…) for enc.** with opt2(…) for head.* { clip_norm: 1.0, microbatches: 4 }`
struct TrainDecl {
  struct Optimizer {
    DottedName name;
    std::vector<Argument> arguments;
    std::vector<PathPattern> patterns;  // empty: every parameter
    SourceRange range;
  };
  struct Option {
    Name name;
    ExprPtr value;
  };
  DottedName function;
  std::vector<Optimizer> optimizers;  // at least one
  std::vector<Option> options;
};

/// `shard net.**.adam.*, head.w @split(0, data) @open`
struct ShardDecl {
  std::vector<PathPattern> patterns;    // at least one
  std::vector<Annotation> annotations;  // at least one
};

struct Decl {
  using Node =
      std::variant<ImportDecl, ConstDecl, MeshDecl, FnDecl, ModelDecl, OptimizerDecl, Let, TrainDecl, ShardDecl>;
  SourceRange range;
  Node node;
};

/// A parsed file; declarations in the order written. After errors it holds what could be recovered.
struct File {
  FileId id;
  std::vector<Decl> decls;
};

// ---- small helpers

template <class T, class N>
const T* as(const N& node) {
  return std::get_if<T>(&node.node);
}

template <class T, class N>
bool is(const N& node) {
  return std::holds_alternative<T>(node.node);
}

/// "+", "<=", "and" …
const char* spelling(BinaryOp op);
const char* spelling(UnaryOp op);
bool isComparison(BinaryOp op);

}  // namespace gshard::ast
