// Lists of axis pieces; see the header.
#include "partition/axis_list.h"

#include <numeric>

#include "support/check.h"

namespace gshard {

void appendAxis(AxisList& list, const AxisRef& ref) {
  if (ref.size == 1) return;
  if (!list.empty() && list.back().axis == ref.axis && list.back().pre * list.back().size == ref.pre) {
    list.back().size *= ref.size;
  } else {
    list.push_back(ref);
  }
}

AxisList commonPrefix(const AxisList& a, const AxisList& b) {
  AxisList result;
  std::size_t i = 0, j = 0;
  AxisRef x, y;  // what is left of a[i] and b[j]; size 1: take the next
  for (;;) {
    if (x.size == 1) {
      if (i == a.size()) return result;
      x = a[i++];
    }
    if (y.size == 1) {
      if (j == b.size()) return result;
      y = b[j++];
    }
    if (x.axis != y.axis || x.pre != y.pre) return result;
    const std::int64_t shared = std::gcd(x.size, y.size);
    if (shared == 1) return result;
    appendAxis(result, {x.axis, x.pre, shared});
    if (shared != x.size && shared != y.size) return result;  // the two cut the axis at places that do not nest
    x = {x.axis, x.pre * shared, x.size / shared};
    y = {y.axis, y.pre * shared, y.size / shared};
  }
}

bool isPrefix(const AxisList& prefix, const AxisList& list) {
  return productOf(commonPrefix(prefix, list)) == productOf(prefix);
}

AxisList withoutPrefix(const AxisList& list, const AxisList& prefix) {
  GSHARD_CHECK(isPrefix(prefix, list), "a list of axes does not begin with its prefix");
  std::int64_t skip = productOf(prefix);
  AxisList result;
  for (const AxisRef& ref : list) {
    if (skip == 1) {
      appendAxis(result, ref);
    } else if (skip % ref.size == 0) {
      skip /= ref.size;
    } else {
      appendAxis(result, {ref.axis, ref.pre * skip, ref.size / skip});
      skip = 1;
    }
  }
  return result;
}

bool overlapsAny(const AxisList& list, const AxisRef& ref) {
  for (const AxisRef& each : list) {
    if (overlaps(each, ref)) return true;
  }
  return false;
}

bool overlapAny(const AxisList& a, const AxisList& b) {
  for (const AxisRef& each : b) {
    if (overlapsAny(a, each)) return true;
  }
  return false;
}

}  // namespace gshard
