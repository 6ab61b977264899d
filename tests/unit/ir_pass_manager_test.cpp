// The pass manager: what it records, when it stops, and that no pass gets away with a broken module.
#include "ir/diagnostics.h"
#include "ir/pass_manager.h"
#include "ir_harness.h"
#include "support/check.h"

namespace gshard {
namespace {
using testing_ir::parseText;

constexpr const char* kProgram =
    "func @f(%x: f32[2]) -> f32[2] {\n  %y = neg %x : f32[2]\n  %z = neg %x : f32[2]\n  return %z\n}\n";

void dropUnused(Module& module, PassContext&) {
  eraseUnused(module.functions[0]);
}
void doNothing(Module&, PassContext&) {}
void breakTypes(Module& module, PassContext&) {
  module.functions[0].values[1].type.shape = {3};
}
void complain(Module&, PassContext& context) {
  context.diag.emit({}, diag::SliceStep, 0);
}
void fail(Module&, PassContext&) {
  GSHARD_UNREACHABLE("on purpose");
}

void dropUnusedSecretly(Module& module, PassContext& context) {
  eraseUnused(module.functions[0]);
  context.unchanged.insert(&module.functions[0]);
}

constexpr Pass kDropUnused{"drop-unused", "", &dropUnused};
constexpr Pass kNothing{"nothing", "", &doNothing};
constexpr Pass kBreak{"break", "", &breakTypes};
constexpr Pass kComplain{"complain", "", &complain};
constexpr Pass kFail{"fail", "", &fail};
constexpr Pass kSecret{"secret", "", &dropUnusedSecretly};

PassRun run(Module& module, std::vector<Pass> passes, DiagSink& sink) {
  const PassOptions options;
  PassContext context{options, sink};
  PassManagerOptions managerOptions;
  managerOptions.dumpAfter = "all";
  managerOptions.checkRoundTrip = true;
  return runPasses(module, passes, context, managerOptions);
}

TEST(PassManager, RecordsWhatPassesDo) {
  Module module = parseText(kProgram);
  CollectingSink sink;
  const PassRun result = run(module, {kDropUnused, kNothing}, sink);
  ASSERT_EQ(result.records.size(), 2u);
  EXPECT_FALSE(result.stopped);
  EXPECT_EQ(result.records[0].name, "drop-unused");
  EXPECT_EQ(result.records[0].ops, 1);
  EXPECT_EQ(*result.records[0].text, "func @f(%x: f32[2]) -> f32[2] {\n  %z = neg %x : f32[2]\n  return %z\n}\n");
  EXPECT_EQ(*result.records[1].text, "// unchanged\n");
}

TEST(PassManager, ABrokenModuleNamesItsPass) {
  Module module = parseText(kProgram);
  CollectingSink sink;
  const PassRun result = run(module, {kNothing, kBreak, kDropUnused}, sink);
  ASSERT_TRUE(result.failure.has_value());
  EXPECT_EQ(result.failure->pass, "break");
  EXPECT_EQ(result.failure->fault, "func @f: op 0 `%y = neg %x : f32[3]`: `f32[2]` is inferred, `f32[3]` declared");
  EXPECT_EQ(result.failure->textBefore, kProgram);
  EXPECT_EQ(result.records.size(), 1u);
}

TEST(PassManager, AFailureAsksForTheModuleOnceMore) {
  Module module = parseText(kProgram);
  CollectingSink sink;
  const PassOptions options;
  PassContext context{options, sink};
  int made = 0;
  const auto again = [&made] {
    ++made;
    return parseText(kProgram);
  };
  const std::vector<Pass> good = {kNothing}, bad = {kNothing, kBreak};
  EXPECT_FALSE(runPasses(module, good, context, {.again = again}).failure.has_value());
  EXPECT_EQ(made, 0);
  const PassRun failed = runPasses(module, bad, context, {.again = again});
  ASSERT_TRUE(failed.failure.has_value());
  EXPECT_EQ(made, 1);
  EXPECT_EQ(failed.failure->textBefore, kProgram);
}

TEST(PassManager, AFunctionNamedUnchangedIsUnchanged) {
  Module module = parseText(kProgram);
  CollectingSink sink;
  const PassRun told = run(module, {kNothing, kSecret}, sink);
  ASSERT_TRUE(told.failure.has_value());
  EXPECT_EQ(told.failure->pass, "secret");
  EXPECT_EQ(told.failure->fault, "it changes a function that it names unchanged");
  const PassRun again = run(module, {kNothing, kSecret}, sink);  // nothing is left to drop
  EXPECT_FALSE(again.stopped);
}

// What was found right in the form before is looked at again in the next.
TEST(PassManager, UnchangedFunctionsAreVerifiedInANewForm) {
  Module module = parseText(kProgram);
  CollectingSink sink;
  constexpr Pass kToSpmd{"to-spmd", "",
                         [](Module& all, PassContext& context) { context.unchanged.insert(&all.functions[0]); },
                         Form::Spmd};
  const PassRun told = run(module, {kNothing, kToSpmd}, sink);
  ASSERT_TRUE(told.failure.has_value());
  EXPECT_EQ(told.failure->fault, "func @f: argument `x`: a value without a sharding");
}

TEST(PassManager, AnErrorStopsAndAnInternalErrorIsKept) {
  Module module = parseText(kProgram);
  CollectingSink sink;
  const PassRun stopped = run(module, {kComplain, kDropUnused}, sink);
  EXPECT_TRUE(stopped.stopped);
  EXPECT_FALSE(stopped.failure.has_value());
  EXPECT_EQ(stopped.records.size(), 1u);
  EXPECT_EQ(sink.errorCount(), 1);
  const PassRun failed = run(module, {kFail}, sink);
  ASSERT_TRUE(failed.failure.has_value());
  EXPECT_NE(failed.failure->fault.find("on purpose"), std::string::npos);
}

}  // namespace
}  // namespace gshard
