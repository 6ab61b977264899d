// The cases of cases.md that ask for values and a plan, by their ids, on the evaluator's simulated devices.
// Over 400 lines because the cases stand as they do in the list, one after another.
#include <cmath>
#include <memory>

#include "partition_harness.h"

namespace gshard {
namespace {

using namespace testing_partition;
using Strings = std::vector<std::string>;

std::string number(std::int64_t n) {
  return std::to_string(n);
}

TEST(Cases, T01UnevenMean) {
  const std::string text = R"(mesh [x: N] declared
func @f(%x: f32[3, 4] @{[SPLIT]}) -> (f32, f32, f32) {
  %s = reduce sum %x {dims = [0, 1]} : f32
  %c = constant {value = 12} : f32
  %mean = div %s, %c : f32
  %d = sub %x, %mean : f32[3, 4]
  %q = mul %d, %d : f32[3, 4]
  %v = reduce sum %q {dims = [0, 1]} : f32
  %variance = div %v, %c : f32
  return %mean, %s, %variance
}
)";
  for (const auto& [n, split] : {std::pair{2, "x, _"}, std::pair{3, "_, x"}}) {
    const auto program = partitionText(replaceAll(replaceAll(text, "N", number(n)), "SPLIT", split));
    ASSERT_TRUE(program);
    runSpmd(*program, "f", {iotaOf({DType::F32, {3, 4}})}, {{5.5}, {66}, {11.916667}});
    EXPECT_EQ(collectivesOf(program->spmd, "f"), (Strings{"all_reduce f32", "all_reduce f32"}));
  }
}

TEST(Cases, T02EmptyTiles) {
  const std::string text = R"(mesh [x: 4] declared
func @f(%x: f32[N] @{[x]}) -> (f32, f32, f32, f32, bool) {
  %max = reduce max %x {dims = [0]} : f32
  %min = reduce min %x {dims = [0]} : f32
  %prod = reduce prod %x {dims = [0]} : f32
  %sum = reduce sum %x {dims = [0]} : f32
  %zero = constant {value = 0} : f32
  %p = gt %x, %zero : bool[N]
  %any = reduce any %p {dims = [0]} : bool
  return %max, %min, %prod, %sum, %any
}
func @g(%x: f32[N] @{[x]}) -> (i32, i32) {
  %a = argmax %x {axis = 0} : i32
  %b = argmin %x {axis = 0} : i32
  return %a, %b
}
)";
  const auto three = partitionText(replaceAll(text, "N", "3"));
  ASSERT_TRUE(three);
  const Tensor x3 = tensorOf({DType::F32, {3}}, {-5, -3, -7});
  runSpmd(*three, "f", {x3}, {{-3}, {-7}, {-105}, {-15}, {0}}, 0);
  runSpmd(*three, "g", {x3}, {{1}, {2}}, 0);
  for (const std::string& each : collectivesOf(three->spmd, "f")) EXPECT_EQ(each.substr(0, 10), "all_reduce") << each;
  for (const std::string& each : collectivesOf(three->spmd, "g")) EXPECT_EQ(each.substr(0, 10), "all_gather") << each;
  const auto two = partitionText(replaceAll(text, "N", "2"));
  ASSERT_TRUE(two);
  const Tensor x2 = tensorOf({DType::F32, {2}}, {-5, -3});
  runSpmd(*two, "f", {x2}, {{-3}, {-5}, {15}, {-8}, {0}}, 0);
  runSpmd(*two, "g", {x2}, {{1}, {0}}, 0);
}

