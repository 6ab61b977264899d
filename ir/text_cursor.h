// A walk over the tokens of IR text, and the small forms that all of it is made of: types, shardings, lists. The first
// mistake is reported and moves the walk to the end, so that what follows finds nothing more and stays silent.
#pragma once

#include "ir/diagnostics.h"
#include "ir/module.h"
#include "ir/text_lexer.h"

namespace gshard {

class IrCursor {
 public:
  IrCursor(std::vector<IrToken> tokens, DiagSink& diag) : tokens_(std::move(tokens)), diag_(&diag) {}

  const IrToken& peek() const { return tokens_[at_]; }
  const IrToken& previous() const { return tokens_[at_ > 0 ? at_ - 1 : 0]; }
  bool failed() const { return failed_; }
  bool atEnd() const { return peek().kind == IrTokenKind::End; }
  DiagSink& diag() { return *diag_; }

  bool isMark(std::string_view mark) const { return peek().kind == IrTokenKind::Mark && peek().text == mark; }
  bool isName(std::string_view word) const { return peek().kind == IrTokenKind::Name && peek().text == word; }
  bool acceptMark(std::string_view mark);
  bool acceptName(std::string_view word);
  void expectMark(std::string_view mark);
  void expectName(std::string_view word);
  std::string takeName(std::string_view what);  // an identifier or a quoted string
  std::string takeString();
  std::string takeValue();
  std::int64_t takeInt();
  double takeReal();

  std::vector<std::int64_t> takeInts();  // [1, 2]
  DType takeDType();
  Type takeType();
  Mesh takeMesh();  // [data: 2, model: 2]
  AxisRef takeAxisRef(const Mesh& mesh);
  std::vector<AxisRef> takeAxes(const Mesh& mesh);  // [a, b(1,2)]
  Sharding takeSharding(const Mesh& mesh);          // {[a, _], sum: b}
  std::optional<Sharding> takeOptionalSharding(const Mesh& mesh);
  Annotation takeAnnotation(const Mesh& mesh);  // a sharding, then `open`, `stored`
  Reduction takeReduction();

  void expected(std::string_view what);  // reports what is there instead
  void stopQuietly() { stop(); }         // after a mistake that was reported elsewhere
  template <class... Args>
  void error(SourceRange range, const Diag<Args...>& row, std::type_identity_t<Args>... arguments) {
    if (!failed_) diag_->emit(range, row, std::move(arguments)...);
    stop();
  }

 private:
  void advance() {
    if (!atEnd()) ++at_;
  }
  void stop() {
    failed_ = true;
    at_ = tokens_.size() - 1;
  }

  std::vector<IrToken> tokens_;
  std::size_t at_ = 0;
  bool failed_ = false;
  DiagSink* diag_;
};

}  // namespace gshard
