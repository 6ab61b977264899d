// Elaborator: the interpreter that runs a program's compile-time part and emits its run-time part. One object per
// elaboration; its methods stand by topic in expressions.cpp, indexing.cpp, calls.cpp, statements.cpp, types.cpp,
// globals.cpp, models.cpp, annotations.cpp, patterns.cpp, functions.cpp, train.cpp and optimizers.cpp.
#pragma once

#include <set>

#include "sema/arguments.h"
#include "sema/builtin_call.h"
#include "sema/chain_sink.h"
#include "sema/loader.h"
#include "sema/operators.h"
#include "sema/repeated_ops.h"

namespace gshard::sema {

// What a type says. Compile-time kinds have no tensor.
struct TypeSpec {
  enum class Kind : std::uint8_t { Int, Float, Bool, String, DType, Axis, List, Tensor, Tuple };
  Kind kind = Kind::Tensor;
  Type tensor;
  std::vector<TypeSpec> elements;  // of a list: one
  std::shared_ptr<const Written> written;
  const ast::Type* source = nullptr;  // carries the annotations
};

// One call on the way to what is being elaborated.
struct Frame {
  std::string what;      // "`Mlp.call`", "entry `loss`"
  std::string bindings;  // "B = 64"
  SourceRange callRange;
  const void* decl = nullptr;
  const Instance* instance = nullptr;
  bool isModel = false;
  bool isBinding = false;   // arguments are being checked: a mistake is the caller's
  bool isFunction = false;  // has a body that can return
  std::string site;         // path of random sites
  std::map<std::string, int> siteCounts;
  bool isInitialiser = false;  // random sites inside are named by it alone
  std::string letPath;         // path of `let` values: "net.call", "loss"; "": they have none
  Datum result;                // of return
  SourceRange resultRange;
};

enum class Flow : std::uint8_t { Next, Returned };

// What is known of devices: from `mesh`, options, or integer splits (collected in a first run over one device).
struct MeshChoice {
  Mesh mesh;
  bool declared = false;
  bool collecting = false;
  std::set<std::string> hidden;  // axes of the source's mesh that an option took away
};

class Elaborator {
 public:
  Elaborator(Program& program, SourceManager& sources, const ElaborateOptions& options, DiagSink& sink);

  // `devices`: of the one axis of a program without mesh; nullopt collects what integer splits ask for.
  std::optional<Module> run(std::optional<std::int64_t> devices);
  std::int64_t largestIntegerSplit() const { return largestSplit_; }
  bool meshKnown() const { return mesh_.declared; }

 private:
  struct ParameterExtra {  // beside Module::parameters
    std::shared_ptr<const Written> written;
    DType readAs = DType::F32;  // a trained 16-bit parameter is kept wide and read rounded
    bool fromShardPattern = false;
  };
  struct ShardRule {
    const ast::ShardDecl* decl = nullptr;
    const FileUnit* unit = nullptr;
    std::vector<std::int64_t> matches;  // per pattern
  };
  class Context;  // saves and clears what belongs to one evaluation

  // ---- expressions.cpp, indexing.cpp
  Datum eval(const ast::Expr& expr, Scope& scope);
  Datum evalName(const std::string& name, SourceRange range, Scope& scope, bool isCallee);
  Datum evalMember(const ast::Member& member, SourceRange range, Scope& scope);
  Datum evalBinary(const ast::Binary& binary, SourceRange range, Scope& scope);
  Datum evalComprehension(const ast::Comprehension& comprehension, SourceRange range, Scope& scope);
  Datum evalIf(const ast::IfExpr& expr, Scope& scope);
  Datum evalIndex(const ast::Index& index, SourceRange range, Scope& scope);
  Datum indexTensor(TensorDatum x, const ast::Index& index, SourceRange range, Scope& scope);
  Datum indexList(const std::vector<Datum>& items, const ast::Index& index, SourceRange range, Scope& scope);
  struct SliceBounds {
    std::int64_t start = 0, count = 0, step = 1;
  };
  std::optional<SliceBounds> sliceBounds(const ast::IndexItem& item, std::int64_t size, Scope& scope);
  std::optional<std::int64_t> evalInt(const ast::Expr& expr, Scope& scope, std::string_view what);
  std::optional<bool> evalCondition(const ast::Expr& expr, Scope& scope);
  std::optional<std::vector<Datum>> evalSource(const ast::Expr& expr, Scope& scope);  // of for and comprehensions
  Datum read(const Datum& datum);          // parameters, states, settings, step: their value in this function
  Datum givenName(std::string_view name);  // training, real, pi …; error when it is none
  std::vector<std::string> namesInScope(Scope& scope) const;
  TensorOps* ops() { return ops_ ? &*ops_ : nullptr; }
  bool countStatement(SourceRange range);
  bool hasRoomFor(std::int64_t statements) const;

