// Reading one op of IR text, and the names of the values of one function.
#pragma once

#include <map>

#include "ir/text_cursor.h"

namespace gshard {

class IrValues {
 public:
  explicit IrValues(IrCursor& in) : in_(&in) {}

  void clear() { values_.clear(); }
  // A type, then a sharding and the row dim if they are written.
  Value takeType(const Mesh& mesh, const std::string& name, SourceRange range);
  ValueId define(Function& function, const std::string& name, Value value, SourceRange range);
  ValueId takeKnown();

 private:
  IrCursor* in_;
  std::map<std::string, ValueId> values_;
};

// `%r, … = NAME WORDS %a, … {attributes} : TYPE, … PHASE`, appended to the function. What an op may look like is said
// by its OpDef; types are inferred and compared with those written.
void readIrOp(IrCursor& in, const Module& module, Function& function, IrValues& values);

}  // namespace gshard
