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
  std::vector<Tensor> arguments(const Function& function) const;
  void expectOneDevice();
  void checkEvaluator();
  std::vector<std::string> runCommand(const fs::path& binary) const;
  void train(const fs::path& folder, const fs::path& binary) const;
  void checkFault(const fs::path& folder, std::vector<std::string> command);
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
  if (findsRaces()) options_.threads = 2;  // those of one device, too
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

std::vector<Tensor> CaseRun::arguments(const Function& function) const {
  std::vector<Tensor> arguments;
  for (const Argument& argument : function.arguments) {
    Tensor tensor = Tensor::zeros(function.type(argument.value));
    for (const auto& [name, numbers] : case_.inputs) {
      if (name != argument.name) continue;
      EXPECT_EQ(static_cast<std::int64_t>(numbers.values.size()), tensor.type.elements()) << name;
      for (std::size_t i = 0; i < numbers.values.size(); ++i)
        tensor.setNumber(static_cast<std::int64_t>(i), numbers.values[i]);
    }
    arguments.push_back(std::move(tensor));
  }
  return arguments;
}

// The same mesh with all axes of size 1.
std::string onOneDevice(std::string mesh) {
  for (std::size_t at = mesh.find('='); at != std::string::npos; at = mesh.find('=', at + 1)) {
    const std::size_t end = std::min(mesh.find(',', at), mesh.size());
    mesh.replace(at + 1, end - at - 1, "1");
  }
  return mesh;
}

void CaseRun::expectOneDevice() {
  compile(onOneDevice(mesh_));
  if (HasFatalFailure()) return;
  const Function& function = entryOf(partitioned_.module);
  const EvalResult result = evaluate(partitioned_.module, function, arguments(function));
  for (std::size_t r = 0; r < function.results.size(); ++r) {
    ExpectedOutput& output = case_.outputs.emplace_back();
    output.name = function.results[r].name;
    output.numbers.shape = result.results[r].type.shape;
    for (std::int64_t i = 0; i < result.results[r].type.elements(); ++i)
      output.numbers.values.push_back(result.results[r].number(i));
  }
  case_.exact = true;
}

void CaseRun::checkEvaluator() {
  const Function& function = entryOf(partitioned_.module);
  const EvalResult result = evaluate(partitioned_.module, function, arguments(function));
  EXPECT_EQ(result.faults.empty(), case_.fault.empty());
  if (!case_.fault.empty()) return;
  for (std::size_t r = 0; r < function.results.size(); ++r) {
    std::vector<double> values;
    for (std::int64_t i = 0; i < result.results[r].type.elements(); ++i) values.push_back(result.results[r].number(i));
    checkValue(function.results[r].name, result.results[r].type.shape, values, "evaluator");
  }
}

std::vector<std::string> CaseRun::runCommand(const fs::path& binary) const {
  if (!useMpi) return {binary.string()};
  return {"mpirun", "-n", std::to_string(partitioned_.module.mesh.devices()), binary.string()};
}

void CaseRun::train(const fs::path& folder, const fs::path& binary) const {
  std::vector<std::string> command = runCommand(binary);
  command.insert(command.end(), {"train", "-q", "--verify-plan", "--steps", std::to_string(case_.trainSteps),
                                 "--checkpoint", (folder / "checkpoint").string()});
  std::string error;
  ASSERT_EQ(runProcess(command, useMpi ? mpiEnvironment() : decltype(mpiEnvironment()){}, true, false, error), 0)
      << error;
}

void CaseRun::checkFault(const fs::path& folder, std::vector<std::string> command) {
  const fs::path told = folder / "stderr.txt";
  command.insert(command.begin(), {"sh", "-c", "exec \"$@\" 2> \"$0\"", told.string()});
  std::string error;
  const int code = runProcess(command, useMpi ? mpiEnvironment() : decltype(mpiEnvironment()){}, true, false, error);
  EXPECT_TRUE(useMpi ? code != 0 : code == 1) << code << error;
  std::ifstream file(told);
  const std::string text{std::istreambuf_iterator<char>(file), {}};
  EXPECT_NE(text.find(case_.fault), std::string::npos) << text;
}

void CaseRun::checkBinary(const fs::path& folder) {
  const fs::path binary = folder / "program", out = folder / "out.safetensors";
  buildExecutable(*session_, partitioned_, binary.string());
  std::vector<std::string> command = runCommand(binary);
  command.insert(command.end(), {entryOf(partitioned_.module).name, "-q", "--verify-plan", "-o", out.string()});
  if (case_.trainSteps > 0) {
    train(folder, binary);
    command.insert(command.end(), {"--checkpoint", (folder / "checkpoint").string()});
  }
  for (const auto& [name, numbers] : case_.inputs) {
    const fs::path file = folder / (name + ".npy");
    writeNpy(file, numbers);
    command.push_back("--input");
    command.push_back(name + "=" + file.string());
  }
  if (!case_.fault.empty()) {
    checkFault(folder, std::move(command));
    return;
  }
  std::string error;
  ASSERT_EQ(runProcess(command, useMpi ? mpiEnvironment() : decltype(mpiEnvironment()){}, true, false, error), 0)
      << error;
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
  if (case_.likeOneDevice) expectOneDevice();
  if (!HasFatalFailure()) compile(mesh_);
  if (HasFatalFailure()) return;
  const Scratch scratch;
  checkPlan();
  if (case_.trainSteps == 0) checkEvaluator();  // what it starts from is made by the binary
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
  setenv("GSHARD_RUNTIME", GSHARD_RUNTIME_BUILT, 0);
  return gshard::testing::runAll(argc, argv);
}