  // ---- calls.cpp
  Datum evalCall(const ast::Call& call, SourceRange range, Scope& scope);
  std::vector<CallArgument> evalArguments(const std::vector<ast::Argument>& arguments, Scope& scope);
  Datum callBuiltin(const BuiltinRow& row, std::vector<CallArgument> arguments, SourceRange range);
  Datum callFunction(const FunctionRef& function, const std::vector<CallArgument>& arguments, SourceRange range);
  Datum runBody(const ast::FnDecl& decl, Scope& scope);
  // Binds arguments and defaults of a parameter list in `scope`; false after a report.
  bool bindParameters(const std::vector<ast::Parameter>& parameters, const std::vector<ast::Generic>& generics,
                      const Signature& signature, const std::vector<CallArgument>& arguments, SourceRange range,
                      Scope& scope);
  bool checkDepth(const void* decl, const Instance* instance, std::string_view name, SourceRange range);
  std::vector<Note> chain() const;
  std::string position(SourceRange range) const;
  std::string enterSite(const std::string& label);  // path of a call inside the present frame
  std::int64_t nextSite(std::string_view label, SourceRange range);

  // ---- statements.cpp
  Flow execBlock(const ast::Block& block, Scope& parent);
  Flow execStatement(const ast::Stmt& stmt, Scope& scope);
  void execLet(const ast::Let& let, SourceRange range, Scope& scope);
  void execAssign(const ast::Assign& assign, SourceRange range, Scope& scope);
  void execReport(const ast::Report& report, SourceRange range, Scope& scope);
  Flow execFor(const ast::For& loop, SourceRange range, Scope& scope);
  void bindName(const ast::Name& name, Datum value, BindingKind kind, Scope& scope);
  Datum nameValue(Datum value, const ast::Name& name);  // readable names, and annotations by path
  void takeApart(const ast::Let& let, const Datum& value, SourceRange range, Scope& scope);

  // ---- types.cpp
  std::optional<TypeSpec> resolveType(const ast::Type& type, Scope& scope);
  std::optional<std::vector<std::int64_t>> resolveShape(const ast::NamedType& type, Scope& scope);
  std::optional<DType> dtypeNamed(const std::string& name, Scope& scope);
  std::shared_ptr<const Written> writtenShape(const ast::Type& type, std::int64_t rank) const;
  // The value as the type says, numbers adapted; or a report that names `what`.
  Datum convert(const Datum& value, const TypeSpec& type, SourceRange range, const std::string& what);
  // Binds generics that stand alone in the type; reports two different sizes for one.
  struct GenericValue {
    Datum value;
    std::string from;
  };
  using GenericValues = std::map<std::string, GenericValue>;
  bool infer(const ast::Type& type, const Datum& value, const std::vector<ast::Generic>& generics,
             GenericValues& values, const std::string& what, SourceRange range);
  std::string typeText(const ast::Type& type) const;
  std::string signatureText(const std::string& name, const std::vector<ast::Parameter>& parameters) const;
  std::string sourceText(SourceRange range) const;

  // ---- globals.cpp
  Datum evalGlobal(const FileUnit& unit, const Global& global);
  Datum evalConst(const FileUnit& unit, const ast::ConstDecl& decl);
  std::optional<Datum> parseDefine(const std::string& text) const;
  void applyDefines();
  void applyPrecision();  // of `train`, unless `-D real` was given
  bool chooseMesh(std::optional<std::int64_t> devices);
  bool meshFromOption(const std::string& text);
  void notSupported(SourceRange range, const std::string& what);

