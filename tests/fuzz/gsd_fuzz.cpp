// gshard_fuzz_gsd [--seed S] [--count N] [--compiled | --mpi] [--batch K] [--jobs J] [--print]
// Random .gsd programs on many devices against one device: on the evaluator, as binaries on threads, or under mpirun.
// A program that differs is cut down to a few lines and printed with the seed that repeats it; exit status 1.
#include <sys/wait.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <map>

#include "tests/fuzz/gsd_check.h"
#include "tests/fuzz/shrink.h"

namespace gshard::fuzz {
namespace {

enum class Mode { Evaluator, Compiled, Mpi };

struct Settings {
  std::uint64_t seed = 1, count = 2000, batch = 10, jobs = 1;
  Mode mode = Mode::Evaluator;
  bool print = false;
};

constexpr int kMostFailures = 3;  // shrinking takes time, and faults repeat

const char* flagOf(Mode mode) {
  switch (mode) {
    case Mode::Evaluator:
      return "";
    case Mode::Compiled:
      return " --compiled";
    case Mode::Mpi:
      return " --mpi";
  }
  return "";
}

std::optional<std::string> check(const std::vector<const GsdProgram*>& programs, Mode mode) {
  if (mode == Mode::Evaluator) return checkOnEvaluator(*programs.front());
  return checkCompiled(programs, mode == Mode::Mpi ? Runner::Mpi : Runner::Local);
}

bool isRefusal(const std::string& fault) {
  return fault.starts_with("refused:");
}

void report(const GsdProgram& program, const std::string& found, Mode mode) {
  // A program that became one that the language refuses fails for a reason of its own.
  const auto fails = [&](const GsdProgram& each) {
    const std::optional<std::string> fault = check({&each}, mode);
    return fault && isRefusal(*fault) == isRefusal(found);
  };
  const GsdProgram small = shrink(program, fails, mode == Mode::Evaluator ? 600 : 120);
  const std::optional<std::string> fault = check({&small}, mode);
  std::printf("--seed %llu --count 1%s\n%s\n%s\n", static_cast<unsigned long long>(program.seed), flagOf(mode),
              gsdText(small).c_str(), fault ? fault->c_str() : "the failure did not repeat\n");
  std::fflush(stdout);
}

int runEvaluator(const Settings& settings, std::uint64_t job) {
  int failures = 0;
  for (std::uint64_t i = job; i < settings.count && failures < kMostFailures; i += settings.jobs) {
    const GsdProgram program = makeGsdProgram(settings.seed + i);
    if (settings.print)
      std::printf("// seed %llu\n%s\n", static_cast<unsigned long long>(program.seed), gsdText(program).c_str());
    const std::optional<std::string> fault = check({&program}, settings.mode);
    if (!fault) continue;
    ++failures;
    report(program, *fault, settings.mode);
  }
  return failures;
}

// Programs of one mesh are compiled together, as one entry: linking and starting cost more than they do. Training
// programs are the evaluator's: a binary's entry has no update.
int runCompiled(const Settings& settings, std::uint64_t job) {
  static const std::vector<std::vector<std::int64_t>> kMeshes = {{2}, {3}, {4}, {2, 2}, {2, 3}, {5}};
  int failures = 0;
  const std::uint64_t batches = (settings.count + settings.batch - 1) / settings.batch;
  for (std::uint64_t b = job; b < batches && failures < kMostFailures; b += settings.jobs) {
    std::vector<GsdAxis> mesh;
    for (const std::int64_t size : kMeshes[(settings.seed / settings.batch + b) % kMeshes.size()])
      mesh.push_back({mesh.empty() ? "a" : "b", size});
    std::vector<GsdProgram> programs;
    for (std::uint64_t i = b * settings.batch; i < std::min(settings.count, (b + 1) * settings.batch); ++i) {
      programs.push_back(
          makeGsdProgram(settings.seed + i, (settings.seed + i) % 2 == 0 ? GsdKind::Forward : GsdKind::Gradient, mesh));
    }
    std::vector<const GsdProgram*> all;
    for (const GsdProgram& program : programs) all.push_back(&program);
    if (settings.print) std::printf("%s\n", gsdText(all).c_str());
    const std::optional<std::string> fault = check(all, settings.mode);
    if (!fault) continue;
    ++failures;
    bool alone = false;
    for (const GsdProgram& program : programs) {
      const std::optional<std::string> own = check({&program}, settings.mode);
      if (!own) continue;
      alone = true;
      report(program, *own, settings.mode);
      break;
    }
    if (!alone) std::printf("together only: %s\n%s\n", gsdText(all).c_str(), fault->c_str());
  }
  return failures;
}

int run(const Settings& settings) {
  const auto part = [&](std::uint64_t job) {
    return settings.mode == Mode::Evaluator ? runEvaluator(settings, job) : runCompiled(settings, job);
  };
  int failures = 0;
  if (settings.jobs <= 1) {
    failures = part(0);
  } else {
    std::vector<pid_t> children;
    std::fflush(stdout);
    for (std::uint64_t job = 0; job < settings.jobs; ++job) {
      const pid_t child = fork();
      if (child == 0) {
        const int own = part(job);
        std::fflush(stdout);
        _exit(own);
      }
      children.push_back(child);
    }
    for (const pid_t child : children) {
      int status = 0;
      waitpid(child, &status, 0);
      failures += WIFEXITED(status) ? WEXITSTATUS(status) : 1;
    }
  }
  std::printf("%llu programs%s from seed %llu: %d %s\n", static_cast<unsigned long long>(settings.count),
              flagOf(settings.mode), static_cast<unsigned long long>(settings.seed), failures,
              failures == 1 ? "differs" : "differ");
  return failures == 0 ? 0 : 1;
}

}  // namespace
}  // namespace gshard::fuzz

int main(int argc, char** argv) {
  setenv("GSHARD_RUNTIME", GSHARD_RUNTIME_BUILT, 0);
  gshard::fuzz::Settings settings;
  const std::map<std::string, std::uint64_t*> numbers = {{"--seed", &settings.seed},
                                                         {"--count", &settings.count},
                                                         {"--batch", &settings.batch},
                                                         {"--jobs", &settings.jobs}};
  for (int i = 1; i < argc; ++i) {
    const std::string word = argv[i];
    if (const auto number = numbers.find(word); number != numbers.end() && i + 1 < argc) {
      *number->second = std::strtoull(argv[++i], nullptr, 10);
    } else if (word == "--compiled") {
      settings.mode = gshard::fuzz::Mode::Compiled;
    } else if (word == "--mpi") {
      settings.mode = gshard::fuzz::Mode::Mpi;
    } else if (word == "--print") {
      settings.print = true;
    } else {
      std::fprintf(stderr, "gshard_fuzz_gsd: what is `%s`? See the head of tests/fuzz/gsd_fuzz.cpp\n", word.c_str());
      return 2;
    }
  }
  if (settings.batch == 0) settings.batch = 1;
  return gshard::fuzz::run(settings);
}
