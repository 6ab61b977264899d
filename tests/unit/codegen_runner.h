/* Runs one function of a generated program on devices that are threads: the runtime's side of the code generation
 * tests. In C and in a shared object of its own, because compiler and runtime may not be linked into one program: they
 * share names on purpose, and nothing but runtime/abi.h. */
#pragma once
#include "runtime/abi.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct gshard_test_run {
  const gshard_rt_program* program;
  int64_t function;
  int64_t rows, total_rows;
  uint64_t seed;
  int64_t threads;
  int64_t step, steps;
  const double* settings; /* by setting number */
  /* Tiles, dense over the parts: [device * count + number]. */
  const void* const* inputs;
  const void* const* parameters;
  const void* const* states;
  void* const* outputs;
  void* const* new_parameters;
  void* const* new_states;
  /* Told back. */
  int64_t fault_site, fault_index, fault_value, fault_limit; /* site -1: none */
  int64_t highest_byte;                                      /* arena bytes touched on any device */
  int64_t* bytes_received;                                   /* per device */
} gshard_test_run;

/* 0, or the exit code of an abort. The arena is poisoned first. */
int gshard_test_run_function(gshard_test_run* run);

#ifdef __cplusplus
}
#endif
