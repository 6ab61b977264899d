// Types: resolving what is written, giving values the type that is declared, and inferring generics.
#include <algorithm>
#include <cctype>

#include "sema/diagnostics.h"
#include "sema/elaborator.h"
#include "support/check.h"
#include "support/text.h"

namespace gshard::sema {

namespace {

using Kind = TypeSpec::Kind;

std::optional<Kind> compileTimeKind(const ast::NamedType& type) {
  if (type.hasShape) return std::nullopt;
  const std::string& name = type.name.text;
  if (name == "int") return Kind::Int;
  if (name == "float") return Kind::Float;
  if (name == "bool") return Kind::Bool;
  if (name == "string") return Kind::String;
  if (name == "dtype") return Kind::DType;
  if (name == "axis") return Kind::Axis;
  return std::nullopt;
}

bool isGeneric(const std::vector<ast::Generic>& generics, const std::string& name, ast::Generic::Kind kind) {
  return std::any_of(generics.begin(), generics.end(),
                     [&](const ast::Generic& generic) { return generic.name.text == name && generic.kind == kind; });
}

// The text of an expression on one line.
std::string flat(std::string_view text) {
  std::string result;
  for (const char c : text) {
    const bool space = std::isspace(static_cast<unsigned char>(c)) != 0;
    if (space && (result.empty() || result.back() == ' ')) continue;
    result += space ? ' ' : c;
  }
  return std::string(trim(result));
}

}  // namespace

std::string Elaborator::sourceText(SourceRange range) const {
  return range.known() ? flat(sources_.text(range)) : "";
}
std::string Elaborator::typeText(const ast::Type& type) const {
  return sourceText(type.range);
}

std::string Elaborator::signatureText(const std::string& name, const std::vector<ast::Parameter>& parameters) const {
  std::vector<std::string> parts;
  for (const ast::Parameter& parameter : parameters) {
    std::string part = parameter.name.text + ": " + typeText(*parameter.type);
    if (parameter.defaultValue != nullptr) part += " = " + sourceText(parameter.defaultValue->range);
    parts.push_back(std::move(part));
  }
  return name + "(" + join(parts, ", ") + ")";
}

std::optional<DType> Elaborator::dtypeNamed(const std::string& name, Scope& scope) {
  if (const Binding* binding = scope.find(name)) {
    if (const auto* dtype = binding->value.as<DTypeDatum>()) return dtype->value;
    return std::nullopt;
  }
  if (const auto found = scope.unit().globals.find(name); found != scope.unit().globals.end()) {
    const Datum value = evalGlobal(scope.unit(), found->second);
    if (const auto* dtype = value.as<DTypeDatum>()) return dtype->value;
    return std::nullopt;
  }
  const Datum given = givenName(name);
  if (const auto* dtype = given.as<DTypeDatum>()) return dtype->value;
  return std::nullopt;
}

std::shared_ptr<const Written> Elaborator::writtenShape(const ast::Type& type, std::int64_t rank) const {
  const auto* named = ast::as<ast::NamedType>(type);
  if (named == nullptr) return nullptr;
  Written written;
  written.range = type.range;
  for (const ast::Dim& dim : named->dims) {
    if (dim.size != nullptr) {
      written.dims.push_back(sourceText(dim.size->range));
      continue;
    }
    // A spread stands for the dims that the others leave.
    const std::int64_t spread = rank - static_cast<std::int64_t>(named->dims.size()) + 1;
    for (std::int64_t i = 0; i < spread; ++i) written.dims.push_back("..." + dim.spread.text);
  }
  return std::make_shared<const Written>(std::move(written));
}

std::optional<std::vector<std::int64_t>> Elaborator::resolveShape(const ast::NamedType& type, Scope& scope) {
  std::vector<std::int64_t> shape;
  for (const ast::Dim& dim : type.dims) {
    if (dim.size == nullptr) {
      const Datum sizes = evalName(dim.spread.text, dim.spread.range, scope, false);
      if (sizes.isError()) return std::nullopt;
      const auto* list = sizes.as<ListDatum>();
      for (std::size_t i = 0; list != nullptr && i < list->items->size(); ++i) {
        const auto* size = (*list->items)[i].as<IntDatum>();
        if (size == nullptr)
          list = nullptr;
        else
          shape.push_back(size->value);
      }
      if (list == nullptr) {
        sink_.emit(dim.spread.range, diag::ValueDoesNotFit, std::string("`...` in a shape"), describe(sizes),
                   std::string("a list of ints"));
        return std::nullopt;
      }
      continue;
    }
    const std::optional<std::int64_t> size = evalInt(*dim.size, scope, "a dim");
    if (!size) return std::nullopt;
    if (*size < 0) {
      sink_.emit(dim.range, diag::NegativeSize, static_cast<std::int64_t>(shape.size()), *size);
      return std::nullopt;
    }
    shape.push_back(*size);
  }
  return shape;
}

std::optional<TypeSpec> Elaborator::resolveType(const ast::Type& type, Scope& scope) {
  TypeSpec result;
  result.source = &type;
  if (ast::is<ast::ErrorType>(type)) return std::nullopt;
  if (const auto* list = ast::as<ast::ListType>(type)) {
    result.kind = Kind::List;
    std::optional<TypeSpec> element = resolveType(*list->element, scope);
    if (!element) return std::nullopt;
    result.elements.push_back(std::move(*element));
    return result;
  }
  if (const auto* tuple = ast::as<ast::TupleType>(type)) {
    result.kind = Kind::Tuple;
    for (const ast::TypePtr& each : tuple->elements) {
      std::optional<TypeSpec> element = resolveType(*each, scope);
      if (!element) return std::nullopt;
      result.elements.push_back(std::move(*element));
    }
    return result;
  }
  const auto& named = std::get<ast::NamedType>(type.node);
  const std::string& name = named.name.text;
  if (scope.find(name) == nullptr) {
    if (const std::optional<Kind> kind = compileTimeKind(named)) {
      result.kind = *kind;
      return result;
    }
  }
  const std::optional<DType> dtype = name == "bool" ? DType::Bool : dtypeNamed(name, scope);
  if (!dtype) {
    std::vector<std::string> names = {"f32",  "bf16", "f16", "f64",   "i32",    "i64",   "u8",  "bool",
                                      "real", "wide", "int", "float", "string", "dtype", "axis"};
    for (const auto& [known, global] : scope.unit().globals) names.push_back(known);
    DiagBuilder builder = sink_.emit(named.name.range, diag::UnknownType, name);
    if (const std::optional<std::string> close = suggest(name, names)) {
      builder.fix("did you mean `" + *close + "`?", false, {{named.name.range, *close}});
    }
    return std::nullopt;
  }
  std::optional<std::vector<std::int64_t>> shape = resolveShape(named, scope);
  if (!shape) return std::nullopt;
  result.tensor = Type{*dtype, std::move(*shape)};
  if (!checkSize(result.tensor, type.range, sink_)) return std::nullopt;
  result.written = writtenShape(type, result.tensor.rank());
  return result;
}

namespace {

std::string kindName(const TypeSpec& type) {
  switch (type.kind) {
    case Kind::Int:
      return "int";
    case Kind::Float:
      return "float";
    case Kind::Bool:
      return "bool";
    case Kind::String:
      return "string";
    case Kind::DType:
      return "dtype";
    case Kind::Axis:
      return "axis";
    case Kind::List:
      return "[" + kindName(type.elements.front()) + "]";
    case Kind::Tensor:
      return printType(type.tensor);
    case Kind::Tuple: {
      std::vector<std::string> parts;
      for (const TypeSpec& element : type.elements) parts.push_back(kindName(element));
      return "(" + join(parts, ", ") + ")";
    }
  }
  GSHARD_UNREACHABLE("type");
}

// Where declared and given shape first differ: "dim 1 is `hidden` = 256, given 64".
std::string shapeDifference(const Type& wanted, const Written* written, const Type& given) {
  if (wanted.rank() != given.rank()) {
    return "it has " + plural(given.rank(), "dim") + ", declared " +
           (wanted.rank() == 1 ? "is 1" : "are " + std::to_string(wanted.rank()));
  }
  for (std::size_t d = 0; d < wanted.shape.size(); ++d) {
    if (wanted.shape[d] == given.shape[d]) continue;
    std::string name;
    if (written != nullptr && d < written->dims.size() && written->dims[d] != std::to_string(wanted.shape[d])) {
      name = "`" + written->dims[d] + "` = ";
    }
    return "dim " + std::to_string(d) + " is declared " + name + std::to_string(wanted.shape[d]) + " and given " +
           std::to_string(given.shape[d]);
  }
  return "";
}

}  // namespace

Datum Elaborator::convert(const Datum& value, const TypeSpec& type, SourceRange range, const std::string& what) {
  if (value.isError()) return {};
  const auto mismatch = [&]() -> Datum {
    DiagBuilder builder = sink_.emit(range, diag::TypeDiffers, what, kindName(type), describe(value));
    if (type.source != nullptr) builder.label(type.source->range, "declared here");
    const bool compileTime = type.kind != Kind::Tensor && type.kind != Kind::Tuple;
    if (compileTime && value.isTensorLike()) {
      builder.note("a tensor is known at run time only");
      if (type.kind == Kind::Bool && type.source != nullptr) {
        const SourceRange written = type.source->range;
        builder.fix("a run-time scalar is written `bool[]`", true, {{{written.file, written.end, written.end}, "[]"}});
      }
    }
    return {};
  };
  switch (type.kind) {
    case Kind::Int:
      if (const auto* axis = value.as<AxisDatum>(); axis != nullptr && axis->name == "devices")
        return makeInt(productOf(axis->axes));
      return value.is<IntDatum>() ? value : mismatch();
    case Kind::Float:
      if (const auto* i = value.as<IntDatum>())
        return FloatDatum{static_cast<double>(i->value), derived(i->rows, i->rows)};
      return value.is<FloatDatum>() ? value : mismatch();
    case Kind::Bool:
      return value.is<BoolDatum>() ? value : mismatch();
    case Kind::String:
      return value.is<StringDatum>() ? value : mismatch();
    case Kind::DType:
      return value.is<DTypeDatum>() ? value : mismatch();
    case Kind::Axis:
      return value.is<AxisDatum>() ? value : mismatch();
    case Kind::List: {
      std::vector<Datum> items;
      if (const auto* list = value.as<ListDatum>()) {
        items = *list->items;
      } else if (const auto* r = value.as<RangeDatum>(); r != nullptr && r->high - r->low <= 1'000'000) {
        for (std::int64_t i = r->low; i < r->high; ++i) items.push_back(makeInt(i));
      } else {
        return mismatch();
      }
      for (Datum& item : items) {
        item = convert(item, type.elements.front(), range, "an element of " + what);
        if (item.isError()) return {};
      }
      return makeList(std::move(items));
    }
    case Kind::Tuple: {
      const auto* tuple = value.as<TupleDatum>();
      if (tuple == nullptr || tuple->items->size() != type.elements.size()) return mismatch();
      std::vector<Datum> items;
      for (std::size_t i = 0; i < type.elements.size(); ++i) {
        items.push_back(
            convert((*tuple->items)[i], type.elements[i], range, "part " + std::to_string(i) + " of " + what));
        if (items.back().isError()) return {};
      }
      return makeTuple(std::move(items));
    }
    case Kind::Tensor:
      break;
  }
  Datum tensor = value;
  if (!value.is<TensorDatum>()) {
    const bool number = value.isNumber() || value.is<BoolDatum>() || value.is<ChoiceDatum>();
    if (!number) return mismatch();
    if (build_ == nullptr) {
      sink_.emit(range, diag::TensorOutsideFunction, what);
      return {};
    }
    const std::optional<TensorDatum> adapted = ops()->adapt(value, type.tensor.dtype, range);
    if (!adapted) return {};
    tensor = *adapted;
  }
  TensorDatum result = *tensor.as<TensorDatum>();
  if (result.type.dtype != type.tensor.dtype) {
    mismatch();
    return {};
  }
  if (result.type.shape != type.tensor.shape) {
    DiagBuilder builder = sink_.emit(range, diag::TypeDiffers, what, printType(type.tensor), describe(tensor));
    if (type.source != nullptr) builder.label(type.source->range, "declared here");
    builder.note(shapeDifference(type.tensor, type.written.get(), result.type));
    return {};
  }
  if (type.written != nullptr) result.written = type.written;
  return result;
}

bool Elaborator::infer(const ast::Type& type, const Datum& value, const std::vector<ast::Generic>& generics,
                       GenericValues& values, const std::string& what, SourceRange range) {
  if (generics.empty()) return true;
  if (const auto* tuple = ast::as<ast::TupleType>(type)) {
    const auto* items = value.as<TupleDatum>();
    if (items == nullptr || items->items->size() != tuple->elements.size()) return true;  // convert reports
    for (std::size_t i = 0; i < tuple->elements.size(); ++i) {
      if (!infer(*tuple->elements[i], (*items->items)[i], generics, values, what, range)) return false;
    }
    return true;
  }
  const auto* named = ast::as<ast::NamedType>(type);
  const auto* tensor = value.as<TensorDatum>();
  if (named == nullptr || tensor == nullptr) return true;
  const auto bind = [&](const std::string& name, const Datum& found, const std::string& from) {
    const auto [known, isNew] = values.try_emplace(name, GenericValue{found, from});
    if (isNew) return true;
    Datum& before = known->second.value;
    const auto* i = before.as<IntDatum>();
    const auto* j = found.as<IntDatum>();
    const std::optional<bool> equal = equalDatums(before, found);
    if (equal && *equal) {
      // Of two equal sizes, the one that counts rows says more.
      if (i != nullptr && j != nullptr && j->rows != RowsUse::None) before = found;
      return true;
    }
    sink_.emit(range, diag::GenericDiffers, name, printDatum(before), known->second.from, printDatum(found), from);
    return false;
  };
  if (isGeneric(generics, named->name.text, ast::Generic::Kind::Dtype)) {
    if (!bind(named->name.text, DTypeDatum{tensor->type.dtype}, "`" + what + "`")) return false;
  }
  const std::size_t rank = tensor->type.shape.size();
  const bool hasSpread =
      std::any_of(named->dims.begin(), named->dims.end(), [](const ast::Dim& dim) { return dim.size == nullptr; });
  const std::size_t fixed = named->dims.size() - (hasSpread ? 1 : 0);
  if (rank < fixed || (!hasSpread && rank != fixed)) {
    sink_
        .emit(range, diag::RankDiffers, what, typeText(type), describe(value),
              plural(static_cast<std::int64_t>(rank), "dim"))
        .label(type.range, "declared here");
    return false;
  }
  std::size_t at = 0;
  for (const ast::Dim& dim : named->dims) {
    if (dim.size == nullptr) {
      std::vector<Datum> sizes;
      for (std::size_t i = 0; i < rank - fixed; ++i)
        sizes.push_back(ops()->dimSize(*tensor, static_cast<std::int64_t>(at++)));
      if (isGeneric(generics, dim.spread.text, ast::Generic::Kind::Dims) &&
          !bind(dim.spread.text, makeList(std::move(sizes)), "`" + what + "`")) {
        return false;
      }
      continue;
    }
    const auto* name = ast::as<ast::NameRef>(*dim.size);
    if (name != nullptr && isGeneric(generics, name->name, ast::Generic::Kind::Dim)) {
      const std::string from = "dim " + std::to_string(at) + " of `" + what + "`";
      if (!bind(name->name, ops()->dimSize(*tensor, static_cast<std::int64_t>(at)), from)) return false;
    }
    ++at;
  }
  return true;
}

}  // namespace gshard::sema
