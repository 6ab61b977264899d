// Reading ops and values of IR text; see text_parse_op.h.
#include "ir/text_parse_op.h"

#include "ir/op_table.h"
#include "ir/recompute.h"
#include "ir/scalar_functions.h"
#include "support/check.h"

namespace gshard {

static bool isNumber(const std::string& name) {
  return name.find_first_not_of("0123456789") == std::string::npos;
}

Value IrValues::takeType(const Mesh& mesh, const std::string& name, SourceRange range) {
  Value value;
  value.type = in_->takeType();
  value.sharding = in_->takeOptionalSharding(mesh);
  if (in_->acceptName("row")) value.rowDim = in_->takeInt();
  value.name = isNumber(name) ? "" : name;
  value.range = range;
  return value;
}

ValueId IrValues::define(Function& function, const std::string& name, Value value, SourceRange range) {
  const ValueId id = function.addValue(std::move(value));
  if (!values_.emplace(name, id).second) in_->error(range, diag::IrSyntax, "a new name", "`%" + name + "` again");
  return id;
}

ValueId IrValues::takeKnown() {
  const SourceRange range = in_->peek().range;
  const std::string name = in_->takeValue();
  const auto found = values_.find(name);
  if (found != values_.end()) return found->second;
  in_->error(range, diag::IrUnknownName, "value", "%" + name);
  return {};
}

namespace {
class OpReader {
 public:
  OpReader(IrCursor& in, const Module& module, IrValues& values) : in_(in), module_(module), values_(values) {}

  void read(Function& function) {
    std::vector<std::pair<std::string, SourceRange>> names;
    do {
      const SourceRange range = in_.peek().range;
      names.emplace_back(in_.takeValue(), range);
    } while (in_.acceptMark(","));
    in_.expectMark("=");
    Op op{.kind = OpKind::Map, .operands = {}, .results = {}, .attributes = {}, .range = in_.peek().range};
    const SourceRange headRange = in_.peek().range;
    const std::string head = in_.takeName("the name of an op");
    if (!chooseKind(head, headRange, op)) return;
    readWords(op);
    if (in_.peek().kind == IrTokenKind::Value) {
      do {
        op.operands.push_back(values_.takeKnown());
      } while (in_.acceptMark(","));
    }
    if (in_.isMark("{")) readAttributes(op);
    in_.expectMark(":");
    std::vector<Value> results;
    for (std::size_t i = 0; i < names.size(); ++i) {
      if (i > 0) in_.expectMark(",");
      results.push_back(values_.takeType(module_.mesh, names[i].first, names[i].second));
    }
    if (in_.acceptName("backward")) {
      op.phase = Phase::Backward;
    } else if (in_.acceptName("update")) {
      op.phase = Phase::Update;
    }
    op.range = join(names[0].second, in_.previous().range);
    if (in_.failed() || !finishAttributes(op, head, results) || !checkTypes(function, op, head, results)) return;
    for (std::size_t i = 0; i < names.size(); ++i) {
      op.results.push_back(values_.define(function, names[i].first, std::move(results[i]), names[i].second));
    }
    function.ops.push_back(std::move(op));
  }

 private:
  bool chooseKind(const std::string& head, SourceRange range, Op& op) {
    if (in_.failed()) return false;
    if (scalarFromName(head)) {
      op.attributes.set("fn", head);
      return true;
    }
    const std::optional<OpKind> kind = opFromName(head);
    if (!kind || *kind == OpKind::Map) {
      in_.error(range, diag::IrUnknownName, "op", head);
      return false;
    }
    op.kind = *kind;
    return true;
  }

  void readWords(Op& op) {
    for (const AttrSpec& spec : *opDef(op.kind).attributes) {
      if (spec.place == AttrPlace::Word) op.attributes.set(std::string(spec.name), in_.takeName("a word"));
      if (spec.place == AttrPlace::Text) op.attributes.set(std::string(spec.name), in_.takeString());
    }
  }

  void readAttributes(Op& op) {
    in_.expectMark("{");
    if (in_.acceptMark("}")) return;
    do {
      const SourceRange range = in_.peek().range;
      const std::string name = in_.takeName("the name of an attribute");
      in_.expectMark("=");
      const AttrSpec* spec = nullptr;
      for (const AttrSpec& each : *opDef(op.kind).attributes) {
        if (each.name == name) spec = &each;
      }
      if (name == kRecomputeId) {
        op.attributes.set(name, in_.takeInt());
        continue;
      }
      if (spec == nullptr) {
        in_.error(range, diag::IrUnknownName, "attribute", name);
        return;
      }
      op.attributes.set(name, takeAttribute(spec->kind));
    } while (in_.acceptMark(","));
    in_.expectMark("}");
  }

