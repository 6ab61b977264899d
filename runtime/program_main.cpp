// main(), alone in its object, so that tests can link the archive and bring their own.
#include <cstdio>

#include "runtime/abi.h"
#include "runtime/failure.h"

namespace gshard::runtime {

// Loaded once and kept to the end, where threads may still look at it; for debuggers, too.
extern const gshard_rt_program* loadedProgram;
const gshard_rt_program* loadedProgram = nullptr;

}  // namespace gshard::runtime

int main(int argc, char** argv) {
  const gshard_rt_program* program = gshard_rt_load(&gshard_image);
  gshard::runtime::loadedProgram = program;
  if (program == nullptr && gshard_image.abi == GSHARD_RT_ABI) {
    std::fputs("error: out of memory\n", stderr);
    return gshard::runtime::kExitMemory;
  }
  if (program == nullptr) {
    std::fprintf(stderr, "error: compiled for runtime interface %lld, linked with %d\n",
                 static_cast<long long>(gshard_image.abi), GSHARD_RT_ABI);
    return gshard::runtime::kExitBug;
  }
  return gshard_rt_main(argc, argv, program);
}
