// ChainSink: between sema and the caller's sink. It adds the chain of calls to every message, and passes a message of
// one place on once, since functions are elaborated for train, eval and every instance.
#pragma once

#include <functional>
#include <set>
#include <tuple>

#include "support/diagnostics.h"

namespace gshard::sema {

class ChainSink final : public DiagSink {
 public:
  explicit ChainSink(DiagSink& inner) : inner_(&inner) {}

  void setChain(std::function<std::vector<Note>()> chain) { chain_ = std::move(chain); }
  std::int64_t errors() const { return errors_; }
  std::int64_t reports() const { return reports_; }  // of any severity, repeated ones included

  void report(Diagnostic diagnostic) override {
    ++reports_;
    if (diagnostic.severity == Severity::Error) ++errors_;
    const auto key = std::tuple(diagnostic.code, diagnostic.range);
    if (diagnostic.range.known() && !seen_.insert(key).second) return;
    if (chain_) {
      for (Note& note : chain_()) diagnostic.notes.push_back(std::move(note));
    }
    inner_->report(std::move(diagnostic));
  }

 private:
  DiagSink* inner_;
  std::function<std::vector<Note>()> chain_;
  std::set<std::tuple<std::string, SourceRange>> seen_;
  std::int64_t errors_ = 0, reports_ = 0;
};

}  // namespace gshard::sema
