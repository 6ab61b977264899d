// The plan of a training step of a small MLP under the usual layouts: data parallel, column and row split, both, and
// states split over the data axis (ZeRO). Values agree with one device.
#include <cmath>
#include <memory>

#include "ir/autodiff.h"
#include "partition_harness.h"

namespace gshard {
namespace {

using namespace testing_partition;
using Strings = std::vector<std::string>;

constexpr std::int64_t kBatch = 62, kInputs = 20, kHidden = 16, kClasses = 4;

struct Layout {
  Mesh mesh;
  std::string x, w1, w2, states;  // shardings as text; empty: no annotation
};

std::optional<Annotation> annotationOf(const Mesh& mesh, const std::string& text, bool open = false) {
  if (text.empty()) return std::nullopt;
  Annotation annotation;
  annotation.open = open;
  std::string name;
  const auto close = [&] {
    annotation.sharding.dims.emplace_back();
    if (name != "_") annotation.sharding.dims.back().push_back(wholeAxis(mesh, *mesh.find(name)));
    name.clear();
  };
  for (const char c : text) {
    if (c == ',')
      close();
    else if (c != ' ')
      name += c;
  }
  close();
  return annotation;
}

// loss = mean cross entropy of a two-layer MLP; w -= 0.1 m, m = 0.9 m + g.
class MlpBuilder {
 public:
  explicit MlpBuilder(const Layout& layout) : layout_(layout) {
    module_.name = "mlp";
    module_.mesh = layout.mesh;
    module_.meshDeclared = true;
    module_.functions.emplace_back();
    module_.functions[0].name = "loss";
    module_.functions[0].kind = FunctionKind::Train;
  }

  Module build() {
    Builder b(module_, function(), sink_);
    const ValueId x = input("x", {DType::F64, {kBatch, kInputs}}, layout_.x);
    const ValueId y = input("y", {DType::I32, {kBatch}}, "");
    const ValueId w1 = parameter("w1", {kInputs, kHidden}, layout_.w1), b1 = parameter("b1", {kHidden}, "");
    const ValueId w2 = parameter("w2", {kHidden, kClasses}, layout_.w2), b2 = parameter("b2", {kClasses}, "");
    const ValueId h = b.map("relu", {b.map("add", {b.contract("bi,ih->bh", {x, w1}, {}), b1}, {})}, {});
    const ValueId logits = b.map("add", {b.contract("bh,hc->bc", {h, w2}, {}), b2}, {});
    const ValueId top = b.create(OpKind::StopGradient, {b.reduce(Reduction::Max, logits, {1}, {})}, {}, {});
    const ValueId shifted = b.map("sub", {logits, b.broadcast(top, {kBatch, kClasses}, {0}, {})}, {});
    const ValueId total = b.map("log", {b.reduce(Reduction::Sum, b.map("exp", {shifted}, {}), {1}, {})}, {});
    const ValueId own =
        b.create(OpKind::Take, {shifted, y}, {{"axis", std::int64_t{1}}, {"batch", std::int64_t{1}}}, {});
    const ValueId sum = b.reduce(Reduction::Sum, b.map("sub", {total, own}, {}), {0}, {});
    const ValueId loss = b.map("div", {sum, b.scalar(DType::F64, kBatch, {})}, {});
    function().results.push_back({ResultKind::Output, "result", -1, loss});
    const std::vector<ValueId> parameters = {w1, b1, w2, b2};
    const std::vector<ValueId> by = gradients(b, loss, parameters);
    b.setPhase(Phase::Update);
    for (std::size_t i = 0; i < parameters.size(); ++i) update(b, i, parameters[i], by[i]);
    for (const Diagnostic& each : sink_.diagnostics()) ADD_FAILURE() << each.message;
    return std::move(module_);
  }

 private:
  Function& function() { return module_.functions[0]; }

  ValueId input(const std::string& name, Type type, const std::string& layout) {
    Argument argument;
    argument.name = name;
    argument.value = function().addValue({.type = std::move(type), .name = name});
    argument.annotation = annotationOf(module_.mesh, layout);
    function().arguments.push_back(argument);
    return argument.value;
  }

  ValueId parameter(const std::string& name, std::vector<std::int64_t> shape, const std::string& layout) {
    const Type type{DType::F64, std::move(shape)};
    Argument argument;
    argument.kind = ArgumentKind::Parameter;
    argument.name = name;
    argument.index = static_cast<std::int64_t>(module_.parameters.size());
    argument.value = function().addValue({.type = type, .name = name});
    function().arguments.push_back(argument);
    module_.parameters.push_back(
        {.name = name, .type = type, .annotation = annotationOf(module_.mesh, layout), .trained = true});
    return argument.value;
  }

