// What pure questions about an op depend on, as bytes: kind, attributes, types and, where asked for, shardings. Two ops
// of equal signature have equal factors, verify alike and are partitioned alike, so a model of many equal layers asks
// each question once. Source ranges, names and phases are left out.
#pragma once

#include <string>

#include "ir/module.h"

namespace gshard {

void appendNumber(std::string& key, std::int64_t number);
void appendAxes(std::string& key, std::span<const AxisRef> axes);
void appendSharding(std::string& key, const Sharding& sharding);

// Signatures of a function's ops. Also part of one: the numbers of scalar operands that are constants, since what a
// `pad` pads with decides what may be pending in it.
class OpSignatures {
 public:
  explicit OpSignatures(const Function& function);

  void append(std::string& key, const Op& op) const { append(key, op, false); }
  // With the shardings of all its values.
  void appendSharded(std::string& key, const Op& op) const { append(key, op, true); }

 private:
  void append(std::string& key, const Op& op, bool sharded) const;
  void appendValues(std::string& key, std::span<const ValueId> values, bool sharded) const;

  const Function& function_;
  std::vector<const Attribute*> constants_;  // by value; null: no scalar constant
};

}  // namespace gshard