TEST(Cases, T03SliceOfSevenParts) {
  const auto program = partitionText(R"(mesh [x: 7] declared
func @f(%x: f32[16] @{[x]}) -> f32[14] {
  %s = slice %x {limit = [15], start = [1], step = [1]} : f32[14]
  %y = annotate %s {annotation = {[x]}} : f32[14]
  return %y
}
)");
  ASSERT_TRUE(program);
  std::vector<double> expected;
  for (int i = 1; i < 15; ++i) expected.push_back(i);
  const EvalResult result = runSpmd(*program, "f", {iotaOf({DType::F32, {16}})}, {expected});
  EXPECT_EQ(result.bytesReceived, (std::vector<std::int64_t>{0, 0, 4, 8, 8, 8, 8}));
}

TEST(Cases, T04AddingToAPendingSum) {
  const auto a = partitionText(R"(mesh [x: 2] declared
func @f(%x: f32[10] @{[x]}, %y: f32[10] @{[x]}) -> (f32, f32, f32) {
  %s = reduce sum %x {dims = [0]} : f32
  %t = reduce sum %y {dims = [0]} : f32
  %ten = constant {value = 10} : f32
  %two = constant {value = 2} : f32
  %u = add %s, %ten : f32
  %v = mul %s, %two : f32
  %w = sub %s, %s : f32
  return %u, %v, %w
}
func @pending(%x: f32[10] @{[x]}, %y: f32[10] @{[x]}) -> f32 {
  %s = reduce sum %x {dims = [0]} : f32
  %t = reduce sum %y {dims = [0]} : f32
  %u = add %s, %t : f32
  return %u
}
)");
  ASSERT_TRUE(a);
  const Tensor x = iotaOf({DType::F32, {10}});
  runSpmd(*a, "f", {x, x}, {{55}, {90}, {0}});
  runSpmd(*a, "pending", {x, x}, {{90}});
  EXPECT_EQ(collectivesOf(a->spmd, "pending"), (Strings{"all_reduce f32"}));

  for (const std::int64_t n : {1, 2, 4}) {
    const auto b = partitionText(replaceAll(R"(mesh [x: N] declared
func @f(%x: f32[1, 4] @{[_, x]}, %w: f32[4, 3] @{[x, _]}, %b: f32[3] @{[_]}) -> f32[1, 3] {
  %p = contract "bi,ih->bh" %x, %w : f32[1, 3]
  %y = add %p, %b : f32[1, 3]
  return %y
}
)",
                                            "N", number(n)));
    ASSERT_TRUE(b);
    runSpmd(*b, "f",
            {tensorOf({DType::F32, {1, 4}}, {1, 2, 3, 4}), Tensor::filled({DType::F32, {4, 3}}, 1),
             tensorOf({DType::F32, {3}}, {100, 200, 300})},
            {{110, 210, 310}});
    EXPECT_EQ(collectivesOf(b->spmd, "f"), n == 1 ? Strings{} : Strings{"all_reduce f32[1, 3]"});
  }
}

TEST(Cases, T06ColumnSplitThenRowSplit) {
  const std::string text = R"(mesh [MESH] declared
func @f(%x: f32[4, 2] @{[_, _]}, %v: f32[2, 32] @{[_, x]}, %w: f32[32, 8] @{[x, _]}) -> f32[4, 8] {
  %h = contract "ai,ib->ab" %x, %v : f32[4, 32]
  %y = contract "ab,bc->ac" %h, %w : f32[4, 8]
  return %y
}
)";
  for (const std::string mesh : {"x: 2", "x: 4", "x: 8", "x: 5", "z: 2, x: 4"}) {
    const auto program = partitionText(replaceAll(text, "MESH", mesh));
    ASSERT_TRUE(program);
    runSpmd(*program, "f",
            {Tensor::filled({DType::F32, {4, 2}}, 1), Tensor::filled({DType::F32, {2, 32}}, 1),
             Tensor::filled({DType::F32, {32, 8}}, 1)},
            {std::vector<double>(32, 64)});
    EXPECT_EQ(collectivesOf(program->spmd, "f"), (Strings{"all_reduce f32[4, 8]"})) << mesh;
  }
}

