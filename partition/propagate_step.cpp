// One step of propagation on factors. Claims that agree (one list begins with the other) refine whoever has a shorter
// one; claims that do not, and axes claimed for two dims of one tensor, are left as contested.
#include "partition/propagate_step.h"

namespace gshard {

namespace {

struct Claim {
  std::size_t tensor = 0;
  AxisList axes;
};

struct Claims {
  std::vector<std::vector<Claim>> all;  // per factor, in order of tensors
  FactorAxes agreed;                    // per factor: what every claim agrees to
  std::vector<std::size_t> from;        // per factor: the tensor with the longest claim
};

bool travels(FactorKind kind, bool windows) {
  switch (kind) {
    case FactorKind::Pass:
    case FactorKind::Reduce:
    case FactorKind::Scan:
    case FactorKind::Lookup:
    case FactorKind::Candidates:
      return true;
    case FactorKind::Window:
      return windows;
    case FactorKind::Whole:
      return false;
  }
  return false;
}

Claims collectClaims(const OpFactors& factors, std::span<const StepTensor> tensors, const std::vector<TensorRef>& refs,
                     bool windows) {
  Claims claims;
  claims.all.resize(factors.factors.size());
  claims.agreed.resize(factors.factors.size());
  claims.from.resize(factors.factors.size(), 0);
  for (std::size_t t = 0; t < tensors.size(); ++t) {
    if (!tensors[t].source) continue;
    const OpFactors::DimFactors& dims = dimFactorsOf(factors, refs[t]);
    for (std::size_t dim = 0; dim < dims.size(); ++dim) {
      if (dims[dim].empty() || (*tensors[t].dims)[dim].empty()) continue;
      const std::vector<AxisList> cut =
          cutAtFactors(factors, dims[dim], tensors[t].type->shape[dim], (*tensors[t].dims)[dim]);
      for (std::size_t i = 0; i < cut.size(); ++i) {
        const auto factor = static_cast<std::size_t>(dims[dim][i]);
        if (!cut[i].empty() && travels(factors.factors[factor].kind, windows))
          claims.all[factor].push_back({t, cut[i]});
      }
    }
  }
  for (std::size_t f = 0; f < claims.all.size(); ++f) {
    const Claim* longest = nullptr;
    for (const Claim& claim : claims.all[f]) {
      if (longest == nullptr || productOf(claim.axes) > productOf(longest->axes)) longest = &claim;
    }
    if (longest == nullptr) continue;
    claims.from[f] = longest->tensor;
    claims.agreed[f] = longest->axes;
    for (const Claim& claim : claims.all[f]) {
      if (!isPrefix(claim.axes, longest->axes)) claims.agreed[f] = commonPrefix(claims.agreed[f], claim.axes);
    }
  }
  return claims;
}

// The dims of one tensor as the agreed claims want them, and the legal part of that.
class Target {
 public:
  Target(const OpFactors::DimFactors& dims, const StepTensor& tensor, const OpFactors& factors)
      : dims_(dims), tensor_(tensor), factors_(factors) {}

  bool open(std::size_t dim) const { return !dims_[dim].empty() && !(*tensor_.fixed)[dim]; }

  // The list that `axes` would make of a dim, cut to what is legal: it refines the present one, no axis splits two dims
  // (`others`: the dims to look at), and a window does not make empty parts (where sizes agree, whoever claims has
  // them).
  AxisList refined(std::size_t dim, const FactorAxes& axes, const std::vector<AxisList>& others) const {
    const AxisList& now = (*tensor_.dims)[dim];
    AxisList wanted;
    for (const int factor : dims_[dim]) {
      for (const AxisRef& ref : axes[static_cast<std::size_t>(factor)]) appendAxis(wanted, ref);
    }
    if (!isPrefix(now, wanted)) return now;
    AxisList result = now;
    const std::int64_t size = tensor_.type->shape[dim];
    for (const AxisRef& ref : withoutPrefix(wanted, now)) {
      if (isWindow(dim) && productOf(result) * ref.size > size) break;
      bool used = overlapsAny(result, ref);
      for (std::size_t other = 0; other < others.size(); ++other)
        used = used || (other != dim && overlapsAny(others[other], ref));
      if (used) break;
      appendAxis(result, ref);
    }
    return expressible(dim, result, now);
  }

