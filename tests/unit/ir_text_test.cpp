// The text form: everything of a module survives printing and parsing; mistakes are named.
#include "ir/builder.h"
#include "ir_harness.h"

namespace gshard {
namespace {
using testing_ir::faultOf;
using testing_ir::parseText;

constexpr const char* kWhole = R"(module digits
mesh [data: 2, model: 4] declared
param net.w: f32[64, 10] {[_, model]} trained @{[_, model]} open "the weights"
param "odd name": f32[4] {[model(2,2)]}
state net.w.adam.m: f32[64, 10] {[data, model]} of net.w @{[data, _]} stored
setting lr: f32 = 0.001 "learning \"rate\""
const batch: "int" = "64" "rows per step"

func @loss(%x: f32[64, 64] {[data, _]} row 0 @{[data, _]}, %w: f32[64, 10] {[_, model]} param net.w, %m: f32[64, 10] {[data, model]} state net.w.adam.m, %step: i32 {[]} step, %lr: f32 {[]} setting lr, %a: f32[10] {[_], sum: data} accumulator 0, %labels: i32[64] {[data]} input y) -> (f32[64, 10], f32[64, 10], f32[10], f32) train accumulate rows 64 blocks 4 total 256 doc "the loss" {
  %p = contract "bi,ih->bh" %x, %w : f32[64, 10] {[data, model]} row 0
  %p.1 = neg %p : f32[64, 10] {[data, model]} row 0 backward
  %0 = constant {value = [1.0, -0.0, 0.5, inf, -inf, nan, 1e-07, 2.0, 3.0, 4.0]} : f32[10] {[model]}
  %r = reshape %p : f32[16, 40] {[(data, model(1,2)), model(2,2)]} update
  %v, %i = arg_candidates %p {axes = [model], axis = 1, max = true} : f32[64, 4] {[data, model]}, i32[64, 4] {[data, model]}
  %s = reduce sum %p {dims = [0]} : f32[10] {[model], sum: data}
  %n = dim_size %x {dims = [0]} : f32 {[]}
  return %p, %w param net.w, %s accumulator 0 sum, %n report "train.rows"
}
)";

TEST(Text, RoundTripIsTheIdentity) {
  const Module module = parseText(kWhole);
  const std::string text = printModule(module);
  EXPECT_EQ(text,
            std::string(kWhole).replace(std::string(kWhole).find("report \"train.rows\""), 19, "report train.rows"));
  EXPECT_EQ(printModule(parseText(text)), text);
  const Function& function = module.functions[0];
  EXPECT_EQ(function.kind, FunctionKind::Train);
  EXPECT_EQ(function.stage, Stage::Accumulate);
  EXPECT_EQ(function.totalRows, 256);
  EXPECT_EQ(function.results[0].name, "result");
  EXPECT_EQ(function.arguments[6].name, "y");
  EXPECT_EQ(function.ops[1].phase, Phase::Backward);
  EXPECT_TRUE(module.parameters[0].trained);
  EXPECT_EQ(module.states[0].parameter, 0);
}

TEST(Text, EqualNamesAreMadeUnique) {
  Module module;
  Function& function = module.functions.emplace_back();
  function.name = "f";
  CollectingSink sink;
  Builder builder(module, function, sink);
  const ValueId a = builder.scalar(DType::F32, 1, {});
  const ValueId b = builder.map("neg", {a}, {}, "h");
  const ValueId c = builder.map("neg", {b}, {}, "h");
  function.value(a).name = "";
  function.results.push_back({.name = "result", .value = c});
  const std::string text = printModule(module);
  EXPECT_EQ(text,
            "func @f() -> f32 {\n  %0 = constant {value = 1.0} : f32\n  %h = neg %0 : f32\n  %h.1 = neg %h : f32\n  "
            "return %h.1\n}\n");
  EXPECT_EQ(printModule(parseText(text)), text);
}

TEST(Text, MistakesAreNamed) {
  const auto body = [](const std::string& ops) {
    return "mesh [a: 4]\nfunc @f(%x: f32[2, 3]) {\n" + ops + "\n return %x\n}";
  };
  EXPECT_EQ(faultOf("wrong"),
            "E0301 `param`, `state`, `setting`, `const` or `func` is expected here, but there is `wrong`");
  EXPECT_EQ(faultOf("mesh [a: 0]"),
            "E0301 an axis of its own name and a size of at least 1 is expected here, but there is `]`");
  EXPECT_EQ(faultOf(body("%y = neg %z : f32")), "E0302 no value `%z` in this module");
  EXPECT_EQ(faultOf(body("%y = negate %x : f32")), "E0302 no op `negate` in this module");
  EXPECT_EQ(faultOf(body("%y = neg %x : f32[3, 2]")), "E0303 `neg` gives `f32[2, 3]`, but `f32[3, 2]` is written");
  EXPECT_EQ(faultOf(body("%y = argmax %x : i32[2]")), "E0304 attribute `axis` of `argmax` is missing");
  EXPECT_EQ(faultOf(body("%y = argmax %x {axis = 1, axle = 2} : i32[2]")), "E0302 no attribute `axle` in this module");
  EXPECT_EQ(faultOf(body("%y = argmax %x, %x {axis = 1} : i32[2]")),
            "E0305 `argmax` takes 1 operands, but 2 are given");
  EXPECT_EQ(faultOf(body("%y = constant {value = 1.5} : i32")),
            "E0304 attribute `value` of `constant` has a fraction, but the result is `i32`");
  EXPECT_EQ(faultOf(body("%x = neg %x : f32[2, 3]")), "E0301 a new name is expected here, but there is `%x` again");
  EXPECT_EQ(faultOf(body("%y = neg %x : f32[2, 3] {[b, _]}")), "E0302 no mesh axis `b` in this module");
  EXPECT_EQ(faultOf(body("%y = neg %x : f32[2, 3] {[a(3,2), _]}")),
            "E0301 a piece of an axis of size 4 is expected here, but there is `)`");
  EXPECT_EQ(faultOf("func @f() { return %x"), "E0302 no value `%x` in this module");
  EXPECT_EQ(faultOf("func @f(%x: f32) { return %x"), "E0301 `}` is expected here, but there is the end of the text");
  EXPECT_EQ(faultOf("func @f(%x: f32) { %y = \"unfinished"),
            "E0301 the name of an op is expected here, but there is `\"`");
}

// Whatever stands in a file, the parser answers with a module or a diagnostic.
TEST(Text, MutatedTextIsReadOrRefused) {
  constexpr std::string_view kPieces[] = {
      "%x",        "f32", "[",        "]",    "{",     "}",          "(",      ")",
      ",",         ":",   "=",        "@",    "->",    "-1",         "0",      "9999999999999",
      "1e400",     "\"",  "//",       "row",  "param", "func",       "return", "reshape",
      "reduce",    "sum", "exchange", "take", "\n",    "model(2,2)", "\xff",   "{axis = -5}",
      "dims = [0]"};
  std::uint64_t state = 88172645463325252ULL;
  const auto next = [&](std::size_t bound) {
    state ^= state << 13, state ^= state >> 7, state ^= state << 17;
    return static_cast<std::size_t>(state % bound);
  };
  for (int round = 0; round < 3000; ++round) {
    std::string text = kWhole;
    for (std::size_t edits = 1 + next(4); edits > 0; --edits) {
      const std::size_t at = next(text.size());
      if (next(2) == 0) text.erase(at, next(6));
      if (next(2) == 0) text.insert(at, kPieces[next(std::size(kPieces))]);
    }
    CollectingSink sink;
    std::optional<Module> module;
    ASSERT_NO_THROW(module = testing_ir::tryParse(text, sink)) << text;
    ASSERT_EQ(module.has_value(), !sink.hasErrors()) << text;
    if (!module) continue;
    const std::string printed = printModule(*module);
    ASSERT_EQ(printModule(parseText(printed)), printed);
    ASSERT_NO_THROW(verify(*module, Form::Spmd)) << text;
  }
}

TEST(Text, ShapeRulesNameTheSituation) {
  const auto op = [](const std::string& args, const std::string& line) {
    return faultOf("func @f(" + args + ") {\n " + line + "\n return %a\n}");
  };
  EXPECT_EQ(op("%a: f32[2, 3], %b: f32[4]", "%y = add %a, %b : f32[2, 3]"),
            "E0308 `f32[2, 3]` and `f32[4]` do not broadcast: dimension 1 from the end is 3 and 4");
  EXPECT_EQ(op("%a: f32, %b: i32", "%y = add %a, %b : f32"),
            "E0306 operands of `add` are `f32` and `i32`: they need one dtype");
  EXPECT_EQ(op("%a: i32", "%y = exp %a : f32"), "E0309 `exp` takes float types, but `i32` is given");
  EXPECT_EQ(op("%a: f32[5, 7]", "%y = argmax %a {axis = 2} : i32[5]"),
            "E0307 `axis` is 2, but `f32[5, 7]` has 2 dimensions");
  EXPECT_EQ(op("%a: f32[5, 7]", "%y = contract \"ij\" %a : f32"), "E0310 `\"ij\"` has no `->`");
  EXPECT_EQ(op("%a: f32[5, 7]", "%y = contract \"ij->k\" %a : f32"),
            "E0310 `\"ij->k\"` names `k` in its result, but no operand has it");
  EXPECT_EQ(op("%a: f32[5, 7]", "%y = contract \"ij,jk->ik\" %a, %a : f32"),
            "E0311 letter `j` of `\"ij,jk->ik\"` is 7 in one operand and 5 in another");
  EXPECT_EQ(op("%a: f32[5, 7]", "%y = reduce sum %a {dims = [1, 1]} : f32[5]"),
            "E0313 dimension 1 is named twice in `dims`");
  EXPECT_EQ(op("%a: f32[5, 7]", "%y = reshape %a : f32[6, 6]"),
            "E0314 `f32[5, 7]` has 35 elements, but shape [6, 6] has 36");
  EXPECT_EQ(op("%a: f32[5]", "%y = broadcast %a {dims = [0]} : f32[4]"),
            "E0315 `f32[5]` does not broadcast to [4]: dimension 0 is 5 and would become 4");
  EXPECT_EQ(op("%a: f32[5]", "%y = slice %a {start = [2], limit = [6], step = [1]} : f32[4]"),
            "E0316 slice 2:6 of dimension 0 leaves its range 0:5");
  EXPECT_EQ(op("%a: f32[5]", "%y = slice %a {start = [2], limit = [5], step = [0]} : f32[4]"),
            "E0317 a slice steps by 0, but steps are at least 1");
  EXPECT_EQ(op("%a: f32[2], %v: f32", "%y = pad %a, %v {low = [-3], high = [0], interior = [0]} : f32[2]"),
            "E0318 dimension 0 of size 2 has size -1 after padding");
  EXPECT_EQ(op("%a: f32[2, 3], %b: f32[2, 4]", "%y = concat %a, %b {dim = 0} : f32[4, 3]"),
            "E0319 `f32[2, 3]` and `f32[2, 4]` do not join along dimension 0: the other dimensions differ");
  EXPECT_EQ(op("%a: f32[2, 3]", "%y = transpose %a {perm = [0]} : f32[2, 3]"),
            "E0320 `perm` lists 1 numbers, but `f32[2, 3]` has 2 dimensions");
  EXPECT_EQ(op("%a: f32[2, 0]", "%y = reduce max %a {dims = [1]} : f32[2]"),
            "E0321 `max` of dimension 1 of `f32[2, 0]` has no elements to choose from");
  EXPECT_EQ(op("%a: f32[2], %i: f32", "%y = take %a, %i {axis = 0} : f32"),
            "E0322 indices are `f32`, but `i32` or `i64` is needed");
  EXPECT_EQ(op("%a: f32[2], %i: i32[2]", "%y = take %a, %i {axis = 0, batch = 1} : f32"),
            "E0323 `batch` is 1, but the first 1 dimensions of `f32[2]` and `i32[2]` differ or lie past `axis`");
  EXPECT_EQ(op("%a: f32[2], %i: i32[3], %u: f32[2]", "%y = scatter_add %a, %i, %u {axis = 0} : f32[2]"),
            "E0324 updates are `f32[2]`, but `f32[3]` is needed");
  EXPECT_EQ(op("%a: f32", "%y = broadcast %a {dims = []} : f32[4000000000, 4000000000]"),
            "E0325 `f32[4000000000, 4000000000]` has more elements than 63 bits can count");
  EXPECT_EQ(op("%a: f32", "%y = constant {value = [1, 2]} : f32[3]"), "E0326 2 numbers are given for `f32[3]`");
  EXPECT_EQ(op("%a: f32", "%y = iota {dim = 0} : i32[3000000000]"),
            "E0328 `i32[3000000000]` counts to 2999999999, beyond its dtype");
  EXPECT_EQ(op("%a: f32[2], %v: i32", "%y = pad %a, %v {low = [1], high = [0], interior = [0]} : f32[3]"),
            "E0329 the padding value is `i32`, but a scalar `f32` is needed");
  EXPECT_EQ(op("%a: f32[2], %i: i32[1]", "%y = dynamic_slice %a, %i : f32[1]"),
            "E0330 the start of dimension 0 is `i32[1]`, but a scalar is needed");
  EXPECT_EQ(op("%a: f32[2], %i: i32", "%y = dynamic_slice %a, %i : f32[3]"),
            "E0316 slice 0:3 of dimension 0 leaves its range 0:2");
  EXPECT_EQ(op("%a: f32[2]", "%y = dynamic_slice %a : f32[1]"),
            "E0320 `start` lists 0 numbers, but `f32[2]` has 1 dimensions");
  EXPECT_EQ(op("%a: f32[2]", "%y, %i = top_k %a {k = 3, axis = 0} : f32[3], i32[3]"),
            "E0304 attribute `k` of `top_k` is 3, but the dim has 2 elements");
}

}  // namespace
}  // namespace gshard
