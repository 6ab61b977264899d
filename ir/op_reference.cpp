// The op reference as Markdown; see op_reference.h.
#include "ir/op_reference.h"

#include "ir/op_table.h"
#include "ir/scalar_functions.h"
#include "support/text.h"

namespace gshard {

namespace {
std::string_view kindText(AttrKind kind) {
  switch (kind) {
    case AttrKind::Int:
      return "integer";
    case AttrKind::Float:
      return "number";
    case AttrKind::Bool:
      return "true or false";
    case AttrKind::String:
      return "text";
    case AttrKind::Ints:
      return "list of integers";
    case AttrKind::DTypeName:
      return "dtype";
    case AttrKind::Axes:
      return "list of mesh axes";
    case AttrKind::AnnotationText:
      return "sharding";
    case AttrKind::Numbers:
      return "number or list of numbers";
  }
  return "";
}

std::string_view placeText(AttrPlace place) {
  switch (place) {
    case AttrPlace::Braces:
      return "";
    case AttrPlace::OpName:
      return ", written as the op's name";
    case AttrPlace::Word:
    case AttrPlace::Text:
      return ", written after the name";
    case AttrPlace::ResultShape:
    case AttrPlace::ResultDType:
      return ", read off the result type";
  }
  return "";
}

std::string reductionsText(ReductionSet over) {
  std::string text;
  for (unsigned r = 0; r < 6; ++r) {
    const Reduction reduction = static_cast<Reduction>(r);
    if ((over & only(reduction)) != 0) text += (text.empty() ? "" : ", ") + std::string(reductionName(reduction));
  }
  return over == anyReduction ? "any reduction" : text;
}

// "`x` and `updates`", of the operands in the mask.
std::string operandsText(const OpDef& def, OperandMask which) {
  if (which == allOperands) return "all operands";
  std::string text;
  unsigned number = 0;
  for (const std::string& name : splitText((*def.operands).names, ',')) {
    if ((which >> number++ & 1) != 0) text += (text.empty() ? "`" : " and `") + std::string(trim(name)) + "`";
  }
  return text;
}

struct LinearityText {
  const OpDef& def;
  std::string operator()(const NotLinear&) const { return "none"; }
  std::string operator()(const Joint& rule) const {
    return operandsText(def, *rule.which) + ", all pending alike (" + reductionsText(*rule.over) + ")";
  }
  std::string operator()(const Separate& rule) const {
    return "one of " + operandsText(def, *rule.which) + " (sum), the others whole";
  }
  std::string operator()(const LinearityFn&) const { return "depends on attributes and operands"; }
};

struct GradientText {
  std::string operator()(const Vjp&) const { return ""; }
  std::string operator()(const NotDifferentiable& rule) const {
    return "No gradient: " + std::string(*rule.reason) + ".\n\n";
  }
};

std::string opSection(const OpDef& def) {
  std::string text = "### " + std::string(*def.name) + "\n\n" + std::string(*def.doc) + "\n\n";
  if (!(*def.operands).names.empty()) text += "Operands: `" + std::string((*def.operands).names) + "`\n\n";
  for (const AttrSpec& spec : *def.attributes) {
    text +=
        "- `" + std::string(spec.name) + "`: " + std::string(kindText(spec.kind)) + std::string(placeText(spec.place));
    text += spec.optional ? " (optional)\n" : "\n";
  }
  if (!(*def.attributes).empty()) text += "\n";
  text += "Pending operands: " + std::visit(LinearityText{def}, *def.linearity) + ".\n\n";
  text += std::visit(GradientText{}, *def.gradient);
  const Example& example = (*def.examples).front();
  text += "```\n" + std::string(example.ir) + "\n";
  if (!example.args.empty())
    text += "// with " + std::string(example.args) + (example.given.empty() ? "" : " = " + std::string(example.given)) +
            "\n";
  if (!example.expected.empty()) text += "// gives " + std::string(example.expected) + "\n";
  return text + "```\n\n";
}
}  // namespace

std::string opReference() {
  std::string text =
      "# Op reference\n\nGenerated from the op table (`ir/ops/`). The IR's text form is described in `ir/text.h`.\n\n";
  text += "## Ops of programs\n\n";
  for (const OpKind kind : allOps()) {
    if (!isSpmdOnly(kind)) text += opSection(opDef(kind));
  }
  text +=
      "## Ops of partitioned programs\n\nThey keep the global value and change which tile of it a device holds.\n\n";
  for (const OpKind kind : allOps()) {
    if (isSpmdOnly(kind)) text += opSection(opDef(kind));
  }
  text += "## Scalar functions of `map`\n\n| name | operands | meaning |\n|---|---|---|\n";
  for (const ScalarInfo& info : allScalarFunctions()) {
    text += "| `" + std::string(info.name) + "` | " + std::to_string(info.arity) + ", " +
            std::string(scalarOperandsText(info.operands)) + " | " + std::string(info.doc) + " |\n";
  }
  return text;
}

}  // namespace gshard
