// FunctionBuild: one IR function while it is being elaborated. Parameters, states, settings and the step become
// arguments when they are first read, so a function allocates only what it uses; random sites get their path here.
#pragma once

#include <map>
#include <set>
#include <string>
#include <vector>

#include "ir/builder.h"
#include "ir/known_factors.h"
#include "ir/recompute.h"

namespace gshard::sema {

// Sites of all functions of a program, to find two paths with one hash.
using SiteTable = std::map<std::uint32_t, std::string>;
std::uint32_t siteHash(std::string_view path);  // FNV-1a

class FunctionBuild {
 public:
  FunctionBuild(Module& module, FunctionKind kind, std::string name, bool training, DiagSink& diag);
  FunctionBuild(const FunctionBuild&) = delete;
  FunctionBuild& operator=(const FunctionBuild&) = delete;

  Function& function() { return function_; }
  Builder& builder() { return builder_; }
  Module& module() { return *module_; }
  bool training() const { return training_; }
  const Type& type(ValueId id) const { return function_.type(id); }

  ValueId addInput(const std::string& name, const Type& type, std::optional<Annotation> annotation, bool isRow,
                   SourceRange range);
  // The value now: an argument at first, later what was assigned.
  ValueId parameter(std::int64_t index);
  ValueId state(std::int64_t index);
  void setParameter(std::int64_t index, ValueId value);
  void setState(std::int64_t index, ValueId value);
  bool stateAssigned(std::int64_t index) const { return assignedStates_.contains(index); }
  const std::set<std::int64_t>& assignedStates() const { return assignedStates_; }
  ValueId setting(std::int64_t index);
  ValueId step();  // in `init` a constant 0: nothing was updated yet
  ValueId steps();

  // Rows set at run time: in such a function sizes of row dims are no constants.
  bool rowsAtRunTime() const { return function_.blocks == 0 && rowInput_.known(); }
  ValueId rowInput() const { return rowInput_; }
  // The dim of `value` that holds the function's rows, or -1.
  std::int64_t rowDim(ValueId value);

  // Ops from the `from`-th on belong to an expression that is recomputed (`@remat`); of nested ones the outermost
  // counts.
  void recomputeFrom(std::size_t from);
  const RecomputedRegions& recomputed() const { return recomputed_; }

  struct ReportEntry {
    std::string name;
    ValueId value;
    SourceRange range;
  };
  std::vector<ReportEntry> reports;

 private:
  ValueId addArgument(ArgumentKind kind, const std::string& name, std::int64_t index, const Type& type,
                      SourceRange range);
  void trackRows();

  Module* module_;
  Function function_;
  Builder builder_;
  bool training_;
  std::map<std::int64_t, ValueId> parameters_, states_, settings_;
  std::set<std::int64_t> assignedStates_;
  ValueId step_, steps_, rowInput_;
  RecomputedRegions recomputed_;
  std::int64_t regions_ = 0;
  KnownFactors factors_;
  std::vector<std::int64_t> rowDims_;  // per value, as far as tracked
  std::size_t tracked_ = 0;            // ops
};

}  // namespace gshard::sema
