// What belongs to the whole program: mesh, extents, parameters, sites, plan. Functions are in function_tables.cpp.
#include "codegen/program_tables.h"

#include "runtime/abi.h"
#include "support/text.h"

namespace gshard {

ProgramTables::ProgramTables(const Module& module, const CommPlan* plan, const CodegenOptions& options,
                             const SourceManager& sources, const Target& target, const FixedMemory& fixed,
                             ExtentTable& extents, llvm::Module& code, llvm::Module& tables, DebugInfo* debug)
    : module_(module),
      plan_(plan),
      options_(options),
      sources_(sources),
      target_(target),
      fixed_(fixed),
      extents_(extents),
      tables_(tables),
      kernels_(code, target, debug),
      gemms_(code, target) {}

std::string describeOp(const Function& function, const Op& op) {
  std::string text;
  const Attribute* scalar = op.kind == OpKind::Map ? op.attributes.find("fn") : nullptr;
  text = scalar != nullptr ? std::get<std::string>(*scalar) : std::string(*opDef(op.kind).name);
  const std::string& name = op.results.empty() ? std::string() : function.value(op.results[0]).name;
  if (!name.empty() && name != text) text += " `" + name + "`";
  return text;
}

TableWord ProgramTables::location(SourceRange range) {
  const auto [known, isNew] = locations_.try_emplace(range);
  if (isNew) known->second = tables_.text(sources_.describe(range));
  return known->second;
}

TableRows ProgramTables::mesh() {
  TableRows rows;
  for (const MeshAxis& axis : module_.mesh.axes) rows.add(tables_.text(axis.name), axis.size);
  return rows;
}

TableWord ProgramTables::axes(const std::vector<AxisRef>& refs) {
  // Records of three integers lie as a flat array does.
  std::vector<std::int64_t> numbers;
  for (const AxisRef& ref : refs) {
    numbers.push_back(ref.axis);
    numbers.push_back(ref.pre);
    numbers.push_back(ref.size);
  }
  return tables_.integers(numbers);
}

TableRows ProgramTables::extentTable() {
  TableRows rows;
  for (const Extent& extent : extents_.extents())
    rows.add(extent.size, extent.part, extent.rowScale, std::ssize(extent.axes), axes(extent.axes));
  return rows;
}

ProgramTables::Tensor ProgramTables::tensor(const Type& type, const Layout& layout, std::int64_t offset) {
  std::vector<std::int64_t> extents;
  for (const LocalDim& dim : layout.dims) extents.push_back(dim.extent);
  return {static_cast<std::int64_t>(type.dtype),
          type.rank(),
          tables_.integers(type.shape),
          tables_.integers(extents),
          offset,
          layout.bytes()};
}

TableRows ProgramTables::parameters() {
  TableRows rows;
  for (std::size_t i = 0; i < module_.parameters.size(); ++i) {
    const Parameter& parameter = module_.parameters[i];
    const Layout layout = layoutOf(parameter.type, parameter.sharding, extents_);
    rows.add(tables_.text(parameter.name), tensor(parameter.type, layout, fixed_.parameters[i]),
             parameter.trained ? 1 : 0, tables_.text(parameter.doc));
  }
  return rows;
}

TableRows ProgramTables::states() {
  std::vector<bool> isSaved(module_.states.size(), false);
  for (const Function& function : module_.functions) {
    if (function.kind != FunctionKind::Train) continue;
    for (const Result& result : function.results) {
      if (result.kind == ResultKind::State) isSaved[static_cast<std::size_t>(result.index)] = true;
    }
  }
  TableRows rows;
  for (std::size_t i = 0; i < module_.states.size(); ++i) {
    const State& state = module_.states[i];
    const Layout layout = layoutOf(state.type, state.sharding, extents_);
    rows.add(tables_.text(state.name), tensor(state.type, layout, fixed_.states[i]), isSaved[i] ? 1 : 0);
  }
  return rows;
}

TableRows ProgramTables::settings() {
  TableRows rows;
  for (const Setting& setting : module_.settings)
    rows.add(tables_.text(setting.name), static_cast<std::int64_t>(setting.dtype), tables_.real(setting.value),
             tables_.text(setting.doc));
  return rows;
}

TableRows ProgramTables::constants() {
  TableRows rows;
  for (const Constant& constant : module_.constants)
    rows.add(tables_.text(constant.name), tables_.text(constant.type), tables_.text(constant.value),
             tables_.text(constant.doc));
  return rows;
}

TableRows ProgramTables::sites(const std::vector<PlannedFunction>& functions) {
  TableRows rows;
  for (const PlannedFunction& planned : functions) {
    const Function& function = planned.views->function();
    rows.add(location(function.range), tables_.text("entry `" + function.name + "`"));
    for (std::size_t i = 0; i < function.ops.size(); ++i) {
      const Op& op = function.ops[i];
      std::string text = describeOp(function, op);
      // Of what looks up by index a fault says in which tensor.
      const OpClass kind = planned.views->info(i).kind;
      const bool looksUp = kind == OpClass::Take || kind == OpClass::Scatter;
      if (looksUp || kind == OpClass::WindowRead || kind == OpClass::WindowWrite)
        text += " of `" + function.value(op.operands[0]).name + "`";
      rows.add(location(op.range), tables_.text(text));
    }
  }
  return rows;
}

TableRows ProgramTables::planEntries(const std::vector<PlannedFunction>& functions) {
  TableRows rows;
  if (plan_ == nullptr) return rows;
  for (const PlanFunction& function : plan_->functions) {
    for (const PlanEntry& entry : function.collectives) {
      const std::size_t number = static_cast<std::size_t>(entry.function);
      planIndices_[{number, entry.op}] = rows.count();
      rows.add(tables_.text(entry.kind), tables_.text(join(entry.axes, ", ")), tables_.text(entry.reason),
               entry.function, functions[number].firstSite + 1 + entry.op, entry.bytesMax, entry.bytesTotal);
    }
  }
  return rows;
}

std::int64_t ProgramTables::planIndex(std::size_t function, std::int64_t op) const {
  const auto found = planIndices_.find({function, op});
  return found == planIndices_.end() ? -1 : found->second;
}

void ProgramTables::build(const std::vector<PlannedFunction>& functions) {
  const TableRows planTable = planEntries(functions);  // first: steps name their entries
  TableRows functionTable;
  for (std::size_t i = 0; i < functions.size(); ++i) addFunction(functionTable, i, functions);
  const TableRows parameterTable = parameters(), stateTable = states();
  TableRows program;
  const auto addTable = [&]<class Record>(const TableRows& rows) {
    program.extend(rows.count(), tables_.place<Record>(rows));
  };
  program.add(tables_.text(module_.name), tables_.text(options_.compiler), tables_.text(options_.sourceHash),
              tables_.text(target_.cpu()));
  addTable.operator()<gshard_rt_axis>(mesh());
  program.extend(module_.mesh.devices(), options_.threads);
  addTable.operator()<gshard_rt_extent>(extentTable());  // after all that may have added extents
  addTable.operator()<gshard_rt_parameter>(parameterTable);
  addTable.operator()<gshard_rt_state>(stateTable);
  addTable.operator()<gshard_rt_setting>(settings());
  addTable.operator()<gshard_rt_constant>(constants());
  addTable.operator()<gshard_rt_site>(sites(functions));
  addTable.operator()<gshard_rt_plan_entry>(planTable);
  addTable.operator()<gshard_rt_function>(functionTable);
  program.extend(arenaBytes_, fixed_.bytes);
  tables_.define("gshard_image", program);
}

}  // namespace gshard