  // ---- models.cpp
  Datum instantiate(const ModelRef& model, const std::vector<CallArgument>& arguments, SourceRange range);
  void addMembers(const ast::Block& block, Instance& instance, Scope& scope, const std::shared_ptr<Instance>& self);
  void addParameter(const ast::ParamDecl& decl, SourceRange range, Instance& instance, Scope& scope);
  void addState(const ast::StateDecl& decl, SourceRange range, Instance& instance, Scope& scope);
  // Runs an initialiser in `init`; the value has the declared type (or its own, when there is none).
  Datum initialise(const ast::Expr& init, const std::string& path, const TypeSpec* type, Scope& scope);

  // ---- annotations.cpp
  std::optional<Annotation> resolveAnnotations(const std::vector<ast::Annotation>& annotations, const Type& type,
                                               const Written* written, Scope& scope, bool allowStored,
                                               bool isComputed = false);
  struct AnnotationTarget;
  bool applyAnnotations(const std::vector<ast::Annotation>& annotations, AnnotationTarget& target, Scope& scope);
  bool applySplit(const ast::SplitAnnotation& split, SourceRange range, AnnotationTarget& target, Scope& scope);
  bool applyShard(const ast::ShardAnnotation& shard, SourceRange range, AnnotationTarget& target, Scope& scope);
  void labelTensor(DiagBuilder& builder, const AnnotationTarget& target) const;
  std::string freeAxis(const AnnotationTarget& target) const;
  Datum evalAxis(const std::string& name, SourceRange range, const AnnotationTarget& target, Scope& scope);
  bool addAxes(AnnotationTarget& target, std::int64_t dim, const std::vector<AxisRef>& axes, SourceRange range);
  std::optional<std::int64_t> annotationDim(const ast::Expr& dim, AnnotationTarget& target, Scope& scope);
  std::optional<std::vector<AxisRef>> axesOfSize(std::int64_t parts, const ast::Expr& written,
                                                 AnnotationTarget& target);
  Datum annotate(const Datum& value, const std::vector<ast::Annotation>& annotations, const Written* written,
                 Scope& scope, SourceRange range, bool isComputed = true);
  // `@remat` among the annotations: what was emitted since there were `before` ops is recomputed in backward.
  void recompute(const std::vector<ast::Annotation>& annotations, std::size_t before);
  std::size_t emitted() { return build_ != nullptr ? build_->function().ops.size() : 0; }
  DType wide() const { return real_ == DType::F64 ? DType::F64 : DType::F32; }
  bool ignoresSourceAnnotations() const { return !options_.layouts.empty(); }

  // ---- patterns.cpp
  void collectShardRules();
  std::optional<Annotation> annotationByPath(const std::string& path, const Type& type, const Written* written,
                                             bool mayBeStored);
  void reportUnmatchedPatterns();

  // ---- functions.cpp
  void evaluateTopLevel();
  void buildEntry(const ast::FnDecl& decl, SourceRange range, FunctionKind kind);
  bool planRows(const ast::FnDecl& decl, FunctionBuild& build, Scope& scope);
  bool addInputs(const ast::FnDecl& decl, FunctionBuild& build, Scope& scope);
  void addOutputs(const Datum& result, const std::string& name, SourceRange range, FunctionBuild& build);
  void finishFunction(FunctionBuild& build);
  void buildInit();
  std::string rowNameOf(const ast::FnDecl& decl) const;  // "" when there are no rows

  // ---- train.cpp
  struct TrainPlan {
    const ast::TrainDecl* decl = nullptr;
    const ast::FnDecl* entry = nullptr;
    SourceRange range;
    std::int64_t microbatches = 1;
    const ast::Expr* clipNorm = nullptr;  // a number above 0, or a setting
    struct Use {
      OptimizerRef optimizer;
      const ast::TrainDecl::Optimizer* written = nullptr;
    };
    std::vector<Use> uses;
    std::vector<std::int64_t> useOf;  // per parameter: index into uses, or -1 (frozen)
    std::map<std::int64_t, std::map<const ast::StateDecl*, std::int64_t>> states;  // per parameter
  };
  bool planTraining();
  bool planOptions(TrainPlan& plan);
  bool planClipNorm(TrainPlan& plan, const ast::Expr& limit);
  bool matchOptimizers(TrainPlan& plan);
  void finishTraining(FunctionBuild& build, const Datum& loss);
  std::vector<ValueId> clipped(FunctionBuild& build, const std::vector<ValueId>& gradients);

