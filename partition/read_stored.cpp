// A parameter or state that is kept `@stored` is read whole: how it is kept says nothing of how it is used. The forward
// and backward pass read it through an alias whose split is inferred; the update works on it as it is kept.
#include <algorithm>

#include "ir/op_table.h"
#include "partition/passes.h"

namespace gshard {

namespace {

bool isStored(const Module& module, const Argument& argument) {
  const std::optional<Annotation>* annotation = nullptr;
  if (argument.kind == ArgumentKind::Parameter)
    annotation = &module.parameters[static_cast<std::size_t>(argument.index)].annotation;
  if (argument.kind == ArgumentKind::State)
    annotation = &module.states[static_cast<std::size_t>(argument.index)].annotation;
  return annotation != nullptr && annotation->has_value() && (*annotation)->stored;
}

void readThroughAlias(Function& function, const Argument& argument) {
  bool read = false;
  for (const Op& op : function.ops) {
    read = read || (op.phase != Phase::Update &&
                    std::find(op.operands.begin(), op.operands.end(), argument.value) != op.operands.end());
  }
  if (!read) return;
  const ValueId alias = function.addValue(function.value(argument.value));
  Annotation annotation;
  annotation.sharding = Sharding::replicated(function.type(alias).rank());
  annotation.open = true;
  annotation.stored = true;
  Op op{OpKind::Annotate,
        {argument.value},
        {alias},
        {},
        argument.annotation ? argument.annotation->range : function.range};
  op.attributes.set("annotation", annotation);
  for (Op& user : function.ops) {
    if (user.phase != Phase::Update) std::replace(user.operands.begin(), user.operands.end(), argument.value, alias);
  }
  function.ops.insert(function.ops.begin(), std::move(op));
}

}  // namespace

void readStored(Module& module, PassContext& context) {
  for (Function& function : module.functions) {
    const std::size_t ops = function.ops.size();
    for (const Argument& argument : function.arguments) {
      if (function.kind != FunctionKind::Init && isStored(module, argument)) readThroughAlias(function, argument);
    }
    if (function.ops.size() == ops) context.unchanged.insert(&function);
  }
}

}  // namespace gshard
