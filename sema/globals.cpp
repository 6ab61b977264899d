// Top-level names: constants and what overrides them, lazily evaluated lets, and the mesh.
#include <algorithm>
#include <charconv>

#include "sema/diagnostics.h"
#include "sema/elaborator.h"
#include "support/text.h"

namespace gshard::sema {

void Elaborator::notSupported(SourceRange range, const std::string& what) {
  sink_.emit(range, diag::NotSupportedYet, what);
}

// Saves what belongs to the evaluation that is going on, and starts one outside functions.
class Elaborator::Context {
 public:
  explicit Context(Elaborator& elaborator) : elaborator_(&elaborator) {
    build_ = elaborator.build_;
    frames_.swap(elaborator.frames_);
    naming_.swap(elaborator.naming_);
    declared_.swap(elaborator.declared_);
    elaborator.setBuild(nullptr);
  }
  ~Context() {
    elaborator_->frames_.swap(frames_);
    elaborator_->naming_.swap(naming_);
    elaborator_->declared_.swap(declared_);
    elaborator_->setBuild(build_);
  }
  Context(const Context&) = delete;
  Context& operator=(const Context&) = delete;

 private:
  Elaborator* elaborator_;
  FunctionBuild* build_;
  std::vector<Frame> frames_;
  std::optional<std::string> naming_;
  std::optional<TypeSpec> declared_;
};

Datum Elaborator::evalGlobal(const FileUnit& unit, const Global& global) {
  if (const auto* fn = ast::as<ast::FnDecl>(*global.decl)) return FunctionRef{fn, &unit, nullptr};
  if (const auto* model = ast::as<ast::ModelDecl>(*global.decl)) return ModelRef{model, &unit};
  if (const auto* optimizer = ast::as<ast::OptimizerDecl>(*global.decl)) return OptimizerRef{optimizer, &unit};
  if (global.state == Global::State::Done) return global.value;
  if (global.state == Global::State::InProgress) {
    sink_.emit(global.range, diag::DefinedByItself, global.name);
    return {};
  }
  global.state = Global::State::InProgress;
  const Context context(*this);
  if (const auto* constant = ast::as<ast::ConstDecl>(*global.decl)) {
    global.value = evalConst(unit, *constant);
  } else if (const auto* let = ast::as<ast::Let>(*global.decl)) {
    Scope scope(unit, nullptr);
    naming_ = unit.isMain ? let->names.front().text : unit.name + "." + let->names.front().text;
    if (let->isTuple) naming_ = std::nullopt;
    Datum value = eval(*let->value, scope);
    if (let->type != nullptr && !value.isError()) {
      const std::optional<TypeSpec> type = resolveType(*let->type, scope);
      value = type ? convert(value, *type, let->value->range, "`" + global.name + "`") : Datum{};
    }
    if (let->isTuple) {
      const auto* tuple = value.as<TupleDatum>();
      if (tuple != nullptr && tuple->items->size() == let->names.size()) {
        // All names of the tuple at once: its right side is evaluated a single time.
        for (std::size_t i = 0; i < let->names.size(); ++i) {
          const auto found = unit.globals.find(let->names[i].text);
          if (found == unit.globals.end() || found->second.decl != global.decl) continue;
          found->second.value = (*tuple->items)[found->second.position];
          found->second.state = Global::State::Done;
        }
        return global.value;
      }
      if (!value.isError()) {
        sink_.emit(global.decl->range, diag::TupleSizes, static_cast<std::int64_t>(let->names.size()), describe(value));
      }
      value = {};
    }
    global.value = std::move(value);
  }
  global.state = Global::State::Done;
  return global.value;
}

std::optional<Datum> Elaborator::parseDefine(const std::string& text) const {
  if (text == "true" || text == "false") return makeBool(text == "true");
  if (text == "none") return Datum(NoneDatum{});
  std::int64_t whole = 0;
  const char* end = text.data() + text.size();
  if (const auto [at, error] = std::from_chars(text.data(), end, whole); error == std::errc() && at == end)
    return makeInt(whole);
  double number = 0;
  if (const auto [at, error] = std::from_chars(text.data(), end, number); error == std::errc() && at == end)
    return makeFloat(number);
  if (text == "bool") return Datum(DTypeDatum{DType::Bool});
  if (text == "real") return Datum(DTypeDatum{real_});
  if (const std::optional<DType> dtype = dtypeFromName(text)) return Datum(DTypeDatum{*dtype});
  if (text.size() >= 2 && text.front() == '"' && text.back() == '"')
    return Datum(StringDatum{text.substr(1, text.size() - 2)});
  return std::nullopt;
}

void Elaborator::applyDefines() {
  for (const auto& [name, text] : options_.defines) {
    if (name == "real") {
      const std::optional<DType> dtype = dtypeFromName(text);
      if (dtype && isFloat(*dtype)) {
        real_ = *dtype;
      } else {
        sink_.emit({}, diag::DefineValue, name, text, std::string("a float dtype such as f64"));
      }
      continue;
    }
    const auto found = program_.main->globals.find(name);
    if (found != program_.main->globals.end() && ast::is<ast::ConstDecl>(*found->second.decl)) {
      defines_[name] = text;
      continue;
    }
    std::vector<std::string> names;
    for (const auto& [known, global] : program_.main->globals) {
      if (ast::is<ast::ConstDecl>(*global.decl)) names.push_back(known);
    }
    DiagBuilder builder = sink_.emit({}, diag::DefineUnknown, name);
    if (const std::optional<std::string> close = suggest(name, names)) {
      builder.help("did you mean `" + *close + "`?");
    } else if (!names.empty()) {
      builder.note("constants here: " + join(names, ", "));
    }
  }
}

void Elaborator::applyPrecision() {
  const bool isDefined = std::any_of(options_.defines.begin(), options_.defines.end(),
                                     [](const auto& define) { return define.first == "real"; });
  Scope scope(*program_.main, nullptr);
  for (const ast::Decl& decl : program_.main->ast->decls) {
    const auto* train = ast::as<ast::TrainDecl>(decl);
    if (train == nullptr) continue;
    for (const ast::TrainDecl::Option& option : train->options) {
      if (option.name.text != "precision") continue;
      const Datum value = eval(*option.value, scope);
      const auto* dtype = value.as<DTypeDatum>();
      if (dtype != nullptr && isFloat(dtype->value)) {
        if (!isDefined) real_ = dtype->value;
      } else if (!value.isError()) {
        sink_.emit(option.value->range, diag::ValueDoesNotFit, std::string("`precision`"), describe(value),
                   std::string("a float dtype such as bf16"));
      }
    }
  }
}

// A string override of a string constant needs no quotes.
Datum Elaborator::evalConst(const FileUnit& unit, const ast::ConstDecl& decl) {
  Scope scope(unit, nullptr);
  Datum value = eval(*decl.value, scope);
  if (value.isError()) return {};
  std::optional<TypeSpec> type;
  if (decl.type != nullptr) {
    type = resolveType(*decl.type, scope);
    if (!type) return {};
  }
  const bool isSetting = type && type->kind == TypeSpec::Kind::Tensor;
  const bool isKnown = value.isNumber() || value.is<BoolDatum>() || value.is<StringDatum>() || value.is<DTypeDatum>() ||
                       value.is<ListDatum>() || value.is<NoneDatum>() || value.is<AxisDatum>() ||
                       value.is<RangeDatum>();
  if (!isKnown) {
    sink_.emit(decl.value->range, diag::ValueDoesNotFit, "const `" + decl.name.text + "`", describe(value),
               std::string("a compile-time value"));
    return {};
  }
  const auto define = unit.isMain ? defines_.find(decl.name.text) : defines_.end();
  if (define != defines_.end()) {
    std::optional<Datum> given = parseDefine(define->second);
    if (value.is<StringDatum>() && (!given || !given->is<StringDatum>())) given = Datum(StringDatum{define->second});
    const bool sameKind =
        given && (given->node.index() == value.node.index() || (value.is<FloatDatum>() && given->is<IntDatum>()) ||
                  (isSetting && given->isNumber()));
    if (!sameKind) {
      sink_.emit(decl.name.range, diag::DefineValue, decl.name.text, define->second, kindOf(value))
          .label(decl.value->range, "declared so");
      return {};
    }
    value = value.is<FloatDatum>() && given->is<IntDatum>() ? makeFloat(numberOf(*given)) : *given;
  }
  if (!isSetting) {
    if (type) value = convert(value, *type, decl.value->range, "`" + decl.name.text + "`");
    if (unit.isMain && !value.isError()) {
      module_.constants.push_back({decl.name.text, kindOf(value), printDatum(value), decl.doc});
    }
    return value;
  }
  if (!type->tensor.isScalar() || !isFloat(type->tensor.dtype)) {
    sink_.emit(decl.type->range, diag::TypeDoesNotFit, decl.name.text, printType(type->tensor),
               std::string("a float scalar"));
    return {};
  }
  if (!value.isNumber()) {
    convert(value, *type, decl.value->range, "`" + decl.name.text + "`");
    return {};
  }
  Setting setting;
  setting.name = unit.isMain ? decl.name.text : unit.name + "." + decl.name.text;
  setting.dtype = type->tensor.dtype;
  setting.value = numberOf(value);
  setting.doc = decl.doc;
  module_.settings.push_back(std::move(setting));
  return SettingDatum{static_cast<std::int64_t>(module_.settings.size()) - 1};
}

static constexpr std::int64_t kMostDevices = std::int64_t{1} << 31;

// Whether the mesh may grow by an axis of this size.
static bool fits(const Mesh& mesh, std::int64_t size) {
  return size >= 1 && size <= kMostDevices && mesh.devices() <= kMostDevices / size;
}

static void refuseSize(DiagBuilder builder, std::int64_t size) {
  if (size >= 1) builder.note("a mesh has at most 2147483648 devices");
}

bool Elaborator::meshFromOption(const std::string& text) {
  Mesh mesh;
  for (const std::string& part : splitText(text, ',')) {
    const std::size_t equals = part.find('=');
    const std::string name(trim(std::string_view(part).substr(0, equals)));
    const std::string size(equals == std::string::npos ? std::string_view()
                                                       : trim(std::string_view(part).substr(equals + 1)));
    std::int64_t value = 0;
    const char* end = size.data() + size.size();
    const auto [at, error] = std::from_chars(size.data(), end, value);
    if (name.empty() || size.empty() || error != std::errc() || at != end || value < 1 || mesh.find(name)) {
      sink_.emit({}, diag::MeshOption, text).note("as `--mesh data=2,model=4`, sizes of at least 1");
      return false;
    }
    if (!fits(mesh, value)) {
      refuseSize(sink_.emit({}, diag::MeshAxisSize, name, value), value);
      return false;
    }
    mesh.axes.push_back({name, value});
  }
  mesh_.mesh = std::move(mesh);
  mesh_.declared = true;
  return true;
}

bool Elaborator::chooseMesh(std::optional<std::int64_t> devices) {
  const ast::MeshDecl* decl = nullptr;
  SourceRange range;
  bool good = true;
  const auto look = [&](const ast::File& file) {
    for (const ast::Decl& each : file.decls) {
      const auto* mesh = ast::as<ast::MeshDecl>(each);
      if (mesh == nullptr) continue;
      if (decl != nullptr) {
        sink_.emit(each.range, diag::MeshTwice).label(range, "declared here first");
        good = false;
        continue;
      }
      decl = mesh;
      range = each.range;
    }
  };
  for (const auto& layout : program_.layouts) look(*layout);
  const bool fromLayout = decl != nullptr;
  if (!fromLayout) look(*program_.main->ast);
  Mesh written;
  if (decl != nullptr) {
    Scope scope(*program_.main, nullptr);
    for (const ast::MeshDecl::Axis& axis : decl->axes) {
      const std::optional<std::int64_t> size = evalInt(*axis.size, scope, "the size of a mesh axis");
      if (!size) return false;
      if (!fits(written, *size)) {
        refuseSize(sink_.emit(axis.size->range, diag::MeshAxisSize, axis.name.text, *size), *size);
        return false;
      }
      const auto known = program_.main->globals.find(axis.name.text);
      if (written.find(axis.name.text) || known != program_.main->globals.end() || axis.name.text == "devices") {
        DiagBuilder builder = sink_.emit(axis.name.range, diag::DeclaredTwice, axis.name.text);
        if (known != program_.main->globals.end()) builder.label(known->second.range, "declared here");
        builder.note("values, types and axes share one namespace");
        good = false;
        continue;
      }
      written.axes.push_back({axis.name.text, *size});
    }
  }
  std::int64_t total = 1;
  if (options_.mesh) {
    if (!meshFromOption(*options_.mesh)) return false;
  } else if (decl != nullptr) {
    mesh_.mesh = written;
    mesh_.declared = true;
    if (options_.devices) {
      for (MeshAxis& axis : mesh_.mesh.axes) axis.size = 1;
      if (!mesh_.mesh.axes.empty()) mesh_.mesh.axes.front().size = *options_.devices;
    }
  } else {
    total = options_.devices ? *options_.devices : devices.value_or(1);
    mesh_.collecting = !options_.devices && !devices;
    mesh_.mesh.axes = {{"devices", total}};
  }
  for (const MeshAxis& axis : written.axes) {
    if (!mesh_.mesh.find(axis.name)) mesh_.hidden.insert(axis.name);
  }
  module_.mesh = mesh_.mesh;
  module_.meshDeclared = mesh_.declared;
  return good;
}

}  // namespace gshard::sema