  // The factor by which a refined dim grew last.
  int grownFactor(std::size_t dim, const AxisList& axes) const {
    const std::vector<AxisList> cut = cutAtFactors(factors_, dims_[dim], tensor_.type->shape[dim], axes);
    int last = dims_[dim].front();
    for (std::size_t i = 0; i < cut.size(); ++i) {
      if (!cut[i].empty()) last = dims_[dim][i];
    }
    return last;
  }

 private:
  bool isWindow(std::size_t dim) const {
    for (const int factor : dims_[dim]) {
      if (factors_.factors[static_cast<std::size_t>(factor)].kind == FactorKind::Window) return true;
    }
    return false;
  }

  AxisList expressible(std::size_t dim, const AxisList& axes, const AxisList& now) const {
    if (dims_[dim].size() < 2) return axes;
    AxisList kept;
    for (const AxisList& part : cutAtFactors(factors_, dims_[dim], tensor_.type->shape[dim], axes)) {
      for (const AxisRef& ref : part) appendAxis(kept, ref);
    }
    return isPrefix(now, kept) ? kept : now;
  }

  const OpFactors::DimFactors& dims_;
  const StepTensor& tensor_;
  const OpFactors& factors_;
};

bool longer(const AxisList& a, const AxisList& b) {
  return productOf(a) > productOf(b);
}

// What this op would make of one tensor without any conflict.
std::vector<AxisList> refineTensor(const Target& target, const StepTensor& tensor, const Claims& claims) {
  std::vector<AxisList> result = *tensor.dims;
  for (std::size_t dim = 0; dim < result.size(); ++dim) {
    if (target.open(dim)) result[dim] = target.refined(dim, claims.agreed, *tensor.dims);
  }
  // An axis that two dims ask for at once goes to neither.
  const std::vector<AxisList> wanted = result;
  for (std::size_t dim = 0; dim < result.size(); ++dim) {
    if (!longer(wanted[dim], (*tensor.dims)[dim])) continue;
    result[dim] = target.refined(dim, claims.agreed, wanted);
  }
  return result;
}

// What single claims would add to a tensor that the agreed ones do not.
void addContested(const Target& target, std::size_t index, const OpFactors::DimFactors& dims,
                  const std::vector<AxisList>& free, const Claims& claims, std::span<const StepTensor> tensors,
                  std::vector<Refinement>& contested) {
  for (std::size_t dim = 0; dim < dims.size(); ++dim) {
    if (!target.open(dim)) continue;
    for (const int factor : dims[dim]) {
      for (const Claim& claim : claims.all[static_cast<std::size_t>(factor)]) {
        if (claim.tensor == index) continue;
        FactorAxes axes = claims.agreed;
        axes[static_cast<std::size_t>(factor)] = claim.axes;
        AxisList list = target.refined(dim, axes, free);
        if (!longer(list, free[dim])) continue;
        contested.push_back({index, static_cast<std::int64_t>(dim), std::move(list), factor, claim.tensor,
                             tensors[claim.tensor].type->bytes()});
      }
    }
  }
}

}  // namespace

StepResult propagateStep(const OpFactors& factors, std::span<const StepTensor> tensors, bool windows) {
  const std::vector<TensorRef> refs = tensorsOf(factors);
  const Claims claims = collectClaims(factors, tensors, refs, windows);
  StepResult result;
  for (std::size_t t = 0; t < tensors.size(); ++t) {
    if (!tensors[t].target) continue;
    const OpFactors::DimFactors& dims = dimFactorsOf(factors, refs[t]);
    const Target target(dims, tensors[t], factors);
    const std::vector<AxisList> free = refineTensor(target, tensors[t], claims);
    for (std::size_t dim = 0; dim < free.size(); ++dim) {
      if (!longer(free[dim], (*tensors[t].dims)[dim])) continue;
      const int factor = target.grownFactor(dim, free[dim]);
      const std::size_t from = claims.from[static_cast<std::size_t>(factor)];
      result.refinements.push_back(
          {t, static_cast<std::int64_t>(dim), free[dim], factor, from, tensors[from].type->bytes()});
    }
    addContested(target, t, dims, free, claims, tensors, result.contested);
  }
  return result;
}

}  // namespace gshard
