// Runs every program of tests/run on every mesh it names: on the evaluator's simulated devices and as a compiled
// binary, on threads or (with --mpi) under mpirun. Compares with the stated numbers, the bits of one device where the
// case says `exact`, the stated plan, and the bytes that the runtime counted with the plan.
#include <gtest/gtest.h>
#include <unistd.h>

#include <cmath>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <map>

#include "driver/process.h"
#include "driver/safetensors_read.h"
#include "driver/stages.h"
#include "ir/evaluator.h"
#include "support/render.h"
#include "tests/run/run_case.h"

namespace gshard::testing {
namespace {

namespace fs = std::filesystem;

bool useMpi = false;

class Scratch {
 public:
  Scratch() : path_(fs::temp_directory_path() / ("gshard-run-" + std::to_string(getpid()))) {
    fs::create_directories(path_);
  }
  ~Scratch() {
    std::error_code ignored;
    fs::remove_all(path_, ignored);
  }
  const fs::path& path() const { return path_; }

 private:
  fs::path path_;
};

// .npy, version 1, of float64 or int64: the binary converts to the input's type.
void writeNpy(const fs::path& path, const Numbers& numbers) {
  std::string shape;
  for (const std::int64_t size : numbers.shape) shape += std::to_string(size) + ",";
  std::string header = "{'descr': '<f8', 'fortran_order': False, 'shape': (" + shape + "), }";
  while ((10 + header.size() + 1) % 64 != 0) header += ' ';
  header += '\n';
  std::ofstream file(path, std::ios::binary);
  const std::uint16_t length = static_cast<std::uint16_t>(header.size());
  file.write("\x93NUMPY\x01\x00", 8);
  file.write(reinterpret_cast<const char*>(&length), 2);
  file << header;
  file.write(reinterpret_cast<const char*>(numbers.values.data()),
             static_cast<std::streamsize>(numbers.values.size() * sizeof(double)));
}

const Function& entryOf(const Module& module) {
  for (const Function& function : module.functions) {
    if (function.kind == FunctionKind::Entry) return function;
  }
  throw std::runtime_error("the program has no entry");
}

class CaseRun : public ::testing::Test {
 public:
  CaseRun(RunCase run, std::string mesh) : case_(std::move(run)), mesh_(std::move(mesh)) {}
  void TestBody() override;

 private:
  void compile(const std::string& mesh);
  void checkValue(const std::string& name, const std::vector<std::int64_t>& shape, const std::vector<double>& values,
                  const char* by);
  void checkEvaluator();
  void checkBinary(const fs::path& folder);
  void checkPlan();

