/* The only contract between generated code and the runtime, in C. Generated objects hold ONE constant symbol,
 * `gshard_image`, with everything below; kernels are the only code in them. codegen/ builds these structs field by
 * field in the order written here, runtime/ reads them: change both in one commit and raise GSHARD_RT_ABI. */
#ifndef GSHARD_RUNTIME_ABI_H
#define GSHARD_RUNTIME_ABI_H

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#define GSHARD_RT_ABI 5

/* Same order as ir's DType, Reduction. */
enum {
  GSHARD_RT_F32,
  GSHARD_RT_F64,
  GSHARD_RT_BF16,
  GSHARD_RT_F16,
  GSHARD_RT_I32,
  GSHARD_RT_I64,
  GSHARD_RT_U8,
  GSHARD_RT_BOOL
};
enum { GSHARD_RT_SUM, GSHARD_RT_PROD, GSHARD_RT_MAX, GSHARD_RT_MIN, GSHARD_RT_ANY, GSHARD_RT_ALL };

/* ---- mesh. Device d stands at the row-major coordinates of d over the axes. */
typedef struct gshard_rt_axis {
  const char* name;
  int64_t size;
} gshard_rt_axis;

/* A piece of an axis of size S = pre * size * post: the digit (coordinate / post) % size. */
typedef struct gshard_rt_axis_ref {
  int64_t axis, pre, size;
} gshard_rt_axis_ref;

/* ---- extents: one per distinct (size, axes, rows) of a dim. Per device the runtime keeps int64 pairs
 * extents[2e] = global offset = min(part * index, current size), extents[2e + 1] = live size of the device's part,
 * where index is the flat index over `axes` (major first) and current size is `size`, or rows_now * row_scale for row
 * dims (recomputed before every block of rows). part = ceil(size / product of axes). */
typedef struct gshard_rt_extent {
  int64_t size, part;
  int64_t row_scale; /* 0: fixed */
  int64_t axis_count;
  const gshard_rt_axis_ref* axes;
} gshard_rt_extent;

/* ---- a tensor: its global shape and the tile in the arena, dense row-major over the parts. */
typedef struct gshard_rt_tensor {
  int64_t dtype, rank;
  const int64_t* shape;   /* global; of a row dim: of one block */
  const int64_t* extents; /* per dim: index of the program's extents */
  int64_t offset;         /* of the tile in the arena, bytes; a multiple of 64 */
  int64_t bytes;          /* of the tile (product of parts * element size) */
} gshard_rt_tensor;

/* ---- kernels */
typedef struct gshard_rt_context {
  char* arena;
  const int64_t* extents;
  uint64_t seed;
  int64_t total_rows; /* what dim_size of a row dim is */
  void* faults;       /* for gshard_rt_record_fault */
} gshard_rt_context;

/* Does chunks [begin, end) of `chunks`; args are the constants of this call (arena offsets, sizes, extent numbers,
 * sites). */
typedef void (*gshard_rt_kernel)(const gshard_rt_context* context, const int64_t* args, int64_t begin, int64_t end);

typedef struct gshard_rt_kernel_call {
  gshard_rt_kernel kernel;
  const int64_t* args;
  int64_t chunks; /* fixed at compile time; threads take equal runs of them */
} gshard_rt_kernel_call;

struct gshard_rt_gemm_desc; /* runtime/gemm_abi.h */
/* Every thread of the device calls gshard_rt_gemm(gemm, arena + a, arena + b, arena + c, arena + workspace,
 * context->extents, context, thread, threads): the descriptor's live slots are indices of `extents` (2e + 1 of extent
 * e). */
typedef struct gshard_rt_gemm_call {
  const struct gshard_rt_gemm_desc* gemm;
  int64_t a, b, c, workspace; /* arena offsets of first elements; the workspace is 64-byte aligned */
} gshard_rt_gemm_call;

typedef struct gshard_rt_copy { /* arena to arena */
  int64_t from, to, bytes;
} gshard_rt_copy;

