// A program as codegen would emit it, written by hand: w is split over two devices, a step adds the sum of all inputs
// to every element of w, so that feeding, kernels, collectives, outputs, checkpoints and the command line can be tested
// without the compiler, and without an image. `predict` doubles its rows, `pick` fails on device 1.
#include <cstdint>

#include "runtime/abi.h"

namespace {

const gshard_rt_axis kAxes[] = {{"data", 2}};
const gshard_rt_axis_ref kData[] = {{0, 1, 2}};

// 0: rows over data (blocks of 5, uneven parts of 3 and 2), 1: 3 columns whole, 2: 7 elements of w over data.
const gshard_rt_extent kExtents[] = {{5, 3, 1, 1, kData}, {3, 3, 0, 0, nullptr}, {7, 4, 0, 1, kData}};

const std::int64_t kShapeX[] = {5, 3}, kExtentsX[] = {0, 1}, kShapeW[] = {7}, kExtentsW[] = {2};
const gshard_rt_tensor kW = {GSHARD_RT_F32, 1, kShapeW, kExtentsW, 0, 16};
const gshard_rt_tensor kSum = {GSHARD_RT_F32, 0, nullptr, nullptr, 64, 4};
const gshard_rt_tensor kX = {GSHARD_RT_F32, 2, kShapeX, kExtentsX, 128, 36};
const gshard_rt_tensor kY = {GSHARD_RT_F32, 2, kShapeX, kExtentsX, 192, 36};
const gshard_rt_tensor kStep = {GSHARD_RT_I32, 0, nullptr, nullptr, 256, 4};

float* at(const gshard_rt_context* context, const gshard_rt_tensor& tensor) {
  return reinterpret_cast<float*>(context->arena + tensor.offset);
}

void initialise(const gshard_rt_context* context, const std::int64_t*, std::int64_t, std::int64_t) {
  gshard_rt_random_uniform(context, at(context, kW), GSHARD_RT_F32, context->extents[4], context->extents[5], 77, 0,
                           0.0, 1.0);
}

void sumInputs(const gshard_rt_context* context, const std::int64_t*, std::int64_t, std::int64_t) {
  float sum = 0;
  for (std::int64_t i = 0; i < context->extents[1] * 3; ++i) sum += at(context, kX)[i];
  *at(context, kSum) = sum;
}

void update(const gshard_rt_context* context, const std::int64_t*, std::int64_t, std::int64_t) {
  for (std::int64_t i = 0; i < context->extents[5]; ++i) at(context, kW)[i] += *at(context, kSum);
}

void twice(const gshard_rt_context* context, const std::int64_t*, std::int64_t begin, std::int64_t end) {
  for (std::int64_t row = begin; row < end && row < context->extents[1]; ++row) {
    for (std::int64_t i = 3 * row; i < 3 * row + 3; ++i) at(context, kY)[i] = 2 * at(context, kX)[i];
  }
}

void fail(const gshard_rt_context* context, const std::int64_t*, std::int64_t, std::int64_t) {
  if (context->extents[0] != 0) gshard_rt_record_fault(context, 1, context->extents[0], 12, 10, 1);
}

const gshard_rt_transfer kReduceSum[] = {{kSum, kSum, nullptr, 0}};
const gshard_rt_collective kAllReduce = {
    GSHARD_RT_ALL_REDUCE, GSHARD_RT_SUM, 1, kData, 0, 0, 1, kReduceSum, -1, 0, 0, 0};
const gshard_rt_kernel_call kInitialise = {initialise, nullptr, 1}, kSumInputs = {sumInputs, nullptr, 1};
const gshard_rt_kernel_call kUpdate = {update, nullptr, 1}, kTwice = {twice, nullptr, 3}, kFail = {fail, nullptr, 1};

const gshard_rt_step kInitSteps[] = {{GSHARD_RT_STEP_KERNEL, 0, &kInitialise, 0, nullptr}};
const gshard_rt_step kTrainSteps[] = {{GSHARD_RT_STEP_KERNEL, 0, &kSumInputs, 0, nullptr},
                                      {GSHARD_RT_STEP_COLLECTIVE, 0, &kAllReduce, 0, nullptr},
                                      {GSHARD_RT_STEP_KERNEL, 0, &kUpdate, 0, nullptr}};
const gshard_rt_step kSumSteps[] = {{GSHARD_RT_STEP_KERNEL, 0, &kSumInputs, 0, nullptr},
                                    {GSHARD_RT_STEP_COLLECTIVE, 0, &kAllReduce, 0, nullptr}};
const gshard_rt_step kPredictSteps[] = {{GSHARD_RT_STEP_KERNEL, 0, &kTwice, 0, nullptr}};
const gshard_rt_step kPickSteps[] = {{GSHARD_RT_STEP_KERNEL, 1, &kFail, 0, nullptr}};

const gshard_rt_input kInputs[] = {{"x", kX, 1}};
const gshard_rt_output kResult[] = {{"result", kSum, GSHARD_RT_OUTPUT, 0}};
const gshard_rt_output kTrainResult[] = {{"result", kSum, GSHARD_RT_OUTPUT, 0}, {"at", kStep, GSHARD_RT_REPORT, 0}};
const gshard_rt_output kRows[] = {{"result", kY, GSHARD_RT_OUTPUT, 1}};
const gshard_rt_output kWeights[] = {{"result", kW, GSHARD_RT_OUTPUT, 0}};

const gshard_rt_function kFunctions[] = {
    {"init",
     GSHARD_RT_INIT,
     GSHARD_RT_WHOLE,
     0,
     1,
     -1,
     0,
     nullptr,
     0,
     nullptr,
     0,
     nullptr,
     0,
     nullptr,
     -1,
     -1,
     1,
     kInitSteps,
     16,
     0,
     0,
     0},
    {"loss",
     GSHARD_RT_TRAIN,
     GSHARD_RT_WHOLE,
     5,
     1,
     -1,
     1,
     kInputs,
     2,
     kTrainResult,
     0,
     nullptr,
     0,
     nullptr,
     256,
     -1,
     3,
     kTrainSteps,
     260,
     0,
     4,
     8},
    {"loss.eval",
     GSHARD_RT_EVAL,
     GSHARD_RT_WHOLE,
     5,
     1,
     -1,
     1,
     kInputs,
     1,
     kResult,
     0,
     nullptr,
     0,
     nullptr,
     -1,
     -1,
     2,
     kSumSteps,
     164,
     0,
     4,
     8},
    {"loss",
     GSHARD_RT_ENTRY,
     GSHARD_RT_WHOLE,
     5,
     1,
     -1,
     1,
     kInputs,
     1,
     kResult,
     0,
     nullptr,
     0,
     nullptr,
     -1,
     -1,
     2,
     kSumSteps,
     164,
     0,
     4,
     8},
    {"predict",
     GSHARD_RT_ENTRY,
     GSHARD_RT_WHOLE,
     5,
     0,
     -1,
     1,
     kInputs,
     1,
     kRows,
     0,
     nullptr,
     0,
     nullptr,
     -1,
     -1,
     1,
     kPredictSteps,
     228,
     0,
     0,
     0},
    {"pick",
     GSHARD_RT_ENTRY,
     GSHARD_RT_WHOLE,
     5,
     1,
     -1,
     1,
     kInputs,
     1,
     kResult,
     0,
     nullptr,
     0,
     nullptr,
     -1,
     -1,
     1,
     kPickSteps,
     164,
     0,
     0,
     0},
    {"weights",
     GSHARD_RT_ENTRY,
     GSHARD_RT_WHOLE,
     0,
     1,
     -1,
     0,
     nullptr,
     1,
     kWeights,
     0,
     nullptr,
     0,
     nullptr,
     -1,
     -1,
     0,
     nullptr,
     16,
     0,
     0,
     0},
};

const gshard_rt_parameter kParameters[] = {{"net.w", kW, 1, "the weights"}};
const gshard_rt_site kSites[] = {{"sample.gsd:3:5", "sum `x`"}, {"sample.gsd:7:9", "take `embed`"}};
const gshard_rt_plan_entry kPlan[] = {{"all_reduce", "data", "sum over split rows", 1, 0, 4, 8}};

const gshard_rt_program kProgram = {"sample", "by hand", "0",         "any", 1,       kAxes,      2,       2, 3,
                                    kExtents, 1,         kParameters, 0,     nullptr, 0,          nullptr, 0, nullptr,
                                    2,        kSites,    1,           kPlan, 7,       kFunctions, 320,     16};

}  // namespace

int main(int argc, char** argv) {
  return gshard_rt_main(argc, argv, &kProgram);
}