TEST(Cases, T08ProductWithoutCommunication) {
  const auto program = partitionText(R"(mesh [x: 4, y: 2] declared
func @f(%a: f32[8, 6] @{[x, _]}, %b: f32[6, 4] @{[_, y]}) -> f32[4, 8] {
  %p = contract "ik,kj->ij" %a, %b : f32[8, 4]
  %t = transpose %p {perm = [1, 0]} : f32[4, 8]
  %out = annotate %t {annotation = {[y, x]}} : f32[4, 8]
  return %out
}
)");
  ASSERT_TRUE(program);
  const EvalResult result =
      runSpmd(*program, "f", {iotaOf({DType::F32, {8, 6}}), iotaOf({DType::F32, {6, 4}})},
              {{220, 580, 940,  1300, 1660, 2020, 2380, 2740, 235, 631, 1027, 1423, 1819, 2215, 2611, 3007,
                250, 682, 1114, 1546, 1978, 2410, 2842, 3274, 265, 733, 1201, 1669, 2137, 2605, 3073, 3541}});
  EXPECT_EQ(collectivesOf(program->spmd, "f"), Strings{});
  EXPECT_EQ(maxBytes(result), 0);
}

Tensor t09A() {
  Tensor a = Tensor::zeros({DType::F32, {8, 16}});
  for (std::int64_t i = 0; i < 128; ++i) a.setNumber(i, static_cast<double>((16 * (i / 16) + i % 16) % 5));
  return a;
}
Tensor t09B() {
  Tensor b = Tensor::zeros({DType::F32, {16, 8}});
  for (std::int64_t i = 0; i < 128; ++i) b.setNumber(i, static_cast<double>((8 * (i / 8) + i % 8) % 7));
  return b;
}

TEST(Cases, T09ReduceScatter) {
  const std::string head = R"(mesh [x: 4] declared
func @f(%a: f32[8, 16] @{[_, x]}, %b: f32[16, 8] @{[x, _]}) -> TYPE {
  %p = contract "ik,kj->ij" %a, %b : f32[8, 8]
)";
  const auto first = [&](const Partitioned& program) {
    return numbersOf(evaluate(program.spmd, *program.spmd.find("f"), std::vector{t09A(), t09B()}).results[0]);
  };
  const auto plain =
      partitionText(replaceAll(head, "TYPE", "f32[8, 8]") + R"(  %y = annotate %p {annotation = {[x, _]}} : f32[8, 8]
  return %y
}
)");
  ASSERT_TRUE(plain);
  EXPECT_EQ(collectivesOf(plain->spmd, "f"), (Strings{"reduce_scatter f32[8, 8]"}));
  const std::vector<double> y = first(*plain);
  EXPECT_EQ(std::vector<double>(y.begin(), y.begin() + 8), (std::vector<double>{79, 81, 97, 92, 101, 89, 91, 79}));
  EXPECT_EQ(std::vector<double>(y.end() - 8, y.end()), (std::vector<double>{85, 96, 86, 90, 108, 105, 102, 85}));
  EXPECT_EQ(maxBytes(evaluate(plain->spmd, *plain->spmd.find("f"), std::vector{t09A(), t09B()})), 192);

  const auto reshaped = partitionText(replaceAll(head, "TYPE", "f32[4, 2, 8]") + R"(  %r = reshape %p : f32[4, 2, 8]
  %y = annotate %r {annotation = {[x, _, _]}} : f32[4, 2, 8]
  return %y
}
)");
  ASSERT_TRUE(reshaped);
  EXPECT_EQ(first(*reshaped), y);
  ASSERT_EQ(collectivesOf(reshaped->spmd, "f").size(), 1u);
  EXPECT_EQ(collectivesOf(reshaped->spmd, "f")[0].substr(0, 14), "reduce_scatter");

  const auto whole =
      partitionText(replaceAll(head, "TYPE", "f32[8, 8]") + R"(  %y = annotate %p {annotation = {[_, _]}} : f32[8, 8]
  return %y
}
)");
  ASSERT_TRUE(whole);
  EXPECT_EQ(collectivesOf(whole->spmd, "f"), (Strings{"all_reduce f32[8, 8]"}));

  const auto clamped = partitionText(replaceAll(head, "TYPE", "f32[8, 8]") + R"(  %c = constant {value = 25} : f32
  %m = minimum %p, %c : f32[8, 8]
  %y = annotate %m {annotation = {[x, _]}} : f32[8, 8]
  return %y
}
)");
  ASSERT_TRUE(clamped);
  EXPECT_EQ(first(*clamped), std::vector<double>(64, 25));
  EXPECT_EQ(collectivesOf(clamped->spmd, "f"), (Strings{"reduce_scatter f32[8, 8]"}));
}

