// From one function of SPMD IR to a list of units of work (kernels, products, runtime steps) in the order in which they
// run, on values that have no place in memory yet.
#pragma once

#include <variant>

#include "codegen/expression.h"
#include "codegen/gemm.h"
#include "support/diagnostics.h"

namespace gshard {

struct ProductWork {
  GemmDesc desc;
  ValueId a, b, c;                    // storage values
  std::int64_t baseA = 0, baseB = 0;  // first elements
};

// A collective or a local copy: a step that the runtime does.
struct RuntimeWork {};

struct Unit {
  std::variant<KernelWork, ProductWork, RuntimeWork> work;
  std::int64_t op = 0;                 // that it is reported as; its site
  std::vector<ValueId> reads, writes;  // storage values
  // (write, read): the write may take the read's buffer if nobody reads that later.
  std::vector<std::pair<ValueId, ValueId>> inPlace;
};

struct LoweredFunction {
  std::vector<Unit> units;  // in running order
};

struct LoweringOptions {
  bool fuse = true;
  std::int64_t siteBase = 0;  // site of op 0
};

LoweredFunction lowerFunction(const FunctionViews& views, const LoweringOptions& options);

// Which contractions become matrix products (GEMM): the others are loop nests.
std::vector<bool> chooseProducts(const FunctionViews& views);
ProductWork makeProduct(const FunctionViews& views, std::size_t op);
KernelWork makeContractKernel(const FunctionViews& views, const FusionPlan& plan, std::size_t op,
                              std::int64_t siteBase);

KernelWork makeScanKernel(const FunctionViews& views, const FusionPlan& plan, std::size_t op, std::int64_t siteBase);
KernelWork makeRouteKernel(const FunctionViews& views, const FusionPlan& plan, std::size_t number,
                           std::int64_t siteBase);
KernelWork makeSortKernel(const FunctionViews& views, const FusionPlan& plan, std::size_t op, std::int64_t siteBase);

// Units ordered so that writers come before readers, and otherwise as the program has them.
std::vector<Unit> scheduleUnits(std::vector<Unit> units);

}  // namespace gshard