  void update(Builder& b, std::size_t index, ValueId w, ValueId g) {
    const Type type = function().type(w);
    const std::string name = module_.parameters[index].name + ".m";
    Argument kept;
    kept.kind = ArgumentKind::State;
    kept.name = name;
    kept.index = static_cast<std::int64_t>(index);
    kept.value = function().addValue({.type = type, .name = "m"});
    function().arguments.push_back(kept);
    std::string layout = type.rank() == 2 && !layout_.states.empty() ? layout_.states : "";
    module_.states.push_back(
        {.name = name, .type = type, .annotation = annotationOf(module_.mesh, layout, true), .parameter = kept.index});
    const ValueId m = b.map("add", {b.map("mul", {b.scalar(DType::F64, 0.9, {}), kept.value}, {}), g}, {});
    const ValueId next = b.map("sub", {w, b.map("mul", {b.scalar(DType::F64, 0.1, {}), m}, {})}, {});
    function().results.push_back({ResultKind::Parameter, module_.parameters[index].name, kept.index, next});
    function().results.push_back({ResultKind::State, name, kept.index, m});
  }

  Layout layout_;
  Module module_;
  CollectingSink sink_;
};

std::vector<Tensor> argumentsOf(const Function& function) {
  std::vector<Tensor> result;
  double seed = 1;
  for (const Argument& argument : function.arguments) {
    Tensor tensor = Tensor::zeros(function.type(argument.value));
    for (std::int64_t i = 0; i < tensor.type.elements(); ++i) {
      seed = std::fmod(seed * 16807, 2147483647);
      tensor.setNumber(i, tensor.isFloat() ? seed / 2147483647 - 0.5 : std::fmod(seed, kClasses));
    }
    result.push_back(std::move(tensor));
  }
  return result;
}

// The collectives of the step, after checking its values against one device.
Strings planOf(const Layout& layout) {
  Module module = MlpBuilder(layout).build();
  const std::vector<Tensor> arguments = argumentsOf(module.functions[0]);
  const std::vector<Tensor> expected = evaluate(module, module.functions[0], arguments).results;
  CollectingSink sink;
  PassOptions options;
  PassContext context{options, sink};
  const PassRun run = runPasses(module, partitionPipeline(), context, {});
  if (run.failure) {
    ADD_FAILURE() << run.failure->pass << ": " << run.failure->fault << "\n" << printModule(module);
    return {};
  }
  EXPECT_EQ(sink.diagnostics().size(), 0u) << sink.diagnostics().front().message;
  const std::vector<Tensor> actual = evaluate(module, module.functions[0], arguments).results;
  for (std::size_t i = 0; i < expected.size(); ++i) {
    for (std::int64_t e = 0; e < expected[i].type.elements(); ++e)
      EXPECT_NEAR(actual[i].number(e), expected[i].number(e), 1e-12);
  }
  Strings plan = collectivesOf(module, "loss");
  if (testing::Test::HasFailure()) ADD_FAILURE() << printModule(module);
  return plan;
}

TEST(Training, DataParallelReducesGradientsTogether) {
  for (const std::int64_t n : {2, 3, 4}) {
    EXPECT_EQ(planOf({{{{"data", n}}}, "data, _", "", "", ""}),
              (Strings{"all_reduce f64+f64[4]+f64[16, 4]+f64[16]+f64[20, 16]"}))
        << n;
  }
}

TEST(Training, ColumnThenRowReducesLogitsOnce) {
  EXPECT_EQ(planOf({{{{"model", 2}}}, "", "_, model", "", ""}), (Strings{"all_reduce f64[62, 4]"}));
}

TEST(Training, BothAxes) {
  EXPECT_EQ(planOf({{{{"data", 2}, {"model", 2}}}, "data, _", "_, model", "", ""}),
            (Strings{"all_reduce f64[62, 4]", "all_reduce f64+f64[4]+f64[16, 4]+f64[16]+f64[20, 16]"}));
}

TEST(Training, StatesSplitOverDataScatterGradientsAndGatherParameters) {
  const Strings plan = planOf({{{{"data", 2}}}, "data, _", "", "", "data, _"});
  // Small ones travel together, whatever their kind.
  EXPECT_EQ(plan, (Strings{"reduce_scatter f64[16, 4]+f64[20, 16]", "all_reduce f64+f64[4]+f64[16]",
                           "all_gather f64[20, 16]+f64[16, 4]"}));
}

TEST(Training, NothingAnnotatedMovesNothing) {
  EXPECT_EQ(planOf({{{{"data", 4}}}, "", "", "", ""}), Strings{});
}

}  // namespace
}  // namespace gshard
