// Annotations: what `@split`, `@replicate` and `@shard` say, as a sharding over the mesh.
#include <algorithm>

#include "sema/annotation_target.h"
#include "sema/diagnostics.h"
#include "support/checked.h"
#include "support/text.h"

namespace gshard::sema {

namespace {

// "`f32[17@data, 16]`": the tensor with what its annotations have said so far.
std::string shownTensor(const Mesh& mesh, const Type& type, const Sharding& sharding) {
  return "`" + printShardedType(mesh, type, sharding) + "`";
}

}  // namespace

// What every message about an annotation shows: the tensor, its sizes, and its splits up to here.
void Elaborator::labelTensor(DiagBuilder& builder, const AnnotationTarget& target) const {
  const std::string shown = shownTensor(mesh_.mesh, *target.type, target.annotation.sharding);
  if (target.written != nullptr)
    builder.label(target.written->range, shown);
  else
    builder.note("the tensor is " + shown);
}

// The first axis that may still split this tensor; empty: none.
std::string Elaborator::freeAxis(const AnnotationTarget& target) const {
  for (std::size_t i = 0; i < mesh_.mesh.axes.size(); ++i) {
    const bool used = std::any_of(target.used.begin(), target.used.end(),
                                  [&](const auto& entry) { return entry.first.axis == static_cast<int>(i); });
    if (!used) return mesh_.mesh.axes[i].name;
  }
  return "";
}

// An axis by its name; other names are values that an axis or a number of parts was kept in.
Datum Elaborator::evalAxis(const std::string& name, SourceRange range, const AnnotationTarget& target, Scope& scope) {
  if (!mesh_.mesh.find(name) && !mesh_.hidden.contains(name)) {
    const std::vector<std::string> names = namesInScope(scope);
    if (std::find(names.begin(), names.end(), name) == names.end()) {
      std::vector<std::string> axes;
      for (const MeshAxis& axis : mesh_.mesh.axes) axes.push_back(axis.name);
      DiagBuilder builder = sink_.emit(range, diag::AxisNotInMesh, name, printMesh(mesh_.mesh));
      labelTensor(builder, target);
      const std::string other = suggest(name, axes).value_or(freeAxis(target));
      if (!other.empty()) builder.fix("split over `" + other + "`", false, {{range, other}});
      return {};
    }
  }
  return evalName(name, range, scope, false);
}

std::optional<std::int64_t> Elaborator::annotationDim(const ast::Expr& dim, AnnotationTarget& target, Scope& scope) {
  const std::int64_t rank = target.type->rank();
  if (const auto* name = ast::as<ast::NameRef>(dim)) {
    if (target.written == nullptr) {
      sink_.emit(dim.range, diag::DimNameWithoutType, name->name).help("count the dims: 0 is the first, -1 the last");
      return std::nullopt;
    }
    const std::vector<std::string>& dims = target.written->dims;
    const auto count = std::count(dims.begin(), dims.end(), name->name);
    if (count == 1) return std::find(dims.begin(), dims.end(), name->name) - dims.begin();
    DiagBuilder builder = sink_.emit(dim.range, diag::DimNameCount, name->name, static_cast<std::int64_t>(count));
    builder.label(target.written->range, "dims are named here");
    if (const std::optional<std::string> close = suggest(name->name, dims); count == 0 && close) {
      builder.fix("did you mean `" + *close + "`?", false, {{dim.range, *close}});
    }
    return std::nullopt;
  }
  const std::optional<std::int64_t> written = evalInt(dim, scope, "the dim of `@split`");
  if (!written) return std::nullopt;
  const std::int64_t at = *written < 0 ? *written + rank : *written;
  if (at >= 0 && at < rank) return at;
  if (target.silent) {
    target.fits = false;
  } else {
    DiagBuilder builder = sink_.emit(dim.range, diag::SplitDim, *written, printType(*target.type), plural(rank, "dim"));
    labelTensor(builder, target);
    if (rank > 0) {
      const std::string last = std::to_string(rank - 1);
      builder.fix("dims are counted from 0; the last is " + last, false, {{dim.range, last}});
    }
  }
  return std::nullopt;
}

bool Elaborator::addAxes(AnnotationTarget& target, std::int64_t dim, const std::vector<AxisRef>& axes,
                         SourceRange range) {
  for (const AxisRef& axis : axes) {
    for (const auto& [other, where] : target.used) {
      if (!overlaps(axis, other) || axis.size == 1) continue;
      DiagBuilder builder = sink_.emit(range, diag::AxisUsedTwice, printAxisRef(mesh_.mesh, axis));
      builder.label(where, "splits a dim here");
      labelTensor(builder, target);
      const std::string free = freeAxis(target);
      builder.help(free.empty() ? "every axis of the mesh is used; leave one of the splits out"
                                : "axis `" + free + "` is free: `@split(" + std::to_string(dim) + ", " + free + ")`");
      return false;
    }
  }
  std::vector<AxisRef>& list = target.annotation.sharding.dims[static_cast<std::size_t>(dim)];
  for (const AxisRef& axis : axes) {
    list.push_back(axis);
    target.used.emplace_back(axis, range);
  }
  if (target.silent && productOf(list) > target.type->shape[static_cast<std::size_t>(dim)]) target.fits = false;
  return true;
}

// With a mesh, an integer names the one axis, or product of adjacent axes, of that size.
std::optional<std::vector<AxisRef>> Elaborator::axesOfSize(std::int64_t parts, const ast::Expr& written,
                                                           AnnotationTarget& target) {
  if (parts < 1) {
    sink_.emit(written.range, diag::ValueDoesNotFit, std::string("the number of parts"), std::to_string(parts),
               std::string("at least 1"));
    return std::nullopt;
  }
  if (parts == 1) return std::vector<AxisRef>{};
  if (!mesh_.declared) {
    const std::optional<std::int64_t> product = checkedMul(target.integerProduct, parts);
    if (!product) {
      sink_.emit(written.range, diag::ValueDoesNotFit, std::string("the number of parts"), std::to_string(parts),
                 std::string("at least 1"));
      return std::nullopt;
    }
    const std::int64_t before = std::exchange(target.integerProduct, *product);
    largestSplit_ = std::max(largestSplit_, *product);
    if (mesh_.collecting) return std::vector<AxisRef>{};
    const std::int64_t devices = mesh_.mesh.devices();
    if (devices % *product != 0) {
      sink_.emit(written.range, diag::SplitDoesNotDivideDevices, parts, before, devices)
          .help("`--devices " + std::to_string(largestSplit_) + "` fits");
      return std::nullopt;
    }
    return std::vector<AxisRef>{{0, before, parts}};
  }
  std::vector<int> large;
  for (std::size_t i = 0; i < mesh_.mesh.axes.size(); ++i) {
    if (mesh_.mesh.axes[i].size > 1) large.push_back(static_cast<int>(i));
  }
  std::vector<std::vector<AxisRef>> found;
  for (std::size_t i = 0; i < large.size(); ++i) {
    std::int64_t product = 1;
    std::vector<AxisRef> axes;
    for (std::size_t k = i; k < large.size() && product < parts; ++k) {
      product *= mesh_.mesh.axes[static_cast<std::size_t>(large[k])].size;
      axes.push_back(wholeAxis(mesh_.mesh, large[k]));
      if (product == parts) found.push_back(axes);
    }
  }
  if (found.size() == 1) return found.front();
  DiagBuilder builder = found.empty()
                            ? sink_.emit(written.range, diag::PartsMatchNoAxis, parts, printMesh(mesh_.mesh))
                            : sink_.emit(written.range, diag::PartsMatchSeveral, parts, printMesh(mesh_.mesh));
  labelTensor(builder, target);
  const auto offer = [&](const std::vector<AxisRef>& axes) {
    std::vector<std::string> names;
    for (const AxisRef& axis : axes) names.push_back(mesh_.mesh.axes[static_cast<std::size_t>(axis.axis)].name);
    builder.fix("name it: `" + join(names, ", ") + "`", false, {{written.range, join(names, ", ")}});
  };
  if (found.empty()) {
    for (const int axis : large) offer({wholeAxis(mesh_.mesh, axis)});
  } else {
    for (const std::vector<AxisRef>& axes : found) offer(axes);
  }
  return std::nullopt;
}

bool Elaborator::applySplit(const ast::SplitAnnotation& split, SourceRange range, AnnotationTarget& target,
                            Scope& scope) {
  target.split = true;
  const std::optional<std::int64_t> dim = annotationDim(*split.dim, target, scope);
  if (!dim) return false;
  SourceRange& before = target.dimRanges[static_cast<std::size_t>(*dim)];
  if (before.known()) {
    DiagBuilder builder = sink_.emit(range, diag::DimSplitTwice, *dim);
    labelTensor(builder, target);
    builder.label(before, "split here first")
        .help("one `@split` takes several axes: `@split(" + std::to_string(*dim) + ", a, b)`, major first");
    return false;
  }
  before = range;
  std::vector<AxisRef> axes;
  for (const ast::ExprPtr& part : split.parts) {
    const auto* name = ast::as<ast::NameRef>(*part);
    const Datum value = name != nullptr ? evalAxis(name->name, part->range, target, scope) : eval(*part, scope);
    if (value.isError()) return false;
    std::vector<AxisRef> own;
    if (const auto* axis = value.as<AxisDatum>()) {
      own = axis->axes;
    } else if (const auto* number = value.as<IntDatum>()) {
      std::optional<std::vector<AxisRef>> found = axesOfSize(number->value, *part, target);
      if (!found) return false;
      own = std::move(*found);
    } else {
      sink_.emit(part->range, diag::ValueDoesNotFit, std::string("a part of a split"), describe(value),
                 std::string("an axis or a number of parts"));
      return false;
    }
    for (const AxisRef& axis : own) {
      for (const AxisRef& other : axes) {
        if (!overlaps(axis, other) || axis.size == 1) continue;
        DiagBuilder builder = sink_.emit(part->range, diag::AxisUsedTwice, printAxisRef(mesh_.mesh, axis));
        labelTensor(builder, target);
        builder.help("name each axis once");
        return false;
      }
      axes.push_back(axis);
    }
  }
  return addAxes(target, *dim, axes, range);
}

bool Elaborator::applyShard(const ast::ShardAnnotation& shard, SourceRange range, AnnotationTarget& target,
                            Scope& scope) {
  target.split = true;
  if (static_cast<std::int64_t>(shard.dims.size()) != target.type->rank()) {
    if (target.silent) {
      target.fits = false;
    } else {
      DiagBuilder builder =
          sink_.emit(range, diag::ShardRank, plural(static_cast<std::int64_t>(shard.dims.size()), "dim"),
                     printType(*target.type), std::to_string(target.type->rank()));
      labelTensor(builder, target);
      builder.help("`_` stands for a dim that is not split");
    }
    return false;
  }
  for (std::size_t d = 0; d < shard.dims.size(); ++d) {
    std::vector<AxisRef> axes;
    for (const ast::Name& name : shard.dims[d].axes) {
      const Datum value = evalAxis(name.text, name.range, target, scope);
      if (value.isError()) return false;
      const auto* axis = value.as<AxisDatum>();
      if (axis == nullptr) {
        sink_.emit(name.range, diag::ValueDoesNotFit, std::string("a part of a split"), describe(value),
                   std::string("an axis or a number of parts"));
        return false;
      }
      axes.insert(axes.end(), axis->axes.begin(), axis->axes.end());
    }
    if (axes.empty()) continue;
    target.dimRanges[d] = range;
    if (!addAxes(target, static_cast<std::int64_t>(d), axes, shard.dims[d].range)) return false;
  }
  return true;
}

bool Elaborator::applyAnnotations(const std::vector<ast::Annotation>& annotations, AnnotationTarget& target,
                                  Scope& scope) {
  ++particulars_;
  target.annotation.sharding = Sharding::replicated(target.type->rank());
  target.annotation.range = annotations.front().range;
  target.dimRanges.resize(target.type->shape.size());
  bool replicate = false;
  for (const ast::Annotation& each : annotations) {
    if (const auto* split = ast::as<ast::SplitAnnotation>(each)) {
      if (!applySplit(*split, each.range, target, scope)) return false;
    } else if (const auto* shard = ast::as<ast::ShardAnnotation>(each)) {
      if (target.split) {
        sink_.emit(each.range, diag::ShardBesideSplit);
        return false;
      }
      if (!applyShard(*shard, each.range, target, scope)) return false;
    } else if (ast::is<ast::ReplicateAnnotation>(each)) {
      replicate = true;
    } else if (ast::is<ast::OpenAnnotation>(each)) {
      target.annotation.open = true;
    } else if (ast::is<ast::StoredAnnotation>(each)) {
      target.annotation.stored = true;
    } else if (ast::is<ast::DeviceListAnnotation>(each)) {
      notSupported(each.range, "explicit device lists (`@shard(tiles: …, devices: …)`) are");
      return false;
    } else if (ast::is<ast::RematAnnotation>(each)) {
      if (!target.isComputed) {
        sink_.emit(each.range, diag::Misplaced, std::string("`@remat`"), std::string("where nothing is computed"))
            .help("it belongs to an expression: `let h = relu(a) @remat`");
        return false;
      }
    } else if (ast::is<ast::PartialAnnotation>(each)) {
      sink_.emit(each.range, diag::PartialOutsideManual);
      return false;
    }
    target.annotation.range = gshard::join(target.annotation.range, each.range);
  }
  const bool afterSplit = target.annotation.open || target.annotation.stored;
  if (replicate && target.split) {
    sink_.emit(target.annotation.range, diag::ReplicateBesideSplit);
    return false;
  }
  if (afterSplit && !target.split) {
    sink_.emit(target.annotation.range, diag::OpenWithoutSplit);
    return false;
  }
  if (target.annotation.stored && !target.mayBeStored) {
    sink_.emit(target.annotation.range, diag::StoredOnValue);
    return false;
  }
  // While devices are being counted, an integer split says nothing yet.
  target.annotation.sharding = canonical(mesh_.mesh, std::move(target.annotation.sharding));
  return true;
}

std::optional<Annotation> Elaborator::resolveAnnotations(const std::vector<ast::Annotation>& annotations,
                                                         const Type& type, const Written* written, Scope& scope,
                                                         bool allowStored, bool isComputed) {
  if (annotations.empty() || ignoresSourceAnnotations()) return std::nullopt;
  AnnotationTarget target;
  target.type = &type;
  target.written = written;
  target.mayBeStored = allowStored;
  target.isComputed = isComputed;
  if (!applyAnnotations(annotations, target, scope)) return std::nullopt;
  return target.annotation;
}

void Elaborator::recompute(const std::vector<ast::Annotation>& annotations, std::size_t before) {
  const bool isAsked = std::any_of(annotations.begin(), annotations.end(),
                                   [](const ast::Annotation& each) { return ast::is<ast::RematAnnotation>(each); });
  if (!isAsked || build_ == nullptr) return;
  ++particulars_;
  build_->recomputeFrom(before);
}

Datum Elaborator::annotate(const Datum& value, const std::vector<ast::Annotation>& annotations, const Written* written,
                           Scope& scope, SourceRange range, bool isComputed) {
  if (annotations.empty() || value.isError()) return value;
  const auto* tensor = value.as<TensorDatum>();
  const bool saysNoSplit = std::all_of(annotations.begin(), annotations.end(),
                                       [](const ast::Annotation& each) { return ast::is<ast::RematAnnotation>(each); });
  if (saysNoSplit && isComputed && (tensor != nullptr || value.is<TupleDatum>())) return value;
  if (tensor == nullptr) {
    sink_.emit(annotations.front().range, diag::AnnotationOnValue, describe(value)).label(range, kindOf(value));
    return {};
  }
  const std::int64_t errors = sink_.errors();
  const std::optional<Annotation> annotation =
      resolveAnnotations(annotations, tensor->type, written, scope, false, isComputed);
  if (sink_.errors() != errors) return {};
  if (!annotation || build_ == nullptr) return value;
  Datum result = ops()->create(OpKind::Annotate, {*tensor}, {{"annotation", *annotation}}, range);
  if (const auto* made = result.as<TensorDatum>()) {
    TensorDatum kept = *made;
    kept.written = tensor->written;
    return kept;
  }
  return result;
}

}  // namespace gshard::sema
