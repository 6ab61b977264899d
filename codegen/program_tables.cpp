// What belongs to the whole program: mesh, extents, parameters, sites, plan. Functions are in function_tables.cpp.
#include "codegen/program_tables.h"

#include "runtime/abi.h"
#include "support/text.h"

namespace gshard {

ProgramTables::ProgramTables(const Module& module, const CommPlan* plan, const CodegenOptions& options,
                             const SourceManager& sources, const Target& target, const FixedMemory& fixed,
                             ExtentTable& extents, llvm::Module& llvmModule, DebugInfo* debug)
    : module_(module),
      plan_(plan),
      options_(options),
      sources_(sources),
      target_(target),
      fixed_(fixed),
      extents_(extents),
      tables_(llvmModule),
      kernels_(llvmModule, target, debug),
      gemms_(llvmModule, target) {}

std::string describeOp(const Function& function, const Op& op) {
  std::string text;
  const Attribute* scalar = op.kind == OpKind::Map ? op.attributes.find("fn") : nullptr;
  text = scalar != nullptr ? std::get<std::string>(*scalar) : std::string(*opDef(op.kind).name);
  const std::string& name = op.results.empty() ? std::string() : function.value(op.results[0]).name;
  if (!name.empty() && name != text) text += " `" + name + "`";
  return text;
}

llvm::Constant* ProgramTables::mesh() {
  std::vector<llvm::Constant*> rows;
  for (const MeshAxis& axis : module_.mesh.axes) {
    rows.push_back(tables_.record({tables_.text(axis.name), tables_.integer(axis.size)}));
  }
  return tables_.array(rows, "mesh");
}

llvm::Constant* ProgramTables::axes(const std::vector<AxisRef>& refs) {
  // Records of three integers lie as a flat array does.
  std::vector<std::int64_t> numbers;
  for (const AxisRef& ref : refs) {
    numbers.push_back(ref.axis);
    numbers.push_back(ref.pre);
    numbers.push_back(ref.size);
  }
  return tables_.integers(numbers);
}

llvm::Constant* ProgramTables::extentTable() {
  std::vector<llvm::Constant*> rows;
  for (const Extent& extent : extents_.extents()) {
    rows.push_back(
        tables_.record({tables_.integer(extent.size), tables_.integer(extent.part), tables_.integer(extent.rowScale),
                        tables_.integer(static_cast<std::int64_t>(extent.axes.size())), axes(extent.axes)}));
  }
  return tables_.array(rows, "extents");
}

llvm::Constant* ProgramTables::tensor(const Type& type, const Layout& layout, std::int64_t offset) {
  std::vector<std::int64_t> numbers;
  for (const LocalDim& dim : layout.dims) numbers.push_back(dim.extent);
  return tables_.record({tables_.integer(static_cast<std::int64_t>(type.dtype)), tables_.integer(type.rank()),
                         tables_.integers(type.shape), tables_.integers(numbers), tables_.integer(offset),
                         tables_.integer(layout.bytes())});
}

llvm::Constant* ProgramTables::parameters() {
  std::vector<llvm::Constant*> rows;
  for (std::size_t i = 0; i < module_.parameters.size(); ++i) {
    const Parameter& parameter = module_.parameters[i];
    const Layout layout = layoutOf(parameter.type, parameter.sharding, extents_);
    rows.push_back(tables_.record({tables_.text(parameter.name), tensor(parameter.type, layout, fixed_.parameters[i]),
                                   tables_.integer(parameter.trained ? 1 : 0), tables_.text(parameter.doc)}));
  }
  return tables_.array(rows, "parameters");
}

llvm::Constant* ProgramTables::states() {
  std::vector<bool> isSaved(module_.states.size(), false);
  for (const Function& function : module_.functions) {
    if (function.kind != FunctionKind::Train) continue;
    for (const Result& result : function.results) {
      if (result.kind == ResultKind::State) isSaved[static_cast<std::size_t>(result.index)] = true;
    }
  }
  std::vector<llvm::Constant*> rows;
  for (std::size_t i = 0; i < module_.states.size(); ++i) {
    const State& state = module_.states[i];
    const Layout layout = layoutOf(state.type, state.sharding, extents_);
    rows.push_back(tables_.record(
        {tables_.text(state.name), tensor(state.type, layout, fixed_.states[i]), tables_.integer(isSaved[i] ? 1 : 0)}));
  }
  return tables_.array(rows, "states");
}

llvm::Constant* ProgramTables::settings() {
  std::vector<llvm::Constant*> rows;
  for (const Setting& setting : module_.settings) {
    rows.push_back(
        tables_.record({tables_.text(setting.name), tables_.integer(static_cast<std::int64_t>(setting.dtype)),
                        tables_.real(setting.value), tables_.text(setting.doc)}));
  }
  return tables_.array(rows, "settings");
}

llvm::Constant* ProgramTables::constants() {
  std::vector<llvm::Constant*> rows;
  for (const Constant& constant : module_.constants) {
    rows.push_back(tables_.record({tables_.text(constant.name), tables_.text(constant.type),
                                   tables_.text(constant.value), tables_.text(constant.doc)}));
  }
  return tables_.array(rows, "constants");
}

llvm::Constant* ProgramTables::sites(const std::vector<PlannedFunction>& functions) {
  std::vector<llvm::Constant*> rows;
  for (const PlannedFunction& planned : functions) {
    const Function& function = planned.views->function();
    rows.push_back(tables_.record(
        {tables_.text(sources_.describe(function.range)), tables_.text("entry `" + function.name + "`")}));
    for (std::size_t i = 0; i < function.ops.size(); ++i) {
      const Op& op = function.ops[i];
      std::string text = describeOp(function, op);
      // Of what looks up by index a fault says in which tensor.
      const OpClass kind = planned.views->info(i).kind;
      const bool looksUp = kind == OpClass::Take || kind == OpClass::Scatter;
      if (looksUp || kind == OpClass::WindowRead || kind == OpClass::WindowWrite)
        text += " of `" + function.value(op.operands[0]).name + "`";
      rows.push_back(tables_.record({tables_.text(sources_.describe(op.range)), tables_.text(text)}));
    }
  }
  return tables_.array(rows, "sites");
}

llvm::Constant* ProgramTables::planEntries(const std::vector<PlannedFunction>& functions) {
  std::vector<llvm::Constant*> rows;
  if (plan_ == nullptr) return tables_.null();
  for (const PlanFunction& function : plan_->functions) {
    for (const PlanEntry& entry : function.collectives) {
      const std::size_t number = static_cast<std::size_t>(entry.function);
      planIndices_[{number, entry.op}] = static_cast<std::int64_t>(rows.size());
      const std::int64_t site = functions[number].firstSite + 1 + entry.op;
      rows.push_back(tables_.record({tables_.text(entry.kind), tables_.text(join(entry.axes, ", ")),
                                     tables_.text(entry.reason), tables_.integer(entry.function), tables_.integer(site),
                                     tables_.integer(entry.bytesMax), tables_.integer(entry.bytesTotal)}));
    }
  }
  return tables_.array(rows, "plan");
}

std::int64_t ProgramTables::planIndex(std::size_t function, std::int64_t op) const {
  const auto found = planIndices_.find({function, op});
  return found == planIndices_.end() ? -1 : found->second;
}

void ProgramTables::build(const std::vector<PlannedFunction>& functions) {
  const auto count = [&](std::size_t number) { return tables_.integer(static_cast<std::int64_t>(number)); };
  llvm::Constant* planTable = planEntries(functions);
  const std::int64_t planCount = static_cast<std::int64_t>(planIndices_.size());
  std::vector<llvm::Constant*> rows;
  for (std::size_t i = 0; i < functions.size(); ++i) rows.push_back(function(i, functions));
  llvm::Constant* functionTable = tables_.array(rows, "functions");
  std::size_t siteCount = 0;
  for (const PlannedFunction& planned : functions) siteCount += 1 + planned.views->function().ops.size();
  llvm::Constant* parameterTable = parameters();
  llvm::Constant* stateTable = states();
  llvm::Constant* extentRows = extentTable();  // last: the others may have added extents
  tables_.define("gshard_program", tables_.record({tables_.integer(GSHARD_RT_ABI),
                                                   tables_.text(module_.name),
                                                   tables_.text(options_.compiler),
                                                   tables_.text(options_.sourceHash),
                                                   tables_.text(target_.cpu()),
                                                   count(module_.mesh.axes.size()),
                                                   mesh(),
                                                   tables_.integer(module_.mesh.devices()),
                                                   tables_.integer(options_.threads),
                                                   count(extents_.extents().size()),
                                                   extentRows,
                                                   count(module_.parameters.size()),
                                                   parameterTable,
                                                   count(module_.states.size()),
                                                   stateTable,
                                                   count(module_.settings.size()),
                                                   settings(),
                                                   count(module_.constants.size()),
                                                   constants(),
                                                   count(siteCount),
                                                   sites(functions),
                                                   tables_.integer(planCount),
                                                   planTable,
                                                   count(functions.size()),
                                                   functionTable,
                                                   tables_.integer(arenaBytes_),
                                                   tables_.integer(fixed_.bytes)}));
  tables_.finish();
}

}  // namespace gshard
