// OpDef: everything the compiler knows of an op, defined once in ops/<op>.cpp. Rules are closed variants without
// defaults, so a missing rule does not compile and a new kind of rule breaks every place that has not thought about it.
#pragma once

#include <concepts>
#include <span>
#include <utility>

#include "ir/factors.h"
#include "ir/module.h"
#include "support/diagnostics.h"

namespace gshard {

class EvalFrame;
class GradBuilder;
class Builder;

template <class T>
class Required {
 public:
  template <std::convertible_to<T> U>
  constexpr Required(U&& value) : value_(std::forward<U>(value)) {}
  constexpr const T& operator*() const { return value_; }
  constexpr const T* operator->() const { return &value_; }

 private:
  T value_;
};

// ---- examples: feed the conformance suite. Values are literal (`given`, `expected`, as nested lists, one per operand
// or result, separated by `;`) or drawn from a range.
struct ValueRange {
  double low = 0, high = 0;
};
struct Example {
  std::string_view args;  // "%x: f32[2, 3], %i: i32[4]"
  std::string_view ir;    // "%y = cumsum %x {axis = 1} : f32[2, 3]"
  std::string_view given = {};
  std::string_view expected = {};
  ValueRange values = {};
  double tolerance = 0;         // relative, for compiled = evaluator and split = unsplit; 0: same bits
  bool differentiable = false;  // check the gradient by finite differences in f64
};

// ---- operands and attributes: what the parser and the verifier check before infer sees an op.
struct OperandSpec {
  std::string_view names;   // "x, index"; for the op reference
  int least = 1, most = 1;  // most -1: any number
};
// In the order of the alternatives of Attribute.
enum class AttrKind : std::uint8_t { Int, Float, Bool, String, Ints, DTypeName, Axes, AnnotationText, Numbers };
enum class AttrPlace : std::uint8_t {
  Braces,       // {axis = 1}
  OpName,       // map's fn: `add %a, %b`
  Word,         // reduce's fn: `reduce sum %x`
  Text,         // contract's spec: `contract "bi,ih->bh" %x, %w`
  ResultShape,  // the shape of the result type says it: not written in braces
  ResultDType,
};
struct AttrSpec {
  std::string_view name;
  AttrKind kind;
  bool optional = false;
  AttrPlace place = AttrPlace::Braces;
};

// ---- infer: result types from operand types and attributes. Diagnoses (E03xx) and returns nothing on a user's
// mistake.
using ResultTypes = std::vector<Type>;
using InferFn = std::optional<ResultTypes> (*)(const OpView&, DiagSink&);

// ---- factors: letters of dims (ir/factors.h).
using FactorsFn = void (*)(const OpView&, FactorBuilder&);

// ---- linearity: which operands may be partial, asked for each mesh axis separately (style.md section 2).
using OperandMask = std::uint32_t;  // bit i: operand i
constexpr OperandMask allOperands = ~OperandMask{0};
using ReductionSet = std::uint32_t;  // bit r: Reduction r
constexpr ReductionSet only(Reduction r) {
  return ReductionSet{1} << static_cast<unsigned>(r);
}
constexpr ReductionSet anyReduction = 0x3f;
struct NotLinear {};
struct Joint {  // all operands in `which` partial with one reduction of `over`, or none
  Required<ReductionSet> over;
  Required<OperandMask> which;
};
struct Separate {  // exactly one operand in `which` partial (sum), the others whole along the axis
  Required<OperandMask> which;
};
struct LinearityFn {  // map, reduce, pad, collectives: depends on attributes
  std::variant<NotLinear, Joint, Separate> (*fn)(const OpView&);
};
using Linearity = std::variant<NotLinear, Joint, Separate, LinearityFn>;

// ---- tails: what an op does with what lies beyond the live end of an uneven part of an operand.
struct TailsIgnored {};  // loops run to the live ends only, or the tail lands in the result's tail
struct TailsMasked {     // a letter that is reduced runs to its live end only
  Required<std::string_view> why;
};
using TailRule = std::variant<TailsIgnored, TailsMasked>;

// ---- gradient
using VjpFn = void (*)(const OpView&, std::span<const ValueId> resultGradients, GradBuilder&);
struct Vjp {
  Required<VjpFn> fn;
};
struct NotDifferentiable {  // no gradient flows to any operand; reason is shown where one is asked for
  Required<std::string_view> reason;
};
using GradientRule = std::variant<Vjp, NotDifferentiable>;

// ---- localize: what a device needs beyond its tiles to run the op on them.
struct SameOp {};     // nothing: the op on the tiles is the tile of the op
struct UsesOffsets {  // global offsets of its tiles (iota, random, a split table in take)
  Required<std::string_view> why;
};
// SPMD ops: they alone change shardings, so they say themselves which ones fit; nothing else is checked of them.
using TileCheckFn = std::optional<std::string> (*)(const OpView&);
enum class TileWork : std::uint8_t {
  Local,         // from the device's own tiles
  Redistribute,  // the same global value in other tiles, pending reductions finished on the way
  Whole,         // exchange: a move of the global value, each device fetches its result tile
};
struct OwnTiles {
  Required<TileCheckFn> check;
  Required<TileWork> work;
};
using LocalizeRule = std::variant<SameOp, UsesOffsets, OwnTiles>;

// ---- evaluate: on Eigen arrays, global programs and tiles of SPMD programs alike (ir/evaluator.h).
using EvalFn = void (*)(const OpView&, EvalFrame&);

// ---- move: index maps of moves, one per result dim, for evaluator, exchange, fusion and codegen. A move may have
// several pieces per operand, each with a map of its own that covers other result indices (roll: what stays in line and
// what comes round).
struct MoveDim {                 // result index r reads operand index (scale * r + offset) / divide
  std::int64_t operandDim = -1;  // -1: the operand has no such dim (broadcast)
  std::int64_t scale = 1;        // operand index = scale * r + offset; negative scale: reverse
  std::int64_t offset = 0;
  std::int64_t divide = 1;  // pad interior: only where (scale * r + offset) % divide == 0, then divided
};
using MoveMapFn = std::vector<MoveDim> (*)(const OpView&, std::size_t operand, std::size_t piece);

// ---- lower: the kind of code that codegen makes of it. Codegen dispatches on this and never on the op.
struct LowerMap {};  // scalar function over broadcast index maps
struct LowerContract {};
struct LowerReduce {};
struct LowerArgReduce {};   // argmax, argmin and their per-part candidates
struct LowerScan {};        // cumsum, and its parts
struct LowerSort {};        // a kernel of the runtime, row by row: sort argsort top_k
struct LowerMove {          // an index map per dim: transpose broadcast slice pad concat reverse roll
  MoveMapFn map = nullptr;  // null: reshape, which keeps the flat index
  std::size_t pieces = 1;   // per operand
};
struct LowerAlias {};        // the same bytes: annotate, stop_gradient, reshape on equal tiles
struct LowerGenerate {};     // iota, constant, random, dim_size: from indices alone
struct LowerGather {};       // take
struct LowerScatter {};      // scatter_add
struct LowerWindowRead {};   // dynamic_slice: a window whose start is known at run time
struct LowerWindowWrite {};  // dynamic_update
struct LowerDispatch {};     // moe_dispatch: rows of tokens by slot
struct LowerGatherSlots {};  // moe_gather: rows of slots by choice
struct LowerCombine {};      // moe_combine: a weighted sum of those
struct LowerRoute {};        // a kernel of the runtime, group by group
struct LowerCollective {};   // a step of the runtime
struct LowerLocalCopy {};    // all_slice, make_partial: copy of a part, no communication
using LowerRule =
    std::variant<LowerMap, LowerContract, LowerReduce, LowerArgReduce, LowerScan, LowerSort, LowerMove, LowerAlias,
                 LowerGenerate, LowerGather, LowerScatter, LowerWindowRead, LowerWindowWrite, LowerDispatch,
                 LowerGatherSlots, LowerCombine, LowerRoute, LowerCollective, LowerLocalCopy>;

struct OpDef {
  Required<std::string_view> name, doc;
  Required<OperandSpec> operands;
  Required<std::span<const AttrSpec>> attributes;
  Required<std::span<const Example>> examples;
  Required<InferFn> infer;
  Required<FactorsFn> factors;
  Required<Linearity> linearity;
  Required<TailRule> tails;
  Required<GradientRule> gradient;
  Required<LocalizeRule> localize;
  Required<EvalFn> evaluate;
  Required<LowerRule> lower;
};

}  // namespace gshard