TEST(Cases, T10ArgmaxTies) {
  const std::string text = R"(mesh [x: N] declared
func @f(%x: f32[4] @{[x]}) -> (i32, i32) {
  %n = neg %x : f32[4]
  %a = argmax %x {axis = 0} : i32
  %b = argmin %n {axis = 0} : i32
  return %a, %b
}
)";
  const double nan = std::nan("");
  for (const std::int64_t n : {2, 3, 4}) {
    const auto program = partitionText(replaceAll(text, "N", number(n)));
    ASSERT_TRUE(program);
    const auto run = [&](const std::vector<double>& x, double expected) {
      runSpmd(*program, "f", {tensorOf({DType::F32, {4}}, x)}, {{expected}, {expected}}, 0);
    };
    run({10, 5, 3, 8}, 0);
    run({1, 7, 7, 7}, 1);
    run({3, 5, 5, 1}, 1);
    run({1, nan, 3, nan}, 1);
    run({nan, nan, nan, nan}, 0);
    const Strings plan = collectivesOf(program->spmd, "f");
    for (const std::string& each : plan) EXPECT_EQ(each.substr(0, 10), "all_gather") << each;
  }
  const auto rows = partitionText(R"(mesh [x: 4] declared
func @f(%x: f32[2, 4] @{[_, x]}) -> i32[2] {
  %a = argmax %x {axis = 1} : i32[2]
  return %a
}
)");
  ASSERT_TRUE(rows);
  runSpmd(*rows, "f", {tensorOf({DType::F32, {2, 4}}, {1, 4, 4, 2, 7, 0, 7, 3})}, {{1, 0}}, 0);
}

TEST(Cases, T14ConcatOnAMeshWithAnUnusedAxis) {
  const std::string text = R"(mesh [p: 4, q: 2] declared
func @f(%a: f32[NA] @{[SA]}, %b: f32[NB] @{[SB]}) -> (f32[NC], f32) {
  %c = concat %a, %b {dim = 0} : f32[NC]
  %s = reduce sum %c {dims = [0]} : f32
  return %c, %s
}
)";
  const auto make = [&](const std::string& na, const std::string& nb, const std::string& nc, const std::string& sa,
                        const std::string& sb) {
    return partitionText(replaceAll(
        replaceAll(replaceAll(replaceAll(replaceAll(text, "NA", na), "NB", nb), "NC", nc), "SA", sa), "SB", sb));
  };
  std::vector<double> first = {0, 1, 2, 3}, second = {0, 1};
  for (int i = 0; i < 12; ++i) first.push_back(100 + i);
  for (int i = 0; i < 10; ++i) second.push_back(100 + i);
  for (const char* split : {"p", "_"}) {
    const auto program = make("4", "12", "16", split, "p");
    ASSERT_TRUE(program);
    runSpmd(*program, "f", {iotaOf({DType::F32, {4}}), iotaOf({DType::F32, {12}}, 100)}, {first, {1272}}, 0);
  }
  for (const auto& [a, b] : {std::pair{"_", "q"}, std::pair{"p", "p"}}) {
    const auto program = make("2", "10", "12", a, b);
    ASSERT_TRUE(program);
    runSpmd(*program, "f", {iotaOf({DType::F32, {2}}), iotaOf({DType::F32, {10}}, 100)}, {second, {1046}}, 0);
  }
}

