// The order of partitioning, and why.
#include "partition/passes.h"

namespace gshard {

namespace {
constexpr Pass kPipeline[] = {
    pass::readStored,          // first: propagation must not see how a @stored tensor is kept
    pass::cloneGenerators,     // a constant used by two ops would tie their splits together
    pass::propagateShardings,  // from here on every value has the sharding that it should have
    pass::groupPendingSums,    // before partition decides where each sum is completed
    pass::partition,           // and from here on the one that it has, with collectives in between
    pass::mergeGenerators,     // copies that came out alike
    pass::eliminateCommonCollectives,
    pass::formReduceScatters,       // after elimination: needs to see every use of an all_reduce
    pass::combineSmallCollectives,  // last: a combined op hides the single ones
};
}  // namespace

std::span<const Pass> partitionPipeline() {
  return kPipeline;
}

}  // namespace gshard
