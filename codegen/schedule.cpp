// The order of units: writers before readers, otherwise as the program has them, so that what users see in a trace
// follows their source.
#include <algorithm>
#include <map>
#include <queue>
#include <string>

#include "codegen/lowering.h"
#include "support/check.h"

namespace gshard {

std::vector<Unit> scheduleUnits(std::vector<Unit> units) {
  std::map<ValueId, std::vector<std::size_t>> writers;  // in order: later ones complete what the first began
  std::vector<std::vector<std::size_t>> followers(units.size());
  std::vector<std::int64_t> missing(units.size(), 0);
  const auto follow = [&](std::size_t before, std::size_t after) {
    if (before == after) return;
    followers[before].push_back(after);
    ++missing[after];
  };
  for (std::size_t i = 0; i < units.size(); ++i) {
    for (const ValueId value : units[i].writes) {
      std::vector<std::size_t>& list = writers[value];
      if (!list.empty()) follow(list.back(), i);
      list.push_back(i);
    }
  }
  for (std::size_t i = 0; i < units.size(); ++i) {
    for (const ValueId value : units[i].reads) {
      const auto found = writers.find(value);
      if (found == writers.end()) continue;
      const bool completes = std::find(found->second.begin(), found->second.end(), i) != found->second.end();
      if (!completes) follow(found->second.back(), i);
    }
  }
  using Entry = std::pair<std::int64_t, std::size_t>;
  std::priority_queue<Entry, std::vector<Entry>, std::greater<Entry>> ready;
  for (std::size_t i = 0; i < units.size(); ++i) {
    if (missing[i] == 0) ready.emplace(units[i].op, i);
  }
  std::vector<Unit> ordered;
  while (!ready.empty()) {
    const std::size_t unit = ready.top().second;
    ready.pop();
    for (const std::size_t follower : followers[unit]) {
      if (--missing[follower] == 0) ready.emplace(units[follower].op, follower);
    }
    ordered.push_back(std::move(units[unit]));
  }
  std::string waiting;
  for (std::size_t i = 0; i < units.size(); ++i) {
    if (missing[i] > 0) waiting += " " + std::to_string(units[i].op);
  }
  GSHARD_CHECK(waiting.empty(), "fused groups wait for each other: ops" + waiting);
  return ordered;
}

}  // namespace gshard