TEST(Cases, T18ReshapeThroughASplitDim) {
  const std::string text = R"(mesh [x: N] declared
func @f(%x: f32[FROM] @{[SX]}) -> f32[TO] {
  %r = reshape %x : f32[TO]
  %y = annotate %r {annotation = {[SY]}} : f32[TO]
  return %y
}
)";
  struct Case {
    std::string n, from, split, to, result;
  };
  for (const Case& c :
       {Case{"4", "12, 8", "_, x", "16, 6", "_, _"}, Case{"4", "12, 8", "_, x", "16, 6", "x, _"},
        Case{"2", "2, 4", "_, x", "8", "_"}, Case{"2", "2, 4", "_, x", "8", "x"},
        Case{"4", "2, 24", "_, x", "2, 6, 4", "_, x, _"}, Case{"4", "2, 24", "_, x", "2, 6, 4", "_, _, _"}}) {
    std::string source = text;
    for (const auto& [from, to] : {std::pair{"FROM", c.from}, std::pair{"SX", c.split}, std::pair{"SY", c.result},
                                   std::pair{"TO", c.to}, std::pair{"N", c.n}}) {
      source = replaceAll(source, from, to);
    }
    const auto program = partitionText(source);
    ASSERT_TRUE(program);
    const Type& type = program->global.functions[0].type(program->global.functions[0].arguments[0].value);
    runSpmd(*program, "f", {iotaOf(type)}, {numbersOf(iotaOf(type))}, 0);
  }
}

TEST(Cases, T21EmbeddingWithASplitVocabulary) {
  const std::string text = R"(mesh [x: N] declared
func @f(%t: f32[V, 2] @{[x, _]}, %ids: i32[I] @{[_]}) -> f32[I, 2] {
  %y = take %t, %ids {axis = 0, batch = 0} : f32[I, 2]
  return %y
}
func @g(%t: f32[V, 2] @{[x, _]}, %ids: i32[I] @{[_]}, %u: f32[I, 2] @{[_, _]}) -> f32[V, 2] {
  %z = constant {value = 0} : f32[V, 2]
  %s = scatter_add %z, %ids, %u {axis = 0, batch = 0} : f32[V, 2]
  %y = add %s, %t : f32[V, 2]
  return %y
}
)";
  const auto make = [&](const std::string& n, const std::string& v, const std::string& i) {
    return partitionText(replaceAll(replaceAll(replaceAll(text, "N", n), "V", v), "I", i));
  };
  const auto table = [](std::int64_t v) {
    Tensor t = Tensor::zeros({DType::F32, {v, 2}});
    for (std::int64_t i = 0; i < v; ++i) {
      t.setNumber(2 * i, static_cast<double>(i));
      t.setNumber(2 * i + 1, static_cast<double>(10 * i));
    }
    return t;
  };
  const auto ten = make("4", "10", "6");
  ASSERT_TRUE(ten);
  runSpmd(*ten, "f", {table(10), tensorOf({DType::I32, {6}}, {0, 9, 3, 8, 2, 9})},
          {{0, 0, 9, 90, 3, 30, 8, 80, 2, 20, 9, 90}}, 0);
  EXPECT_EQ(collectivesOf(ten->spmd, "f"), (Strings{"all_reduce f32[6, 2]"}));
  std::vector<double> counts;
  for (const double c : {1, 0, 1, 1, 0, 0, 0, 0, 1, 2}) counts.insert(counts.end(), {c, c});
  runSpmd(*ten, "g",
          {Tensor::zeros({DType::F32, {10, 2}}), tensorOf({DType::I32, {6}}, {0, 9, 3, 8, 2, 9}),
           Tensor::filled({DType::F32, {6, 2}}, 1)},
          {counts}, 0);
  EXPECT_EQ(collectivesOf(ten->spmd, "g"), Strings{});
  const auto seventeen = make("8", "17", "4");
  ASSERT_TRUE(seventeen);
  runSpmd(*seventeen, "f", {table(17), tensorOf({DType::I32, {4}}, {16, 0, 15, 14})},
          {{16, 160, 0, 0, 15, 150, 14, 140}}, 0);
}

