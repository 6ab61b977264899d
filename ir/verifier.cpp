// The verifier: what must hold of a module after every pass. The SPMD rule of ops is in verify_spmd_op.cpp.
#include "ir/verifier.h"

#include <algorithm>

#include "ir/known_ops.h"
#include "ir/op_table.h"
#include "ir/recompute.h"
#include "ir/scalar_functions.h"
#include "ir/text.h"
#include "support/check.h"

namespace gshard {

namespace {
using Complaint = std::optional<std::string>;

bool holds(AttrKind kind, const Attribute& value) {
  return value.index() == static_cast<std::size_t>(kind);
}

bool isMarked(const Marks& marks, std::size_t number) {
  return number < marks.size() && marks[number] != 0;
}

void mark(Marks& marks, std::size_t number) {
  if (number >= marks.size()) marks.resize(number + 1, 0);
  marks[number] = 1;
}

class FunctionVerifier {
 public:
  FunctionVerifier(const Module& module, const Function& function, Form form, KnownOps& known)
      : module_(module),
        function_(function),
        form_(form),
        known_(known),
        rightValues_(known.rightValues[static_cast<std::size_t>(form)]),
        rightOps_(known.rightOps[static_cast<std::size_t>(form)]),
        signatures_(function, known.values) {}

  Complaint run() {
    defined_.assign(function_.values.size(), 0);
    for (const Argument& argument : function_.arguments) {
      if (Complaint fault = checkArgument(argument)) return "argument `" + argument.name + "`: " + *fault;
    }
    for (std::size_t i = 0; i < function_.ops.size(); ++i) {
      if (Complaint fault = checkOp(function_.ops[i])) {
        return "op " + std::to_string(i) + " `" + printOp(module_, function_, function_.ops[i]) + "`: " + *fault;
      }
    }
    for (const Result& result : function_.results) {
      if (Complaint fault = checkResult(result)) return "result `" + result.name + "`: " + *fault;
    }
    return std::nullopt;
  }

 private:
  Complaint define(ValueId id) {
    if (id.index >= function_.values.size()) return "a result that is no value of the function";
    if (defined_[id.index] != 0) return "value " + std::to_string(id.index) + " is defined twice";
    defined_[id.index] = 1;
    const std::size_t number = signatures_.number(id);
    if (isMarked(rightValues_, number)) return std::nullopt;
    if (Complaint fault = checkValue(function_.value(id))) return fault;
    mark(rightValues_, number);
    return std::nullopt;
  }

  Complaint checkValue(const Value& value) const {
    for (const std::int64_t size : value.type.shape) {
      if (size < 0) return "`" + printType(value.type) + "` has a negative size";
    }
    if (value.rowDim >= value.type.rank())
      return "`row` names dim " + std::to_string(value.rowDim) + " of `" + printType(value.type) + "`";
    if (value.sharding) return checkSharding(module_.mesh, value.type, *value.sharding);
    return form_ == Form::Spmd ? Complaint("a value without a sharding") : std::nullopt;
  }

  template <class Declarations>
  Complaint checkDeclared(const Declarations& list, std::int64_t index, const std::string& name, ValueId id,
                          const char* what) const {
    if (index < 0 || index >= static_cast<std::int64_t>(list.size()))
      return "names no " + std::string(what) + " of the module";
    const auto& declared = list[static_cast<std::size_t>(index)];
    if (declared.name != name) return "is called `" + declared.name + "` by the module";
    const Value& value = function_.value(id);
    if (declared.type != value.type)
      return "has type `" + printType(value.type) + "`, declared `" + printType(declared.type) + "`";
    if (form_ == Form::Spmd && declared.sharding != value.sharding)
      return "has another sharding than the module declares";
    return std::nullopt;
  }

  Complaint checkArgument(const Argument& argument) {
    if (Complaint fault = define(argument.value)) return fault;
    const Value& value = function_.value(argument.value);
    if (argument.annotation) {
      if (Complaint fault = checkSharding(module_.mesh, value.type, argument.annotation->sharding)) return fault;
    }
    const bool mayBePartial = argument.kind == ArgumentKind::Accumulator;
    if (value.sharding && !value.sharding->partial.empty() && !mayBePartial && form_ == Form::Spmd) return "is partial";
    switch (argument.kind) {
      case ArgumentKind::Input:
        return std::nullopt;
      case ArgumentKind::Parameter:
        return checkDeclared(module_.parameters, argument.index, argument.name, argument.value, "parameter");
      case ArgumentKind::State:
        return checkDeclared(module_.states, argument.index, argument.name, argument.value, "state");
      case ArgumentKind::Step:
      case ArgumentKind::Steps:
        return value.type == Type{DType::I32, {}} ? std::nullopt : Complaint("is no scalar i32");
      case ArgumentKind::Setting: {
        const bool known = argument.index >= 0 && argument.index < static_cast<std::int64_t>(module_.settings.size());
        if (!known) return "names no setting of the module";
        const DType dtype = module_.settings[static_cast<std::size_t>(argument.index)].dtype;
        return value.type == Type{dtype, {}} ? std::nullopt : Complaint("is no scalar of the setting's dtype");
      }
      case ArgumentKind::Accumulator:
        return argument.index >= 0 ? std::nullopt : Complaint("an accumulator without a number");
    }
    GSHARD_UNREACHABLE("ArgumentKind");
  }

