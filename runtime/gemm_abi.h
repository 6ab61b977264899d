/* The contract of one matrix product between generated code and runtime/gemm_driver.cpp, in C.
   Generated code holds one constant descriptor per distinct product; kernels know the size of their tile and which
   strides are 1, so that products of many shapes share them. Apart from abi.h, because nothing but GEMM uses it. */
#pragma once
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

enum { GSHARD_RT_GEMM_MAX_LOOPS = 8 };

/* Of one kernel's operands, in bytes: from row to row and from k to k of A, from k to k of B, from row to row of C.
   A packed operand has those of its panels. */
typedef struct gshard_rt_gemm_strides {
  int64_t aRow, aK, bK, cRow;
} gshard_rt_gemm_strides;

/* c[tile] = (accumulate ? c[tile] : 0) + sum over `steps` values of k; one FMA chain per element, k ascending. */
typedef void (*gshard_rt_gemm_kernel)(int64_t steps, const void* a, const void* b, void* c, int64_t accumulate,
                                      const gshard_rt_gemm_strides* strides);

/* Copies adjacent panels of equal size (`steps` values of k each) into the layout that the kernel reads. A line is a
   row of A or a column of B; strides in elements. They are arguments, so that products of one module share this code.
 */
typedef void (*gshard_rt_gemm_pack)(int64_t steps, int64_t panels, const void* source, void* packed, int64_t strideLine,
                                    int64_t strideK);

/* Runs on a finished part of the result, still in cache: rows [row, row + rows) and columns alike of the core product,
   at the loop indices `loops` (one per entry of desc->loops). `context` is what the caller of gshard_rt_gemm passed. */
typedef void (*gshard_rt_gemm_epilogue)(void* context, const int64_t* loops, int64_t row, int64_t rows, int64_t column,
                                        int64_t columns);

/* A letter that is walked outside the core product: batch letters, letters that do not merge into M, N or K.
   Those of the sum come last. Strides are in bytes, 0 where an operand lacks the letter. */
typedef struct gshard_rt_gemm_loop {
  int64_t count;
  int64_t strideA, strideB, strideC;
  int64_t liveSlot;   /* index into `live` of the letter that bounds this loop, -1: always `count` */
  int64_t liveFactor; /* live size of the loop = live[liveSlot] * liveFactor */
  int64_t isSum;      /* 1: iterations after the first add to the result */
} gshard_rt_gemm_loop;

/* One of M, N, K of the core product; live size as above. Strides in bytes, 0 where an operand lacks it. */
typedef struct gshard_rt_gemm_side {
  int64_t size;
  int64_t strideA, strideB, strideC;
  int64_t liveSlot;
  int64_t liveFactor;
} gshard_rt_gemm_side;

typedef struct gshard_rt_gemm_desc {
  int64_t elementBytes;
  int64_t swapped; /* 1: the operands were exchanged when planning; the driver exchanges the pointers */
  gshard_rt_gemm_side m, n, k;
  int64_t loopCount;
  gshard_rt_gemm_loop loops[GSHARD_RT_GEMM_MAX_LOOPS];

  /* M: the first `tallPanels` panels have `height` rows, the others one row less. N: panels of `width` columns, the
     last one of `lastWidth` (1..width). Kernel index: [0: height, 1: height - 1][0: width, 1: lastWidth]. */
  int64_t height, panelsM, tallPanels;
  int64_t width, panelsN, lastWidth;
  gshard_rt_gemm_kernel kernels[2][2];
  gshard_rt_gemm_strides strides[2][2];

  /* Null: the kernels read the operand in place. A packed panel of B is as wide as its kernel's vectors. */
  gshard_rt_gemm_pack packA[2];
  gshard_rt_gemm_pack packB[2];

  /* Block sizes: steps of k, panels of A, panels of B. Workspace of one thread: A block, B block, tile. */
  int64_t blockK, blockPanelsM, blockPanelsN;
  int64_t packedWidthB;                          /* elements per k of a packed full panel of B */
  int64_t workspaceA, workspaceB, workspaceTile; /* bytes, multiples of 64; the workspace is 64-byte aligned */

  /* 1: columns of the result are not adjacent; tiles are computed in workspaceTile and scattered. */
  int64_t scatterC;
  int64_t addToC;                   /* 1: c += a * b instead of c = a * b */
  gshard_rt_gemm_epilogue epilogue; /* or null */
  int64_t sourceBytes;              /* of an element of A and B; less than elementBytes: widened while packing */
  /* 1: whole rows may be empty slots of experts, all zeros. Tiles that have nothing but those to multiply are cleared,
     and sums end at the last step that is not empty. */
  int64_t skipsEmpty;
} gshard_rt_gemm_desc;

/* The part of the product that `thread` of `threads` computes; parts are disjoint, and no thread waits for another.
   a, b, c: first elements of the operands as in the description given to the compiler. workspace: 64-byte aligned, of
   the size that the compiler planned for `threads` threads. live: live sizes by slot, or null when all are full; a
   program passes gshard_rt_context::extents, and its slots are 2 * extent + 1. Elements beyond the live M and N may or
   may not be written. A sum of nothing writes 0. */
void gshard_rt_gemm(const gshard_rt_gemm_desc* desc, const void* a, const void* b, void* c, void* workspace,
                    const int64_t* live, void* context, int64_t thread, int64_t threads);

#ifdef __cplusplus
}
#endif
