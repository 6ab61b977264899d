// main(), alone in its object, so that tests can link the archive and bring their own.
#include <cstdio>

#include "runtime/abi.h"
#include "runtime/failure.h"

int main(int argc, char** argv) {
  static const gshard_rt_program* program = nullptr;  // kept to the end: threads may still look at it
  program = gshard_rt_load(&gshard_image);
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
