// See partition_wishes.h.
#include "partition_wishes.h"

#include "ir/builder.h"
#include "partition/passes.h"

namespace gshard::conformance {

std::vector<Wish> wishesOf(const Program& base) {
  std::vector<Wish> wishes;
  const auto add = [&](bool ofResult, std::size_t tensor, const Type& type) {
    for (std::int64_t dim = 0; dim < type.rank(); ++dim) {
      wishes.push_back({ofResult, tensor, dim,
                        (ofResult ? "result " : "operand ") + std::to_string(tensor) + " dim " + std::to_string(dim)});
    }
  };
  const Function& function = base.function();
  for (std::size_t i = 0; i < function.arguments.size(); ++i) add(false, i, function.type(function.arguments[i].value));
  for (std::size_t i = 0; i < function.results.size(); ++i) add(true, i, function.type(function.results[i].value));
  return wishes;
}

namespace {
Annotation annotationOf(const Mesh& mesh, const Type& type, std::int64_t dim) {
  Annotation annotation;
  annotation.sharding = Sharding::replicated(type.rank());
  for (std::size_t i = 0; i < mesh.axes.size(); ++i)
    annotation.sharding.dims[static_cast<std::size_t>(dim)].push_back(wholeAxis(mesh, static_cast<int>(i)));
  annotation.sharding = canonical(mesh, annotation.sharding);
  return annotation;
}
}  // namespace

std::optional<Module> partitionedAs(const Program& base, const Wish& wish, std::string* error) {
  Module module = base.module;
  Function& function = module.functions.front();
  CollectingSink sink;
  if (wish.ofResult) {
    Result& result = function.results[wish.tensor];
    const Type type = function.type(result.value);
    Builder builder(module, function, sink);
    result.value = builder.create(OpKind::Annotate, {result.value},
                                  {{"annotation", annotationOf(module.mesh, type, wish.dim)}}, {});
  } else {
    Argument& argument = function.arguments[wish.tensor];
    argument.annotation = annotationOf(module.mesh, function.type(argument.value), wish.dim);
  }
  const PassOptions options;
  PassContext context{options, sink};
  PassManagerOptions managerOptions;
  managerOptions.checkRoundTrip = true;
  const PassRun run = runPasses(module, partitionPipeline(), context, managerOptions);
  if (!run.failure) return module;
  if (error != nullptr) *error = run.failure->pass + ": " + run.failure->fault + "\n" + run.failure->textBefore;
  return std::nullopt;
}

}  // namespace gshard::conformance
