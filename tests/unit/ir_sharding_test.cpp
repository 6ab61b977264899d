// Meshes, shardings, factors and the SPMD rule of ops.
#include "ir/op_reference.h"
#include "ir_harness.h"

namespace gshard {
namespace {
using testing_ir::parseText;

const Mesh kMesh{{{"a", 2}, {"b", 12}}};

TEST(Mesh, CoordinatesAndPieces) {
  EXPECT_EQ(kMesh.devices(), 24);
  for (std::int64_t device = 0; device < 24; ++device) EXPECT_EQ(kMesh.deviceAt(kMesh.coordinates(device)), device);
  const AxisRef major{1, 1, 3}, minor{1, 3, 4};
  EXPECT_FALSE(overlaps(major, minor));
  EXPECT_TRUE(overlaps(AxisRef{1, 1, 12}, minor));
  EXPECT_EQ(axisCoordinate(kMesh, major, 12 + 7), 1);
  EXPECT_EQ(axisCoordinate(kMesh, minor, 12 + 7), 3);
  const AxisRef both[] = {minor, wholeAxis(kMesh, 0)};
  const std::vector<std::int64_t> group = groupOf(kMesh, both, 7);
  EXPECT_EQ(group, (std::vector<std::int64_t>{4, 16, 5, 17, 6, 18, 7, 19}));
  for (std::size_t i = 0; i < group.size(); ++i)
    EXPECT_EQ(partIndex(kMesh, both, group[i]), static_cast<std::int64_t>(i));
}

TEST(Mesh, TheTileRule) {
  EXPECT_EQ(partSize(7, 3), 3);
  EXPECT_EQ(tileOf(7, 3, 2).offset, 6);
  EXPECT_EQ(tileOf(7, 3, 2).live, 1);
  EXPECT_EQ(tileOf(5, 4, 3).offset, 5);  // 2 2 1 and an empty part
  EXPECT_EQ(tileOf(5, 4, 3).live, 0);
}

TEST(Sharding, CanonicalFormAndPrinting) {
  Sharding sharding = Sharding::replicated(2);
  sharding.dims[0] = {{1, 1, 3}, {1, 3, 4}, {0, 2, 1}};
  sharding.partial = {{{0, 1, 2}, Reduction::Sum}};
  EXPECT_NE(checkSharding(kMesh, {DType::F32, {8, 5}}, sharding), std::nullopt);
  sharding = canonical(kMesh, sharding);
  EXPECT_EQ(checkSharding(kMesh, {DType::F32, {8, 5}}, sharding), std::nullopt);
  EXPECT_EQ(printSharding(kMesh, sharding), "{[b, _], sum: a}");
  EXPECT_EQ(printShardedType(kMesh, {DType::F32, {8, 5}}, sharding), "f32[8@b, 5]{sum: a}");
  sharding.dims[1] = {{1, 3, 2}};
  EXPECT_EQ(*checkSharding(kMesh, {DType::F32, {8, 5}}, sharding), "`b(3,2)` is used twice");
  sharding.dims[1] = {{0, 1, 2}};
  EXPECT_EQ(*checkSharding(kMesh, {DType::F32, {8, 5}}, sharding), "`a` is used twice");
}

std::string factorsText(const std::string& args, const std::string& line) {
  const Module module = parseText("func @f(" + args + ") {\n " + line + "\n return\n}");
  const OpView op(module, module.functions[0], module.functions[0].ops[0]);
  return printFactors(op, factorsOf(op));
}

TEST(Factors, OfEveryKind) {
  EXPECT_EQ(factorsText("%a: f32[4, 5], %b: f32[5, 6]", "%y = contract \"ik,kj->ij\" %a, %b : f32[4, 6]"),
            "[i, k], [k, j] -> [i, j] {i=4, j=6, k=5 reduce(sum)}");
  EXPECT_EQ(factorsText("%a: f32[4, 5], %b: f32[5]", "%y = add %a, %b : f32[4, 5]"),
            "[a, b], [b] -> [a, b] {a=4, b=5}");
  EXPECT_EQ(factorsText("%a: f32[6, 4]", "%y = reshape %a : f32[3, 8]"), "[ab, c] -> [a, bc] {a=3, b=2, c=4}");
  EXPECT_EQ(factorsText("%a: f32[12, 5]", "%y = reshape %a : f32[60]"), "[a, b] -> [ab] {a=12, b=5}");
  EXPECT_EQ(factorsText("%a: f32[4, 3]", "%y = reshape %a : f32[3, 4]"),
            "[a, d] -> [b, c] {a=4 window, b=3 window, c=4 window, d=3 window}");
  EXPECT_EQ(factorsText("%a: f32[5, 7], %i: i32[2]", "%y = take %a, %i {axis = 0} : f32[2, 7]"),
            "[a, b], [c] -> [c, b] {a=5 lookup(sum), b=7, c=2}");
  EXPECT_EQ(factorsText("%a: f32[5, 7]", "%y = argmax %a {axis = 1} : i32[5]"), "[a, b] -> [a] {a=5, b=7 candidates}");
  EXPECT_EQ(factorsText("%a: f32[5, 7]", "%y = slice %a {start = [0, 1], limit = [5, 7], step = [1, 2]} : f32[5, 3]"),
            "[a, b] -> [a, b] {a=5, b=7 window}");
}

TEST(Factors, AxesFallOnThemMajorFirst) {
  OpFactors factors;
  factors.factors = {{FactorKind::Pass, 4}, {FactorKind::Pass, 6}};
  const auto place = [&](std::vector<AxisRef> axes) { return axesOfFactors(factors, {0, 1}, 24, axes); };
  const AxisRef a{0, 1, 2}, whole{1, 1, 12}, four{1, 1, 4}, three{1, 4, 3};
  EXPECT_EQ(place({a}), (std::vector<std::vector<AxisRef>>{{a}, {}}));
  EXPECT_EQ(place({whole}), (std::vector<std::vector<AxisRef>>{{four}, {three}}));  // cut where the factor ends
  EXPECT_EQ(place({a, AxisRef{1, 1, 2}, AxisRef{1, 2, 6}}),
            (std::vector<std::vector<AxisRef>>{{a, AxisRef{1, 1, 2}}, {AxisRef{1, 2, 6}}}));
  EXPECT_EQ(place({AxisRef{1, 1, 3}}), std::nullopt);  // 8 elements per part are not whole rows of 6
}

std::optional<std::string> spmdFault(const std::string& text) {
  const Module module = parseText("mesh [a: 2, b: 2]\nfunc @f(" + text + "\n return\n}");
  return verify(module, Form::Spmd);
}

TEST(SpmdRule, AcceptsAndRefuses) {
  EXPECT_EQ(spmdFault("%x: f32[4, 6] {[a, b]}, %v: f32[6] {[b]}) {\n %y = add %x, %v : f32[4, 6] {[a, b]}"),
            std::nullopt);
  EXPECT_NE(spmdFault("%x: f32[4, 6] {[a, b]}, %v: f32[6] {[_]}) {\n %y = add %x, %v : f32[4, 6] {[a, b]}"),
            std::nullopt);
  EXPECT_NE(spmdFault("%x: f32[4, 6] {[a, _]}, %v: f32[6] {[a]}) {\n %y = add %x, %v : f32[4, 6] {[a, _]}"),
            std::nullopt);
  EXPECT_EQ(spmdFault("%x: f32[4, 6] {[_, a]}, %w: f32[6, 2] {[a, b]}) {\n %y = contract \"ik,kj->ij\" %x, %w : f32[4, "
                      "2] {[_, b], sum: a}"),
            std::nullopt);
  EXPECT_NE(spmdFault("%x: f32[4, 6] {[_, a]}, %w: f32[6, 2] {[a, b]}) {\n %y = contract \"ik,kj->ij\" %x, %w : f32[4, "
                      "2] {[_, b]}"),
            std::nullopt);
  // A pending sum goes through neg and a product with a whole value, not through exp or a product with itself.
  const std::string pending = "%x: f32[4, 6] {[_, a]}) {\n %p = reduce sum %x {dims = [1]} : f32[4] {[_], sum: a}\n ";
  EXPECT_EQ(spmdFault(pending + "%y = neg %p : f32[4] {[_], sum: a}"), std::nullopt);
  EXPECT_NE(spmdFault(pending + "%y = neg %p : f32[4] {[_]}"), std::nullopt);
  EXPECT_NE(spmdFault(pending + "%y = exp %p : f32[4] {[_], sum: a}"), std::nullopt);
  EXPECT_NE(spmdFault(pending + "%y = mul %p, %p : f32[4] {[_], sum: a}"), std::nullopt);
  EXPECT_EQ(spmdFault("%x: f32[4] {[_]}) {\n %y = constant {value = 0.0} : f32[4] {[_]}\n %p = make_partial %x {axes = "
                      "[b], reduction = \"sum\"} : f32[4] {[_], sum: b}\n "
                      "%q = mul %p, %y : f32[4] {[_], sum: b}"),
            std::nullopt);
  // Reshape: local only where parts hold the same flat indices.
  EXPECT_EQ(spmdFault("%x: f32[4, 6] {[a, _]}) {\n %y = reshape %x : f32[24] {[a]}"), std::nullopt);
  EXPECT_NE(spmdFault("%x: f32[3, 6] {[a, _]}) {\n %y = reshape %x : f32[18] {[a]}"), std::nullopt);
  EXPECT_EQ(spmdFault("%x: f32[4, 6] {[(a, b), _]}) {\n %y = reshape %x : f32[2, 12] {[a, b]}"), std::nullopt);
  // Collectives say which sharding follows.
  EXPECT_NE(spmdFault("%x: f32[4, 6] {[(a, b), _]}) {\n %y = all_gather %x {axes = [a], dim = 0} : f32[4, 6] {[b, _]}"),
            std::nullopt);
  EXPECT_EQ(spmdFault("%x: f32[4, 6] {[(a, b), _]}) {\n %y = all_gather %x {axes = [b], dim = 0} : f32[4, 6] {[a, _]}"),
            std::nullopt);
  EXPECT_NE(spmdFault("%x: f32[5, 6] {[(a, b), _]}) {\n %y = all_gather %x {axes = [b], dim = 0} : f32[5, 6] {[a, _]}"),
            std::nullopt);  // 2 2 1 0 in 3 2
}

TEST(OpTable, IsComplete) {
  std::string_view last;
  for (const OpKind kind : allOps()) {
    const OpDef& def = opDef(kind);
    EXPECT_LT(last, *def.name) << "ops.def is sorted";
    last = *def.name;
    EXPECT_EQ(opFromName(*def.name), kind);
    EXPECT_FALSE((*def.examples).empty()) << *def.name;
    EXPECT_FALSE((*def.doc).empty()) << *def.name;
    EXPECT_NE(*def.infer, nullptr) << *def.name;
    EXPECT_NE(*def.factors, nullptr) << *def.name;
    EXPECT_NE(*def.evaluate, nullptr) << *def.name;
    const Vjp* vjp = std::get_if<Vjp>(&*def.gradient);
    EXPECT_TRUE(vjp == nullptr || *vjp->fn != nullptr) << *def.name;
  }
  const std::string reference = opReference();
  EXPECT_NE(reference.find("### scatter_add"), std::string::npos);
  EXPECT_NE(reference.find("| `tanh` |"), std::string::npos);
}

}  // namespace
}  // namespace gshard