/* ---- collectives. Every one is an identity on the global value(s); `from` and `to` describe the tiles. */
enum {
  GSHARD_RT_ALL_REDUCE,
  GSHARD_RT_REDUCE_SCATTER,
  GSHARD_RT_ALL_GATHER,
  GSHARD_RT_ALL_TO_ALL,
  GSHARD_RT_COLLECTIVE_PERMUTE,
  GSHARD_RT_EXCHANGE,
  GSHARD_RT_ALL_SLICE,
  GSHARD_RT_MAKE_PARTIAL /* local copies, no communication */
};

/* Result index r of one dim reads operand index (scale * r + offset) / divide of operand_dim, where that is whole and
 * inside the operand; operand_dim -1: the operand has no such dim. */
typedef struct gshard_rt_move_dim {
  int64_t operand_dim, scale, offset, divide;
} gshard_rt_move_dim;

enum { GSHARD_RT_MOVE_AFFINE, GSHARD_RT_MOVE_RESHAPE };

typedef struct gshard_rt_transfer { /* one tensor of a combined collective; one source of an exchange */
  gshard_rt_tensor from, to;
  const gshard_rt_move_dim* move; /* exchange: per dim of `to`; null: identity */
  int64_t move_kind;
} gshard_rt_transfer;

typedef struct gshard_rt_collective {
  int64_t kind, reduction;
  int64_t axis_count;
  const gshard_rt_axis_ref* axes; /* the group: devices that differ in these digits only, in flat order */
  int64_t dim, other_dim;         /* gather, scatter, slice: dim. all_to_all: dim = split, other_dim = concat */
  int64_t transfer_count;
  const gshard_rt_transfer* transfers;
  int64_t fill; /* exchange as pad: arena offset of the scalar that fills `to` first; -1: none */
  int64_t workspace,
      workspace_bytes; /* arena; enough for the collective (all_reduce works in place: from.offset == to.offset) */
  int64_t plan;        /* index of the program's plan; -1 for local copies */
} gshard_rt_collective;

/* ---- functions: tables of steps */
enum { GSHARD_RT_STEP_KERNEL, GSHARD_RT_STEP_GEMM, GSHARD_RT_STEP_COLLECTIVE, GSHARD_RT_STEP_COPY };

typedef struct gshard_rt_made { /* a tensor that a step leaves complete in memory: what traces show and checks read */
  int64_t site;                 /* of the op that it is the result of, which fusion may have put into a larger kernel */
  int64_t infinite;             /* 1: may hold infinities that the program wrote itself */
  gshard_rt_tensor tensor;
} gshard_rt_made;

typedef struct gshard_rt_step {
  int64_t kind;
  int64_t site;     /* index of the program's sites */
  const void* call; /* gshard_rt_kernel_call, _gemm_call, _collective or _copy */
  int64_t made_count;
  const gshard_rt_made* made;
} gshard_rt_step;

typedef struct gshard_rt_input {
  const char* name;
  gshard_rt_tensor tensor;
  int64_t rows; /* 1: fed by rows (its dim 0 takes the rows of the step); 0: fed whole */
} gshard_rt_input;

enum { GSHARD_RT_OUTPUT, GSHARD_RT_REPORT };
typedef struct gshard_rt_output {
  const char* name; /* "result", "result.0"; a report's path */
  gshard_rt_tensor tensor;
  int64_t kind;
  int64_t rows; /* 1: its row dim (extent with row_scale) is written block by block */
} gshard_rt_output;

typedef struct gshard_rt_accumulator { /* filled with the identity before the first block; kept between accumulate and
                                          finish */
  gshard_rt_tensor tensor;
  int64_t reduction;
} gshard_rt_accumulator;

typedef struct gshard_rt_setting_use {
  int64_t setting, offset; /* index of the program's settings; arena offset of the scalar */
} gshard_rt_setting_use;

enum { GSHARD_RT_INIT, GSHARD_RT_TRAIN, GSHARD_RT_EVAL, GSHARD_RT_ENTRY };
enum { GSHARD_RT_WHOLE, GSHARD_RT_ACCUMULATE, GSHARD_RT_FINISH };

