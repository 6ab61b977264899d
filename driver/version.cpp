// The version, from CMake.
#include "driver/version.h"

namespace gshard {

std::string versionNumber() {
  return GSHARD_VERSION;
}

std::string versionText() {
  return std::string("gshardc ") + GSHARD_VERSION + "\nLLVM " + GSHARD_LLVM_VERSION + "\nMPI " + GSHARD_MPI_STATE +
         "\nbuild " + GSHARD_BUILD_TYPE + "\n";
}

}  // namespace gshard
