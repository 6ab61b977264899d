// main(), alone in its object, so that tests can link the archive and bring their own.
#include "runtime/abi.h"

int main(int argc, char** argv) {
  return gshard_rt_main(argc, argv, &gshard_program);
}
