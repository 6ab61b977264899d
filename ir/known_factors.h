// Factors of ops by signature: equal ops are asked once. For walks over functions that grow meanwhile; where they do
// not, OpSignatures numbers the values once, too.
#pragma once

#include <deque>

#include "ir/factors.h"
#include "ir/op_signature.h"

namespace gshard {

class KnownFactors {
 public:
  const OpFactors& of(const OpView& op);  // stays where it is

 private:
  ValueNumbers values_{/*sharded=*/false};
  Key key_;
  KeyNumbers signatures_;
  std::deque<OpFactors> factors_;  // by number of signature
};

}  // namespace gshard