  // ---- optimizers.cpp
  // What one run of an optimizer's body emitted, to be repeated for other weights of the type.
  struct OptimizerRun {
    std::size_t use = 0;  // of the plan's
    Type weight;
    std::vector<const ast::StateDecl*> states;      // of `init`: declared, in order; of the update: assigned
    std::vector<const ast::StateDecl*> statesRead;  // update: as they were, in order of first use
    std::int64_t statements = 0;
    RepeatedOps ops;  // init: gives first values; update: of weight, gradient, states read; gives weight, states
  };
  struct Update {
    std::size_t use = 0;
    std::int64_t parameter = 0;
    ValueId weight, gradient;
    bool mayRepeat = false;
  };
  // Where a run began, to tell afterwards whether it was general: that a run at another place, on values of the same
  // types, would emit the same.
  struct Mark {
    std::int64_t particulars = 0, reports = 0, statements = 0;
  };
  Mark mark() const { return {particulars_, sink_.reports(), statements_}; }
  bool isGeneralSince(const Mark& mark) const {
    return particulars_ == mark.particulars && sink_.reports() == mark.reports;
  }
  void addOptimizerStates();
  void addStatesOf(std::int64_t parameter);
  std::int64_t addOptimizerState(const ast::StateDecl& decl, ValueId value);
  std::optional<ValueId> update(FunctionBuild& build, const Update& of, const std::vector<CallArgument>& arguments);
  const OptimizerRun* knownRun(const std::vector<OptimizerRun>& runs, std::size_t use, const Type& weight) const;
  template <class Body>
  void asOptimizer(const TrainPlan::Use& use, std::int64_t parameter, Body body);
  // The weight after one run of the optimizer's body; null after a report.
  std::optional<TensorDatum> runOptimizer(const TrainPlan::Use& use, const std::vector<CallArgument>& arguments,
                                          std::int64_t parameter, const TensorDatum& weight,
                                          const TensorDatum& gradient);

  Program& program_;
  SourceManager& sources_;
  const ElaborateOptions& options_;
  ChainSink sink_;
  Module module_;
  MeshChoice mesh_;
  std::int64_t largestSplit_ = 1;
  DType real_ = DType::F32;
  std::vector<Frame> frames_;
  std::unique_ptr<FunctionBuild> init_;
  FunctionBuild* build_ = nullptr;
  std::optional<TensorOps> ops_;       // of build_
  std::optional<TypeSpec> declared_;   // while the expression of an initialiser is evaluated, not in its calls
  std::optional<std::string> naming_;  // path of the model instance that a `let` is making
  std::set<std::string> instancePaths_;
  std::vector<ParameterExtra> parameterExtras_;
  std::vector<std::shared_ptr<const Written>> stateWritten_;
  std::vector<ValueId> parameterInit_, stateInit_;  // in `init`
  std::vector<ShardRule> rules_;
  std::map<std::string, std::string> defines_;  // not yet used ones
  SiteTable sites_;
  std::string rowName_;  // of the entry being built, while its rows are set at run time
  std::int64_t trainRows_ = 0;
  std::vector<Function> functions_;
  std::int64_t statements_ = 0;
  bool tooManyStatements_ = false;
  std::optional<TrainPlan> train_;
  // While an optimizer runs: where its states live.
  std::map<const ast::StateDecl*, std::int64_t>* optimizerStates_ = nullptr;
  std::string optimizerPath_;
  std::int64_t optimizerParameter_ = -1;
  std::vector<OptimizerRun> initRuns_, updateRuns_;
  // Counts what was elaborated that depends on more than the types of its operands: on a parameter, a state of a model,
  // a random site, an annotation.
  std::int64_t particulars_ = 0;
  std::vector<std::shared_ptr<Instance>> instances_;  // kept: scopes point at them

  void setBuild(FunctionBuild* build) {
    build_ = build;
    ops_.reset();
    if (build != nullptr) ops_.emplace(*build, sink_);
  }
};

bool matchesPattern(const ast::PathPattern& pattern, const std::string& path);

}  // namespace gshard::sema
