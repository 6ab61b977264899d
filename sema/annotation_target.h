// The sharding of one tensor while its annotations are read; shared by annotations.cpp and patterns.cpp.
#pragma once

#include "sema/elaborator.h"

namespace gshard::sema {

// The sharding while its annotations are read.
struct Elaborator::AnnotationTarget {
  const Type* type = nullptr;
  const Written* written = nullptr;
  Annotation annotation;
  std::vector<SourceRange> dimRanges;                 // per dim: the annotation that splits it
  std::vector<std::pair<AxisRef, SourceRange>> used;  // axes that split a dim already
  std::int64_t integerProduct = 1;                    // of integer splits, on the axis `devices`
  bool split = false;
  bool mayBeStored = false;
  bool isComputed = false;  // by an expression, which may be recomputed
  bool silent = false;      // a wildcard pattern passes over tensors that it does not fit
  bool fits = true;
};

}  // namespace gshard::sema