  Complaint checkResult(const Result& result) const {
    if (!isKnown(result.value)) return unknown(result.value);
    const Value& value = function_.value(result.value);
    const bool mayBePartial = result.kind == ResultKind::Accumulator;
    if (form_ == Form::Spmd && !mayBePartial && !value.sharding->partial.empty()) return "is partial";
    switch (result.kind) {
      case ResultKind::Output:
      case ResultKind::Report:
        return std::nullopt;
      case ResultKind::Parameter:
        return checkDeclared(module_.parameters, result.index, result.name, result.value, "parameter");
      case ResultKind::State:
        return checkDeclared(module_.states, result.index, result.name, result.value, "state");
      case ResultKind::Accumulator:
        return result.index >= 0 ? std::nullopt : Complaint("an accumulator without a number");
    }
    GSHARD_UNREACHABLE("ResultKind");
  }

  bool isKnown(ValueId id) const { return isMarked(defined_, id.index); }
  static std::string unknown(ValueId id) {
    return "uses value " + std::to_string(id.index) + ", which is not defined before";
  }

  Complaint checkAttributes(const Op& op, const OpDef& def) const {
    for (const AttrSpec& spec : *def.attributes) {
      const Attribute* value = op.attributes.find(spec.name);
      if (value == nullptr && !spec.optional) return "attribute `" + std::string(spec.name) + "` is missing";
      if (value != nullptr && !holds(spec.kind, *value))
        return "attribute `" + std::string(spec.name) + "` has another type";
    }
    for (const auto& [name, value] : op.attributes.items()) {
      if (name == kRecomputeId) {
        if (recomputeIdOf(op) < 1) return "the recompute id is no number from 1";
        continue;
      }
      const auto known =
          std::find_if((*def.attributes).begin(), (*def.attributes).end(),
                       [&, key = std::string_view(name)](const AttrSpec& spec) { return spec.name == key; });
      if (known == (*def.attributes).end()) return "attribute `" + name + "` is unknown";
    }
    return std::nullopt;
  }

  Complaint checkOp(const Op& op) {
    const OpDef& def = opDef(op.kind);
    for (const ValueId operand : op.operands) {
      if (!isKnown(operand)) return unknown(operand);
    }
    const int count = static_cast<int>(op.operands.size());
    if (count < (*def.operands).least || ((*def.operands).most >= 0 && count > (*def.operands).most))
      return "a wrong number of operands";
    for (const ValueId result : op.results) {
      if (Complaint fault = define(result)) return fault;
    }
    signature_.clear();
    signatures_.add(signature_, op);
    const std::size_t number = known_.signatures.of(signature_);
    if (isMarked(rightOps_, number)) return std::nullopt;
    if (Complaint fault = checkMeaning(op, def)) return fault;
    mark(rightOps_, number);
    return std::nullopt;
  }

  // What depends on the op's signature alone.
  Complaint checkMeaning(const Op& op, const OpDef& def) const {
    if (Complaint fault = checkAttributes(op, def)) return fault;
    if (form_ == Form::Global && isSpmdOnly(op.kind)) return "it exists in SPMD form only";
    CollectingSink sink;
    const OpView view(module_, function_, op);
    const std::optional<ResultTypes> types = (*def.infer)(view, sink);
    if (!types) return sink.diagnostics().empty() ? "no types are inferred" : sink.diagnostics().front().message;
    if (types->size() != op.results.size()) return "a wrong number of results";
    for (std::size_t i = 0; i < types->size(); ++i) {
      const Type& declared = function_.type(op.results[i]);
      if (declared != (*types)[i])
        return "`" + printType((*types)[i]) + "` is inferred, `" + printType(declared) + "` declared";
    }
    return form_ == Form::Spmd ? verifySpmdOp(view) : std::nullopt;
  }

  const Module& module_;
  const Function& function_;
  const Form form_;
  KnownOps& known_;
  Marks &rightValues_, &rightOps_;
  OpSignatures signatures_;
  Key signature_;  // of the op at hand
  Marks defined_;  // per value
};

template <class Declarations>
Complaint checkDeclarations(const Module& module, const Declarations& list, Form form) {
  for (const auto& each : list) {
    if (each.annotation) {
      if (Complaint fault = checkSharding(module.mesh, each.type, each.annotation->sharding))
        return "`" + each.name + "`: " + *fault;
    }
    if (!each.sharding) {
      if (form == Form::Spmd) return "`" + each.name + "` has no sharding";
      continue;
    }
    if (Complaint fault = checkSharding(module.mesh, each.type, *each.sharding))
      return "`" + each.name + "`: " + *fault;
    if (!each.sharding->partial.empty()) return "`" + each.name + "` is partial";
  }
  return std::nullopt;
}
}  // namespace

std::optional<std::string> verify(const Module& module, Form form, KnownOps& known,
                                  const std::set<const Function*>& unchanged) {
  if (known.mesh != module.mesh) {
    known = {};
    known.mesh = module.mesh;
  }
  if (Complaint fault = checkDeclarations(module, module.parameters, form)) return "parameter " + *fault;
  if (Complaint fault = checkDeclarations(module, module.states, form)) return "state " + *fault;
  for (const Function& function : module.functions) {
    if (unchanged.contains(&function)) continue;
    if (Complaint fault = FunctionVerifier(module, function, form, known).run())
      return "func @" + function.name + ": " + *fault;
  }
  return std::nullopt;
}

std::optional<std::string> verify(const Module& module, Form form) {
  KnownOps known;
  return verify(module, form, known, {});
}

}  // namespace gshard
