// Matrix products against the peak of independent multiply-adds measured just before each, on one thread:
//   taskset -c 0 gshard_bench_gemm [--filter TEXT] [--seconds S] [--cpu NAME] [--asm]
// One JSON line per case. Rounds of all cases are interleaved and the best of each counts, because other work on the
// machine only ever slows a round down. Time is that of the thread, so that waiting for a core does not count.
#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>
#include <vector>

#include "bench/gemm_program.h"

namespace gshard {
namespace {

struct Case {
  std::string name;
  GemmDesc desc;
  std::int64_t elementsA, elementsB, elementsC;
};

// C[b, m, n] = A * B, dense; a transposed operand lies in memory with its two dims exchanged.
Case product(GemmElement element, std::int64_t batch, std::int64_t m, std::int64_t n, std::int64_t k, bool transposedA,
             bool transposedB, const std::string& suffix) {
  Case result;
  result.name = element == GemmElement::F32 ? "f32 " : "f64 ";
  if (batch > 1) result.name += std::to_string(batch) + " x ";
  result.name += std::to_string(m) + "x" + std::to_string(n) + "x" + std::to_string(k) + suffix;
  result.desc.element = element;
  if (batch > 1) {
    result.desc.letters.push_back(
        {.group = GemmGroup::Batch, .size = batch, .strideA = m * k, .strideB = k * n, .strideC = m * n});
  }
  result.desc.letters.push_back({.group = GemmGroup::Rows, .size = m, .strideA = transposedA ? 1 : k, .strideC = n});
  result.desc.letters.push_back({.group = GemmGroup::Columns, .size = n, .strideB = transposedB ? k : 1, .strideC = 1});
  result.desc.letters.push_back(
      {.group = GemmGroup::Sum, .size = k, .strideA = transposedA ? m : 1, .strideB = transposedB ? 1 : n});
  result.elementsA = batch * m * k;
  result.elementsB = batch * k * n;
  result.elementsC = batch * m * n;
  return result;
}

std::vector<Case> allCases() {
  const GemmElement f32 = GemmElement::F32;
  std::vector<Case> cases;
  const auto plain = [&](std::int64_t m, std::int64_t n, std::int64_t k) {
    cases.push_back(product(f32, 1, m, n, k, false, false, ""));
  };
  plain(256, 256, 256);
  plain(512, 512, 512);
  plain(1024, 1024, 1024);
  plain(512, 784, 512);
  plain(256, 784, 512);
  plain(256, 512, 512);
  plain(256, 512, 784);
  plain(8, 4096, 1024);
  plain(128, 2048, 512);
  plain(256, 10, 512);
  plain(100, 300, 200);
  cases.push_back(product(f32, 64, 128, 128, 64, false, false, ""));
  cases.push_back(product(f32, 1, 784, 512, 256, true, false, " (dW = X^T dY)"));
  cases.push_back(product(f32, 1, 256, 784, 512, false, true, " (dX = dY W^T)"));
  cases.push_back(product(f32, 1, 1024, 1024, 1024, true, false, " (A^T B)"));
  cases.push_back(product(f32, 1, 1024, 1024, 1024, false, true, " (A B^T)"));
  cases.push_back(product(f32, 1, 512, 10, 256, true, false, " (dW = X^T dY)"));
  cases.push_back(product(f32, 1, 256, 512, 10, false, true, " (dX = dY W^T)"));
  cases.push_back(product(f32, 1, 8, 1024, 4096, false, true, " (dX = dY W^T)"));
  cases.push_back(product(f32, 64, 128, 128, 64, false, true, " (A B^T)"));
  // What char_lm spends its step in: attention over 64 heads of 32, linear layers over 2048 rows.
  cases.push_back(product(f32, 64, 256, 256, 32, false, true, " (scores = Q K^T)"));
  cases.push_back(product(f32, 64, 256, 32, 256, false, false, " (P V)"));
  cases.push_back(product(f32, 64, 256, 32, 256, true, false, " (dV = P^T dY)"));
  cases.push_back(product(f32, 1, 2048, 256, 256, false, false, ""));
  cases.push_back(product(f32, 1, 2048, 1024, 256, false, false, ""));
  cases.push_back(product(f32, 1, 2048, 256, 1024, false, false, ""));
  cases.push_back(product(f32, 1, 256, 1024, 2048, true, false, " (dW = X^T dY)"));
  cases.push_back(product(f32, 1, 2048, 256, 1024, false, true, " (dX = dY W^T)"));
  cases.push_back(product(GemmElement::F64, 1, 512, 512, 512, false, false, ""));
  cases.push_back(product(GemmElement::F64, 1, 1024, 1024, 1024, false, false, ""));
  return cases;
}

struct Free {
  void operator()(void* memory) const { std::free(memory); }
};
using Buffer = std::unique_ptr<void, Free>;

Buffer allocate(std::int64_t bytes) {
  const std::size_t size = static_cast<std::size_t>((bytes + 127) / 64 * 64);
  Buffer buffer(std::aligned_alloc(64, size));
  std::memset(buffer.get(), 0, size);
  return buffer;
}

void fill(const Buffer& buffer, GemmElement element, std::int64_t count) {
  for (std::int64_t i = 0; i < count; ++i) {
    const double value = static_cast<double>((i * 7919) % 1000) / 1000.0 - 0.5;
    if (element == GemmElement::F32)
      static_cast<float*>(buffer.get())[i] = static_cast<float>(value);
    else
      static_cast<double*>(buffer.get())[i] = value;
  }
}

struct Options {
  std::string filter, cpu;
  double seconds = 0.1;
  int rounds = 5;
  bool assembly = false;
};

// Best rate of one product over about `seconds`.
double measure(const Case& item, const GemmPlan& plan, const gshard_rt_gemm_desc* desc, double seconds) {
  const std::int64_t bytes = item.desc.element == GemmElement::F32 ? 4 : 8;
  const Buffer a = allocate(item.elementsA * bytes), b = allocate(item.elementsB * bytes),
               c = allocate(item.elementsC * bytes);
  const Buffer workspace = allocate(plan.workspaceBytes(1));
  fill(a, item.desc.element, item.elementsA);
  fill(b, item.desc.element, item.elementsB);
  // Reading the clock takes about a microsecond: small products run several times between two readings.
  const int repeats = static_cast<int>(std::clamp(2e7 / plan.flops(), 1.0, 1e4));
  double best = 0;
  for (const double begin = threadSeconds(); threadSeconds() - begin < seconds;) {
    const double start = threadSeconds();
    for (int i = 0; i < repeats; ++i) {
      gshard_rt_gemm(desc, a.get(), b.get(), c.get(), workspace.get(), nullptr, nullptr, 0, 1);
    }
    best = std::max(best, repeats * plan.flops() / (threadSeconds() - start));
  }
  return best;
}

void run(const Options& options) {
  std::string error;
  const std::unique_ptr<Target> target = Target::create({.triple = "", .cpu = options.cpu}, error);
  if (!target) {
    std::fprintf(stderr, "%s\n", error.c_str());
    std::exit(2);
  }
  std::vector<Case> cases;
  for (const Case& item : allCases()) {
    if (item.name.find(options.filter) != std::string::npos) cases.push_back(item);
  }
  std::vector<GemmPlan> plans;
  for (const Case& item : cases) plans.push_back(planGemm(item.desc, target->shape()));
  if (options.assembly) {
    std::fputs(gemmAssembly(plans, *target).c_str(), stdout);
    return;
  }
  const GemmProgram program(plans, *target);
  const PeakProbe peak(*target);
  double peaks[2] = {0, 0};
  std::vector<double> best(cases.size(), 0);
  for (int round = 0; round < options.rounds; ++round) {
    for (std::size_t i = 0; i < cases.size(); ++i) {
      double& peakRate = peaks[static_cast<std::size_t>(cases[i].desc.element)];
      peakRate = std::max(peakRate, peak.measure(cases[i].desc.element, options.seconds / 5));
      best[i] = std::max(best[i], measure(cases[i], plans[i], program.desc(i), options.seconds));
    }
  }
  for (std::size_t i = 0; i < cases.size(); ++i) {
    const double peakRate = peaks[static_cast<std::size_t>(cases[i].desc.element)];
    std::printf(
        "{\"bench\": \"gemm\", \"case\": \"%s\", \"value\": %.3f, \"unit\": \"share of peak\", \"gflops\": %.1f, "
        "\"peak_gflops\": %.1f, \"cpu\": \"%s\"}\n",
        cases[i].name.c_str(), best[i] / peakRate, best[i] / 1e9, peakRate / 1e9, target->cpu().c_str());
  }
}

}  // namespace
}  // namespace gshard

int main(int argc, char** argv) {
  gshard::Options options;
  for (int i = 1; i < argc; ++i) {
    const std::string name = argv[i];
    const bool hasValue = i + 1 < argc;
    if (name == "--filter" && hasValue)
      options.filter = argv[++i];
    else if (name == "--seconds" && hasValue)
      options.seconds = std::atof(argv[++i]);
    else if (name == "--rounds" && hasValue)
      options.rounds = std::atoi(argv[++i]);
    else if (name == "--cpu" && hasValue)
      options.cpu = argv[++i];
    else if (name == "--asm")
      options.assembly = true;
    else {
      std::fprintf(stderr,
                   "usage: gshard_bench_gemm [--filter TEXT] [--seconds S] [--rounds N] [--cpu NAME] [--asm]\n");
      return 2;
    }
  }
  gshard::run(options);
  return 0;
}
