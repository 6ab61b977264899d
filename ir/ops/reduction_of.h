// What the ops with an attribute `fn` reduce by.
#pragma once

#include "ir/op_rules.h"
#include "support/check.h"

namespace gshard {

inline Reduction reductionOf(const OpView& op) {
  const std::optional<Reduction> reduction = reductionFromName(op.stringAttr("fn"));
  GSHARD_CHECK(reduction.has_value(), "`" + op.stringAttr("fn") + "` is no reduction");
  return *reduction;
}

}  // namespace gshard
