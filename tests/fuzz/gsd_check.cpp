// Comparing random programs; see gsd_check.h.
#include "tests/fuzz/gsd_check.h"

#include <unistd.h>

#include <filesystem>
#include <fstream>

#include "driver/process.h"
#include "driver/safetensors_read.h"
#include "driver/stages.h"
#include "frontend/parse.h"
#include "ir/evaluator.h"
#include "ir/passes.h"
#include "ir/text.h"
#include "partition/passes.h"
#include "sema/elaborate.h"
#include "support/render.h"

namespace gshard::fuzz {

namespace fs = std::filesystem;

namespace {

using Programs = std::vector<const GsdProgram*>;

// The generator writes no program that the language refuses: that is a fault as well, of one side or the other.
struct Refused : std::runtime_error {
  explicit Refused(const std::string& text) : std::runtime_error("refused: " + text) {}
};

std::string rendered(const CollectingSink& sink, const SourceManager& sources) {
  std::string text;
  for (const Diagnostic& diagnostic : sink.diagnostics()) text += renderText(diagnostic, sources);
  return text;
}

struct Source {
  SourceManager sources;
  CollectingSink sink;

  Module elaborated(const std::string& text) {
    const FileId file = sources.addFile("random.gsd", text);
    const std::unique_ptr<ast::File> parsed = parseFile(file, sources, sink);
    ElaborateOptions options;
    options.stdlibPath = findInstallation().stdlib;
    std::optional<Module> module;
    if (!sink.hasErrors()) module = elaborate(*parsed, sources, options, sink);
    if (!module || sink.hasErrors()) throw Refused(rendered(sink, sources));
    return std::move(*module);
  }

  void run(Module& module, std::span<const Pass> passes) {
    const PassOptions options;
    PassContext context{options, sink};
    const PassRun run = runPasses(module, passes, context, {});
    if (run.failure) throw std::runtime_error("pass " + run.failure->pass + ": " + run.failure->fault);
    if (sink.hasErrors()) throw Refused(rendered(sink, sources));
  }
};

// The function that is compared: what is trained, else the entry.
const Function& subjectOf(const Module& module, GsdKind kind) {
  const FunctionKind wanted = kind == GsdKind::Training ? FunctionKind::Train : FunctionKind::Entry;
  for (const Function& function : module.functions) {
    if (function.kind == wanted) return function;
  }
  throw std::runtime_error("the program has no function to run");
}

Tensor argumentOf(const Module& module, const Function& function, const Argument& argument, const Programs& programs) {
  const Type& type = function.type(argument.value);
  std::string name = argument.name;
  if (argument.kind == ArgumentKind::Parameter) name = module.parameters[static_cast<std::size_t>(argument.index)].name;
  if (argument.kind == ArgumentKind::State) return Tensor::filled(type, 1);
  if (name.starts_with("net.")) name = name.substr(4);
  for (std::size_t p = 0; p < programs.size(); ++p) {
    for (std::size_t i = 0; i < programs[p]->inputs.size(); ++i) {
      if (inputName(programs, p, i) == name) return inputTensor(programs[p]->inputs[i]);
    }
  }
  return Tensor::zeros(type);  // step, steps
}

std::vector<Tensor> resultsOf(const Module& module, const Function& function, const Programs& programs) {
  std::vector<Tensor> arguments;
  for (const Argument& argument : function.arguments)
    arguments.push_back(argumentOf(module, function, argument, programs));
  EvalResult result = evaluate(module, function, arguments);
  if (!result.faults.empty()) throw std::runtime_error("a fault of the program: " + result.faults.front());
  return std::move(result.results);
}

std::string shown(const std::vector<double>& numbers) {
  std::string text;
  for (const double number : numbers) text += (text.empty() ? "[" : ", ") + std::to_string(number);
  return text + "]";
}

std::vector<double> numbersOf(const Tensor& tensor) {
  std::vector<double> numbers;
  for (std::int64_t i = 0; i < tensor.type.elements(); ++i) numbers.push_back(tensor.number(i));
  return numbers;
}

// Numbers are exact; only the sign of a zero may depend on the order of a sum.
std::optional<std::string> difference(const std::string& name, const std::vector<double>& expected,
                                      const std::vector<double>& actual) {
  bool same = expected.size() == actual.size();
  for (std::size_t i = 0; same && i < expected.size(); ++i) {
    same = expected[i] == actual[i] || (expected[i] != expected[i] && actual[i] != actual[i]);
  }
  if (same) return std::nullopt;
  return name + "\n  one device   " + shown(expected) + "\n  all devices  " + shown(actual) + "\n";
}

void writeNpy(const fs::path& path, const Tensor& tensor) {
  std::string shape;
  for (const std::int64_t size : tensor.type.shape) shape += std::to_string(size) + ",";
  std::string header = "{'descr': '<f8', 'fortran_order': False, 'shape': (" + shape + "), }";
  while ((10 + header.size() + 1) % 64 != 0) header += ' ';
  header += '\n';
  std::ofstream file(path, std::ios::binary);
  const auto length = static_cast<std::uint16_t>(header.size());
  file.write("\x93NUMPY\x01\x00", 8);
  file.write(reinterpret_cast<const char*>(&length), 2);
  file << header;
  const std::vector<double> numbers = numbersOf(tensor);
  file.write(reinterpret_cast<const char*>(numbers.data()),
             static_cast<std::streamsize>(numbers.size() * sizeof(double)));
}

class Scratch {
 public:
  Scratch() : path_(fs::temp_directory_path() / ("gshard-fuzz-" + std::to_string(getpid()))) {
    fs::create_directories(path_);
  }
  ~Scratch() {
    std::error_code ignored;
    fs::remove_all(path_, ignored);
  }
  Scratch(const Scratch&) = delete;
  Scratch& operator=(const Scratch&) = delete;
  const fs::path& path() const { return path_; }