typedef struct gshard_rt_function {
  const char* name; /* "loss", "loss.accumulate", "loss.finish", "loss.eval" … */
  int64_t kind, stage;
  int64_t rows;   /* of one block; 0: no row dim */
  int64_t blocks; /* accumulate: blocks per step; 0: as many as the data has; else 1 */
  int64_t finish; /* accumulate: index of the finish function; else -1 */
  int64_t input_count;
  const gshard_rt_input* inputs;
  int64_t output_count;
  const gshard_rt_output* outputs;
  int64_t accumulator_count;
  const gshard_rt_accumulator* accumulators;
  int64_t setting_count;
  const gshard_rt_setting_use* settings;
  int64_t step_offset, steps_offset; /* arena offsets of the i32 scalars `step`, `steps`; -1: unused */
  int64_t step_count;
  const gshard_rt_step* steps;
  int64_t peak_bytes; /* highest arena byte this function touches */
  int64_t peak_site;
  int64_t comm_bytes_max, comm_bytes_total; /* per call, as planned */
  int64_t step_rows; /* accumulate: rows of all blocks of a step where the last is short; 0: rows * blocks */
} gshard_rt_function;

/* ---- the program */
typedef struct gshard_rt_parameter {
  const char* name;        /* "net.w1" */
  gshard_rt_tensor tensor; /* fixed offset for the whole program */
  int64_t trained;
  const char* doc;
} gshard_rt_parameter;

typedef struct gshard_rt_state {
  const char* name;
  gshard_rt_tensor tensor;
  int64_t saved; /* 1: train assigns it, so checkpoints hold it */
} gshard_rt_state;

typedef struct gshard_rt_setting {
  const char* name;
  int64_t dtype;
  double value;
  const char* doc;
} gshard_rt_setting;

typedef struct gshard_rt_constant {
  const char *name, *type, *value, *doc;
} gshard_rt_constant;

typedef struct gshard_rt_site {
  const char* location; /* "digits_mlp.gsd:17:22" */
  const char* text;     /* op and value as users know them: "take `embed`" */
} gshard_rt_site;

typedef struct gshard_rt_plan_entry {
  const char *kind, *axes, *reason; /* "all_reduce", "model" */
  int64_t function, site;
  int64_t bytes_max, bytes_total; /* received per call of the function */
} gshard_rt_plan_entry;

typedef struct gshard_rt_program {
  const char *name, *compiler, *source_hash, *cpu;
  int64_t axis_count;
  const gshard_rt_axis* axes;
  int64_t devices, threads;
  int64_t extent_count;
  const gshard_rt_extent* extents;
  int64_t parameter_count;
  const gshard_rt_parameter* parameters;
  int64_t state_count;
  const gshard_rt_state* states;
  int64_t setting_count;
  const gshard_rt_setting* settings;
  int64_t constant_count;
  const gshard_rt_constant* constants;
  int64_t site_count;
  const gshard_rt_site* sites;
  int64_t plan_count;
  const gshard_rt_plan_entry* plan;
  int64_t function_count;
  const gshard_rt_function* functions;
  int64_t arena_bytes;      /* of every device: the largest peak */
  int64_t persistent_bytes; /* parameters and states: [0, persistent_bytes) */
} gshard_rt_program;

/* ---- the image: a program as it lies in an object. `bytes` has its records one after another and its texts behind
 * them. A field that is an address holds, until gshard_rt_load made it one, an offset in `bytes` or, of a kernel or a
 * product's descriptor, an index of `symbols`. So the object has one relocation for each of these, and none for the
 * tens of thousands of addresses that the tables of a deep model have among themselves. */
typedef struct gshard_rt_image {
  int64_t abi; /* GSHARD_RT_ABI */
  int64_t byte_count;
  const char* bytes; /* 8-byte aligned; the gshard_rt_program comes first */
  int64_t address_count;
  const uint32_t* addresses; /* which 8-byte words of `bytes` are offsets in it, ascending */
  int64_t symbol_use_count;
  const uint32_t* symbol_uses; /* which are indices of `symbols` */
  int64_t symbol_count;
  const void* const* symbols;
} gshard_rt_image;

