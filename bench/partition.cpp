// The partition passes for few and for many devices, which must cost the same:
//   gshard_bench_partition MODEL.gsd [--small MESH] [--large MESH] [--rounds N] [-D NAME=VALUE]...
// Only the passes of partitionPipeline() are timed: reading and elaborating a program does not depend on the mesh and
// would hide what does. Rounds of the two meshes are interleaved and the median of each counts, in time of the thread,
// so that waiting for a core does not count and a slow minute slows both.
#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <ctime>

#include "driver/stages.h"
#include "partition/passes.h"

namespace gshard {
namespace {

double threadSeconds() {
  timespec now{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
  return static_cast<double>(now.tv_sec) + 1e-9 * static_cast<double>(now.tv_nsec);
}

struct Side {
  Options options;
  Module global;
  std::vector<double> seconds;
  std::size_t ops = 0;

  void round() {
    Module module = global;
    CollectingSink sink;
    const PassOptions passOptions;
    PassContext context{passOptions, sink};
    const double start = threadSeconds();
    for (const Pass& pass : partitionPipeline()) pass.run(module, context);
    seconds.push_back(threadSeconds() - start);
    ops = 0;
    for (const Function& function : module.functions) ops += function.ops.size();
  }

  double median() {
    const auto middle = seconds.begin() + static_cast<std::ptrdiff_t>(seconds.size() / 2);
    std::nth_element(seconds.begin(), middle, seconds.end());
    return *middle;
  }
};

void line(const std::string& what, double value, const char* unit) {
  std::printf("{\"bench\": \"partition\", \"case\": \"%s\", \"value\": %.4g, \"unit\": \"%s\"}\n", what.c_str(), value,
              unit);
}

int run(int argc, char** argv) {
  Options common;
  Side sides[2];
  sides[0].options.mesh = "data=4,model=2";
  sides[1].options.mesh = "data=256,model=8";
  int rounds = 200;
  for (int i = 1; i < argc; ++i) {
    const std::string word = argv[i];
    const bool more = i + 1 < argc;
    if (word == "--small" && more) {
      sides[0].options.mesh = argv[++i];
    } else if (word == "--large" && more) {
      sides[1].options.mesh = argv[++i];
    } else if (word == "--rounds" && more) {
      rounds = std::max(1, std::atoi(argv[++i]));
    } else if (word == "-D" && more) {
      const std::string define = argv[++i];
      const std::size_t equals = define.find('=');
      if (equals == std::string::npos) return kUsage;
      common.defines.emplace_back(define.substr(0, equals), define.substr(equals + 1));
    } else {
      common.input = word;
    }
  }
  const std::string name = common.input.substr(common.input.rfind('/') + 1);
  for (Side& side : sides) {
    const std::string mesh = side.options.mesh;
    side.options = common;
    side.options.mesh = mesh;
    Session session(side.options);
    side.global = globalModule(session);
    side.round();  // the first touches memory that later ones find
    side.seconds.clear();
  }
  for (int round = 0; round < rounds; ++round) {
    for (Side& side : sides) side.round();
  }
  const double small = sides[0].median(), large = sides[1].median();
  const auto devices = [&](const Side& side) { return std::to_string(side.global.mesh.devices()); };
  line(name + ", passes for " + devices(sides[0]) + " devices", small * 1e3, "ms");
  line(name + ", passes for " + devices(sides[1]) + " devices", large * 1e3, "ms");
  line("time for " + devices(sides[1]) + " over " + devices(sides[0]), large / small, "ratio");
  line(name + ", ops for " + devices(sides[0]) + " devices", static_cast<double>(sides[0].ops), "ops");
  line(name + ", ops for " + devices(sides[1]) + " devices", static_cast<double>(sides[1].ops), "ops");
  return kOk;
}

}  // namespace
}  // namespace gshard

int main(int argc, char** argv) {
  try {
    return gshard::run(argc, argv);
  } catch (const gshard::Stopped& stopped) {
    return stopped.code;
  }
}