TEST(Cases, T22SoftmaxOnSplitClasses) {
  const std::string text = R"(mesh [x: N] declared
func @f(%l: f32[C] @{[x]}) -> f32[C] {
  %m = reduce max %l {dims = [0]} : f32
  %d = sub %l, %m : f32[C]
  %e = exp %d : f32[C]
  %s = reduce sum %e {dims = [0]} : f32
  %p = div %e, %s : f32[C]
  return %p
}
func @loss(%l: f32[C] @{[x]}, %y: i32) -> f32 {
  %m = reduce max %l {dims = [0]} : f32
  %d = sub %l, %m : f32[C]
  %e = exp %d : f32[C]
  %s = reduce sum %e {dims = [0]} : f32
  %g = log %s : f32
  %k = take %d, %y {axis = 0, batch = 0} : f32
  %loss = sub %g, %k : f32
  return %loss
}
)";
  const auto make = [&](const std::string& n, const std::string& c) {
    return partitionText(replaceAll(replaceAll(text, "N", n), "C", c));
  };
  for (const std::string n : {"2", "4"}) {
    const auto program = make(n, "5");
    ASSERT_TRUE(program);
    runSpmd(*program, "f", {tensorOf({DType::F32, {5}}, {1, 2, 3, 4, 5})},
            {{0.011656, 0.031685, 0.086129, 0.234122, 0.636409}}, 1e-5);
    EXPECT_EQ(collectivesOf(program->spmd, "f"), (Strings{"all_reduce f32", "all_reduce f32"}));
  }
  const auto negative = make("2", "3");
  ASSERT_TRUE(negative);
  runSpmd(*negative, "f", {tensorOf({DType::F32, {3}}, {-101, -102, -103})}, {{0.665241, 0.244728, 0.090031}}, 1e-5);
  for (const std::string n : {"2", "8"}) {
    const auto program = make(n, "4");
    ASSERT_TRUE(program);
    for (const double start : {0.0, 100.0}) {
      runSpmd(*program, "loss", {iotaOf({DType::F32, {4}}, start), tensorOf({DType::I32, {}}, {3})}, {{0.4401897}},
              1e-5);
    }
    const Strings plan = collectivesOf(program->spmd, "loss");
    EXPECT_LE(plan.size(), 3u);
    for (const std::string& each : plan) EXPECT_EQ(each.substr(0, 14), "all_reduce f32") << each;
  }
}

TEST(Cases, T27DataParallelGradient) {
  const auto sum = partitionText(R"(mesh [x: 2] declared
param w: f32 trained
func @f(%w: f32 param w, %d: f32[2] @{[x]}) -> (f32, f32) train {
  %one = constant {value = 1} : f32
  %q = mul %w, %w : f32
  %c = add %q, %one : f32
  %t = mul %d, %c : f32[2]
  %loss = reduce sum %t {dims = [0]} : f32
  %gc = reduce sum %d {dims = [0]} : f32 backward
  %gw = mul %gc, %w : f32 backward
  %g = add %gw, %gw : f32 backward
  return %loss, %g
}
)");
  ASSERT_TRUE(sum);
  runSpmd(*sum, "f", {tensorOf({DType::F32, {}}, {1}), tensorOf({DType::F32, {2}}, {0, 1})}, {{2}, {2}}, 0);
  EXPECT_LE(collectivesOf(sum->spmd, "f").size(), 2u);
}

}  // namespace
}  // namespace gshard