extern const gshard_rt_image gshard_image;

/* The program of an image, in one block of malloc. Null if the image is of another GSHARD_RT_ABI, or memory is out. */
const gshard_rt_program* gshard_rt_load(const gshard_rt_image* image);

/* ---- functions of the runtime that kernels call: X(name, result, parameter types). Types: v void, p pointer, l int64,
 * d double. Both sides take signatures from this table. */
#define GSHARD_RT_FUNCTIONS(X)                                                                                       \
  /* context, site, global flat index of the result element, offending value, limit: keeps the least (site order,    \
   * index) */                                                                                                       \
  X(gshard_rt_record_fault, v, plllll)                                                                               \
  /* context, out, dtype, first global flat index, count, site, step, low, high: consecutive elements */             \
  X(gshard_rt_random_uniform, v, ppllllldd)                                                                          \
  /* context, out, dtype, first global flat index, count, site, step */                                              \
  X(gshard_rt_random_normal, v, pplllll)                                                                             \
  /* row, values or null, indices or null, workspace, dtype, size, kept, stride of the row, of the outputs,          \
   * descending: the first `kept` of the row in order; the workspace has 8 bytes an element, 16 for f64 and i64 */   \
  X(gshard_rt_sort, v, ppppllllll)                                                                                   \
  /* one group: gates, uniform or null, live or null; expert, slot, weight, source, first, count, dropped; dtype,    \
   * tokens, experts, choices, capacity, rest, normalise, scale or threshold: GShard's algorithm 1 (ir/ops/route) */ \
  X(gshard_rt_route, v, ppppppppppllllllld)

/* The fault kinds are told by the limit: >= 0: "index VALUE is out of range for LIMIT"; -1: "division by zero"; at most
 * GSHARD_RT_LIMIT_OF_START_MOST: "start VALUE of dim INDEX lies outside 0 to LAST", LAST being counted from INT64_MIN.
 */
#define GSHARD_RT_LIMIT_OF_DIVISION (-1)
#define GSHARD_RT_LIMIT_OF_START(last) (INT64_MIN + (last))
#define GSHARD_RT_LIMIT_OF_START_MOST (INT64_MIN / 2)
void gshard_rt_record_fault(const gshard_rt_context*, int64_t site, int64_t index, int64_t value, int64_t limit,
                            int64_t order);
void gshard_rt_random_uniform(const gshard_rt_context*, void* out, int64_t dtype, int64_t first, int64_t count,
                              int64_t site, int64_t step, double low, double high);
void gshard_rt_random_normal(const gshard_rt_context*, void* out, int64_t dtype, int64_t first, int64_t count,
                             int64_t site, int64_t step);
void gshard_rt_sort(const void* row, void* values, void* indices, void* workspace, int64_t dtype, int64_t size,
                    int64_t kept, int64_t stride, int64_t outputStride, int64_t descending);

/* Which choices after the first are tried; what weights are divided by. */
enum { GSHARD_RT_REST_NONE, GSHARD_RT_REST_ALL, GSHARD_RT_REST_RANDOM, GSHARD_RT_REST_THRESHOLD };
enum { GSHARD_RT_NORMALISE_NONE, GSHARD_RT_NORMALISE_BEFORE_DROP, GSHARD_RT_NORMALISE_AFTER_DROP };
void gshard_rt_route(const void* gates, const void* uniform, const void* live, void* expert, void* slot, void* weight,
                     void* source, void* first, void* count, void* dropped, int64_t dtype, int64_t tokens,
                     int64_t experts, int64_t choices, int64_t capacity, int64_t rest, int64_t normalise, double limit);

/* What main() of the binary, which lies in the archive (program_main.cpp), calls with the loaded program. */
int gshard_rt_main(int argc, char** argv, const gshard_rt_program* program);

#ifdef __cplusplus
}
#endif
#endif