 private:
  fs::path path_;
};

std::map<std::string, ReadTensor> runBinary(const Programs& programs, const std::string& text, Runner runner) {
  const Scratch scratch;
  const fs::path source = scratch.path() / "random.gsd", binary = scratch.path() / "program",
                 out = scratch.path() / "out.safetensors";
  std::ofstream(source) << text;
  Options options;
  options.input = source.string();
  options.optimization = 1;
  options.noWarnings = true;
  options.mpi = runner == Runner::Mpi;
  Session session(options);
  try {
    const Partitioned partitioned = partitionedModule(session);
    buildExecutable(session, partitioned, binary.string());
  } catch (const Stopped&) {
    throw Refused(rendered(session.sink(), session.sources()));
  }
  std::vector<std::string> command = {binary.string(), "t", "-q", "--verify-plan", "-o", out.string()};
  std::vector<std::pair<std::string, std::string>> environment;
  if (runner == Runner::Mpi) {
    command.insert(command.begin(), {"mpirun", "-n", std::to_string(programs.front()->devices())});
    environment = mpiEnvironment();
  }
  for (std::size_t p = 0; p < programs.size(); ++p) {
    for (std::size_t i = 0; i < programs[p]->inputs.size(); ++i) {
      const std::string name = inputName(programs, p, i);
      writeNpy(scratch.path() / (name + ".npy"), inputTensor(programs[p]->inputs[i]));
      command.insert(command.end(), {"--input", name + "=" + (scratch.path() / (name + ".npy")).string()});
    }
  }
  std::string error;
  const int code = runProcess(command, environment, true, false, error);
  if (code != 0) throw std::runtime_error("the binary ended with " + std::to_string(code) + " " + error);
  auto tensors = readSafetensors(out.string(), error);
  if (!tensors) throw std::runtime_error(error);
  return std::move(*tensors);
}

}  // namespace

std::optional<std::string> checkOnEvaluator(const GsdProgram& program) {
  const Programs programs = {&program};
  const std::string text = gsdText(program);
  Source source;
  try {
    Module module = source.elaborated(text);
    const Function& subject = subjectOf(module, program.kind);
    const std::vector<Tensor> expected = resultsOf(module, subject, programs);
    std::vector<std::string> names;
    for (const Result& result : subject.results) names.push_back(result.name);
    source.run(module, globalPipeline());
    source.run(module, partitionPipeline());
    const std::vector<Tensor> actual = resultsOf(module, subjectOf(module, program.kind), programs);
    for (std::size_t r = 0; r < expected.size(); ++r) {
      if (auto fault = difference(names[r], numbersOf(expected[r]), numbersOf(actual.at(r)))) return fault;
    }
  } catch (const std::exception& error) {
    return std::string(error.what()) + "\n";
  }
  return std::nullopt;
}

std::optional<std::string> checkCompiled(const std::vector<const GsdProgram*>& programs, Runner runner) {
  const std::string text = gsdText(programs);
  Source source;
  try {
    const Module module = source.elaborated(text);
    const Function& subject = subjectOf(module, GsdKind::Forward);
    const std::vector<Tensor> expected = resultsOf(module, subject, programs);
    const std::map<std::string, ReadTensor> actual = runBinary(programs, text, runner);
    for (std::size_t r = 0; r < expected.size(); ++r) {
      const std::string& name = subject.results[r].name;
      const auto found = actual.find(name);
      if (found == actual.end()) return "the binary wrote no " + name + "\n";
      if (auto fault = difference(name, numbersOf(expected[r]), found->second.numbers)) return fault;
    }
  } catch (const std::exception& error) {
    return std::string(error.what()) + "\n";
  }
  return std::nullopt;
}

}  // namespace gshard::fuzz
