// main(), alone in its object, so that tests can link the archive and bring their own.
#include <cstdio>

#include "runtime/abi.h"
#include "runtime/failure.h"

// Loaded once and kept to the end, where threads may still look at it; for debuggers, too.
extern const gshard_rt_program* gshard_program;
const gshard_rt_program* gshard_program = nullptr;

int main(int argc, char** argv) {
  const gshard_rt_program* program = gshard_rt_load(&gshard_image);
  gshard_program = program;
  if (program == nullptr && gshard_image.abi == GSHARD_RT_ABI) {
    std::fputs("error: out of memory\n", stderr);
    return gshard::kExitMemory;
  }
  if (program == nullptr) {
    std::fprintf(stderr, "error: compiled for runtime interface %lld, linked with %d\n",
                 static_cast<long long>(gshard_image.abi), GSHARD_RT_ABI);
    return gshard::kExitBug;
  }
  return gshard_rt_main(argc, argv, program);
}
