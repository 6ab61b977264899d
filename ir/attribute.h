// Attributes of ops: a small sorted map of typed values. Only what an op's text form shows.
#pragma once

#include <utility>
#include <variant>

#include "ir/sharding.h"

namespace gshard {

// Numbers of a constant, exact: `ints` for integer and bool dtypes, `floats` for float dtypes. One element with a
// larger type is a splat.
struct Literal {
  std::vector<std::int64_t> ints;
  std::vector<double> floats;
  friend bool operator==(const Literal& a, const Literal& b);  // floats by bits: nan equals nan, 0 differs from -0
};
Literal intLiteral(std::int64_t value);
Literal floatLiteral(double value);

using Attribute = std::variant<std::int64_t, double, bool, std::string, std::vector<std::int64_t>, DType,
                               std::vector<AxisRef>, Annotation, Literal>;

class Attributes {
 public:
  Attributes() = default;
  Attributes(std::initializer_list<std::pair<std::string, Attribute>> items);

  const Attribute* find(std::string_view name) const;
  void set(std::string name, Attribute value);
  void erase(std::string_view name);
  const std::vector<std::pair<std::string, Attribute>>& items() const { return items_; }
  bool empty() const { return items_.empty(); }
  friend bool operator==(const Attributes&, const Attributes&) = default;

 private:
  std::vector<std::pair<std::string, Attribute>> items_;  // sorted by name
};

}  // namespace gshard
