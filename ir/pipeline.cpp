// The order of the passes on global programs, and why.
#include "ir/passes.h"

namespace gshard {

namespace {

constexpr Pass kPipeline[] = {
    pass::eliminateDeadCode,  // first: autodiff and elaboration leave what nobody asked for
    pass::foldConstants,      // gives algebra its ones and zeros
    pass::simplifyAlgebra,
    pass::moveThroughMaps,  // before common subexpressions: operands that only differed by a broadcast now agree
    pass::eliminateCommonSubexpressions,
    pass::eliminateDeadCode,
    pass::splitRows,      // on a small program; what both stages need is copied
    pass::foldConstants,  // dim_size of rows that are known became constants
    pass::simplifyAlgebra,
    pass::eliminateCommonSubexpressions,
    pass::eliminateDeadCode,
};

}  // namespace

std::span<const Pass> globalPipeline() {
  return kPipeline;
}

}  // namespace gshard