  RunCase case_;
  std::string mesh_;
  Options options_;
  std::unique_ptr<Session> session_;
  Partitioned partitioned_;
};

void CaseRun::compile(const std::string& mesh) {
  options_ = {};
  options_.input = case_.path;
  options_.mesh = mesh;
  options_.mpi = useMpi;
  session_ = std::make_unique<Session>(options_);
  try {
    partitioned_ = partitionedModule(*session_);
  } catch (const Stopped&) {
    std::string text;
    for (const Diagnostic& diagnostic : session_->sink().diagnostics())
      text += renderText(diagnostic, session_->sources());
    FAIL() << text;
  }
}

void CaseRun::checkValue(const std::string& name, const std::vector<std::int64_t>& shape,
                         const std::vector<double>& values, const char* by) {
  for (const ExpectedOutput& expected : case_.outputs) {
    if (expected.name != name) continue;
    std::size_t start = 0, count = 1;
    for (const std::int64_t size : shape) count *= static_cast<std::size_t>(size);
    for (std::size_t d = 0; d < expected.at.size(); ++d) {
      count /= static_cast<std::size_t>(shape[d]);
      start += static_cast<std::size_t>(expected.at[d]) * count;
    }
    ASSERT_EQ(count, expected.numbers.values.size()) << by << ": " << name;
    ASSERT_EQ(std::vector<std::int64_t>(shape.begin() + static_cast<std::ptrdiff_t>(expected.at.size()), shape.end()),
              expected.numbers.shape)
        << by << ": " << name;
    for (std::size_t i = 0; i < count; ++i) {
      const double want = expected.numbers.values[i], got = values[start + i];
      if (std::isnan(want))
        EXPECT_TRUE(std::isnan(got)) << by << ": " << name << " at " << i << " is " << got;
      else if (case_.exact)
        EXPECT_EQ(got, want) << by << ": " << name << " at " << i;
      else
        EXPECT_NEAR(got, want, case_.tolerance * std::max(1.0, std::fabs(want))) << by << ": " << name << " at " << i;
    }
  }
}

void CaseRun::checkEvaluator() {
  const Function& function = entryOf(partitioned_.module);
  std::vector<Tensor> arguments;
  for (const Argument& argument : function.arguments) {
    Tensor tensor = Tensor::zeros(function.type(argument.value));
    for (const auto& [name, numbers] : case_.inputs) {
      if (name != argument.name) continue;
      ASSERT_EQ(static_cast<std::int64_t>(numbers.values.size()), tensor.type.elements()) << name;
      for (std::size_t i = 0; i < numbers.values.size(); ++i)
        tensor.setNumber(static_cast<std::int64_t>(i), numbers.values[i]);
    }
    arguments.push_back(std::move(tensor));
  }
  const EvalResult result = evaluate(partitioned_.module, function, arguments);
  EXPECT_TRUE(result.faults.empty());
  for (std::size_t r = 0; r < function.results.size(); ++r) {
    std::vector<double> values;
    for (std::int64_t i = 0; i < result.results[r].type.elements(); ++i) values.push_back(result.results[r].number(i));
    checkValue(function.results[r].name, result.results[r].type.shape, values, "evaluator");
  }
}

void CaseRun::checkBinary(const fs::path& folder) {
  const fs::path binary = folder / "program", out = folder / "out.safetensors";
  buildExecutable(*session_, partitioned_, binary.string());
  std::vector<std::string> command = {binary.string(), entryOf(partitioned_.module).name, "-q", "--verify-plan", "-o",
                                      out.string()};
  std::vector<std::pair<std::string, std::string>> environment;
  if (useMpi) {
    command.insert(command.begin(), {"mpirun", "-n", std::to_string(partitioned_.module.mesh.devices())});
    environment = mpiEnvironment();
  }
  for (const auto& [name, numbers] : case_.inputs) {
    const fs::path file = folder / (name + ".npy");
    writeNpy(file, numbers);
    command.push_back("--input");
    command.push_back(name + "=" + file.string());
  }
  std::string error;
  ASSERT_EQ(runProcess(command, environment, true, false, error), 0) << error;
  const auto tensors = readSafetensors(out.string(), error);
  ASSERT_TRUE(tensors) << error;
  for (const ExpectedOutput& expected : case_.outputs) ASSERT_TRUE(tensors->contains(expected.name)) << expected.name;
  for (const auto& [name, tensor] : *tensors)
    checkValue(name, tensor.shape, tensor.numbers, useMpi ? "binary under mpirun" : "binary");
}

void CaseRun::checkPlan() {
  const auto index = static_cast<std::size_t>(&entryOf(partitioned_.module) - partitioned_.module.functions.data());
  const PlanFunction& planned = partitioned_.plan.functions[index];
  // X2: every collective has a line, a reason, axes and bytes. X4: an axis of size one is no group.
  for (const PlanEntry& entry : planned.collectives) {
    EXPECT_TRUE(entry.range.known()) << entry.kind;
    EXPECT_FALSE(entry.reason.empty()) << entry.kind;
    EXPECT_FALSE(entry.axes.empty()) << entry.kind;
    EXPECT_GT(entry.bytesMax, 0) << entry.kind;
    for (const MeshAxis& axis : partitioned_.module.mesh.axes) {
      const bool named = std::find(entry.axes.begin(), entry.axes.end(), axis.name) != entry.axes.end();
      EXPECT_FALSE(named && axis.size == 1) << entry.kind << " over " << axis.name;
    }
  }
  for (const ExpectedPlan& expected : case_.plans) {
    if (expected.mesh != mesh_) continue;
    std::string shown;
    for (const PlanEntry& entry : planned.collectives)
      shown += entry.kind + " " + std::to_string(entry.bytesMax) + " (" + entry.reason + ")\n";
    SCOPED_TRACE(shown);
    if (expected.atMost) {
      for (const PlanEntry& entry : planned.collectives) EXPECT_LE(entry.bytesMax, *expected.atMost);
      continue;
    }
    ASSERT_EQ(planned.collectives.size(), expected.collectives.size());
    for (std::size_t i = 0; i < expected.collectives.size(); ++i) {
      EXPECT_EQ(planned.collectives[i].kind, expected.collectives[i].first);
      EXPECT_EQ(planned.collectives[i].bytesMax, expected.collectives[i].second);
    }
  }
}

void CaseRun::TestBody() {
  compile(mesh_);
  if (HasFatalFailure()) return;
  const Scratch scratch;
  checkPlan();
  checkEvaluator();
  checkBinary(scratch.path());
}

int runAll(int argc, char** argv) {
  ::testing::InitGoogleTest(&argc, argv);
  for (int i = 1; i < argc; ++i) useMpi = useMpi || std::strcmp(argv[i], "--mpi") == 0;
  std::vector<fs::path> files;
  for (const auto& entry : fs::directory_iterator(fs::path(GSHARD_SOURCE_DIR) / "tests/run")) {
    if (entry.path().extension() == ".gsd") files.push_back(entry.path());
  }
  std::sort(files.begin(), files.end());
  for (const fs::path& file : files) {
    const RunCase run = parseRunCase(file.string());
    for (const std::string& mesh : run.meshes) {
      std::string name = run.name + "." + mesh;
      for (char& c : name) c = std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '.' || c == '_' ? c : '_';
      ::testing::RegisterTest("Run", name.c_str(), nullptr, nullptr, __FILE__, __LINE__,
                              [run, mesh]() -> ::testing::Test* { return new CaseRun(run, mesh); });
    }
  }
  return RUN_ALL_TESTS();
}

}  // namespace
}  // namespace gshard::testing

int main(int argc, char** argv) {
  return gshard::testing::runAll(argc, argv);
}