  Attribute takeAttribute(AttrKind kind) {
    switch (kind) {
      case AttrKind::Int:
        return in_.takeInt();
      case AttrKind::Float:
        return in_.takeReal();
      case AttrKind::Bool:
        return takeBool();
      case AttrKind::String:
        return in_.takeString();
      case AttrKind::Ints:
        return in_.takeInts();
      case AttrKind::DTypeName:
        return in_.takeDType();
      case AttrKind::Axes:
        return in_.takeAxes(module_.mesh);
      case AttrKind::AnnotationText:
        return in_.takeAnnotation(module_.mesh);
      case AttrKind::Numbers:
        return takeNumbers();
    }
    GSHARD_UNREACHABLE("AttrKind");
  }

  bool takeBool() {
    if (in_.acceptName("true")) return true;
    in_.expectName("false");
    return false;
  }

  // Numbers of a literal; as floats until the dtype is known.
  Literal takeNumbers() {
    Literal literal;
    const auto one = [&]() {
      const bool isWhole = in_.peek().kind == IrTokenKind::Number &&
                           in_.peek().text.find_first_not_of("-0123456789") == std::string::npos;
      if (isWhole) {
        literal.ints.push_back(in_.takeInt());
        literal.floats.push_back(static_cast<double>(literal.ints.back()));
      } else if (in_.isName("true") || in_.isName("false")) {
        literal.ints.push_back(takeBool() ? 1 : 0);
        literal.floats.push_back(static_cast<double>(literal.ints.back()));
      } else {
        literal.floats.push_back(in_.takeReal());
      }
    };
    if (!in_.acceptMark("[")) {
      one();
      return literal;
    }
    if (in_.acceptMark("]")) return literal;
    do {
      one();
    } while (in_.acceptMark(","));
    in_.expectMark("]");
    return literal;
  }

  // What the result type says, literals by its dtype, and that nothing is missing.
  bool finishAttributes(Op& op, const std::string& head, const std::vector<Value>& results) {
    const Type& type = results[0].type;
    for (const AttrSpec& spec : *opDef(op.kind).attributes) {
      const std::string name(spec.name);
      const Attribute* found = op.attributes.find(name);
      if (found == nullptr && spec.place == AttrPlace::ResultShape) op.attributes.set(name, type.shape);
      const bool takesDType =
          op.kind != OpKind::Map || scalarInfo(*scalarFromName(head)).result == ScalarResult::Attribute;
      if (found == nullptr && spec.place == AttrPlace::ResultDType && takesDType) op.attributes.set(name, type.dtype);
      if (found != nullptr && spec.kind == AttrKind::Numbers) {
        Literal literal = std::get<Literal>(*found);
        const bool exact = isFloat(type.dtype) || literal.ints.size() == literal.floats.size();
        if (!exact) {
          in_.error(op.range, diag::IrAttribute, name, head,
                    "has a fraction, but the result is `" + printType(type) + "`");
          return false;
        }
        if (isFloat(type.dtype)) {
          literal.ints.clear();
        } else {
          literal.floats.clear();
        }
        op.attributes.set(name, literal);
      }
      if (op.attributes.find(name) == nullptr && !spec.optional) {
        in_.error(op.range, diag::IrAttribute, name, head, "is missing");
        return false;
      }
    }
    return true;
  }

  bool checkTypes(const Function& function, const Op& op, const std::string& head, const std::vector<Value>& results) {
    const OperandSpec& spec = *opDef(op.kind).operands;
    const int count = static_cast<int>(op.operands.size());
    if (count < spec.least || (spec.most >= 0 && count > spec.most)) {
      const std::string wanted = spec.most < 0 ? "at least " + std::to_string(spec.least)
                                               : std::to_string(spec.least) +
                                                     (spec.most > spec.least ? " to " + std::to_string(spec.most) : "");
      in_.error(op.range, diag::OperandCount, head, wanted, count);
      return false;
    }
    const std::optional<ResultTypes> types = (*opDef(op.kind).infer)(OpView(module_, function, op), in_.diag());
    if (!types) {
      in_.stopQuietly();
      return false;
    }
    std::string inferred, written;
    for (const Type& type : *types) inferred += (inferred.empty() ? "" : ", ") + printType(type);
    for (const Value& value : results) written += (written.empty() ? "" : ", ") + printType(value.type);
    if (inferred == written) return true;
    in_.error(op.range, diag::IrTypeDiffers, head, inferred, written);
    return false;
  }

  IrCursor& in_;
  const Module& module_;
  IrValues& values_;
};
}  // namespace

void readIrOp(IrCursor& in, const Module& module, Function& function, IrValues& values) {
  OpReader(in, module, values).read(function);
}

}  // namespace gshard
