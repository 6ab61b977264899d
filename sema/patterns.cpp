// Path patterns: `shard net.**.adam.* @split(0, data)` at top level or in a layout file.
#include <algorithm>

#include "sema/annotation_target.h"
#include "sema/diagnostics.h"
#include "support/text.h"

namespace gshard::sema {

namespace {

bool segmentMatches(const ast::PatternSegment& segment, const std::string& part) {
  switch (segment.kind) {
    case ast::PatternSegment::Kind::Name:
      return segment.name == part;
    case ast::PatternSegment::Kind::Index:
      return std::to_string(segment.index) == part;
    case ast::PatternSegment::Kind::Star:
    case ast::PatternSegment::Kind::DoubleStar:
      return true;
  }
  return false;
}

bool matchesFrom(const ast::PathPattern& pattern, std::size_t segment, const std::vector<std::string>& parts,
                 std::size_t part) {
  if (segment == pattern.segments.size()) return part == parts.size();
  if (pattern.segments[segment].kind == ast::PatternSegment::Kind::DoubleStar) {
    for (std::size_t skip = part; skip <= parts.size(); ++skip) {
      if (matchesFrom(pattern, segment + 1, parts, skip)) return true;
    }
    return false;
  }
  return part < parts.size() && segmentMatches(pattern.segments[segment], parts[part]) &&
         matchesFrom(pattern, segment + 1, parts, part + 1);
}

}  // namespace

bool matchesPattern(const ast::PathPattern& pattern, const std::string& path) {
  return matchesFrom(pattern, 0, splitText(path, '.'), 0);
}

void Elaborator::collectShardRules() {
  const auto collect = [&](const ast::File& file) {
    for (const ast::Decl& decl : file.decls) {
      const auto* shard = ast::as<ast::ShardDecl>(decl);
      if (shard == nullptr) continue;
      rules_.push_back({shard, program_.main, std::vector<std::int64_t>(shard->patterns.size(), 0)});
    }
  };
  if (program_.layouts.empty()) collect(*program_.main->ast);
  for (const auto& layout : program_.layouts) collect(*layout);
}

// Of several patterns that match, the last one counts; it also replaces what the declaration says.
std::optional<Annotation> Elaborator::annotationByPath(const std::string& path, const Type& type,
                                                       const Written* written, bool mayBeStored) {
  std::optional<Annotation> result;
  for (ShardRule& rule : rules_) {
    const bool isStored = std::any_of(rule.decl->annotations.begin(), rule.decl->annotations.end(),
                                      [](const ast::Annotation& each) { return ast::is<ast::StoredAnnotation>(each); });
    if (isStored && !mayBeStored) continue;  // `net.** … @stored` means what is kept
    for (std::size_t i = 0; i < rule.decl->patterns.size(); ++i) {
      const ast::PathPattern& pattern = rule.decl->patterns[i];
      if (!matchesPattern(pattern, path)) continue;
      ++rule.matches[i];
      const bool wild = std::any_of(pattern.segments.begin(), pattern.segments.end(), [](const ast::PatternSegment& s) {
        return s.kind == ast::PatternSegment::Kind::Star || s.kind == ast::PatternSegment::Kind::DoubleStar;
      });
      Scope scope(*rule.unit, nullptr);
      AnnotationTarget target;
      target.type = &type;
      target.written = written;
      target.mayBeStored = mayBeStored;
      target.silent = wild;
      const bool good = applyAnnotations(rule.decl->annotations, target, scope);
      if (!target.fits) {
        sink_.emit(pattern.range, diag::PatternPassesOver, path, printType(type));
        continue;
      }
      if (!good) continue;
      result = target.annotation;
    }
  }
  return result;
}

void Elaborator::reportUnmatchedPatterns() {
  for (const ShardRule& rule : rules_) {
    for (std::size_t i = 0; i < rule.matches.size(); ++i) {
      if (rule.matches[i] > 0) continue;
      DiagBuilder builder = sink_.emit(rule.decl->patterns[i].range, diag::PatternMatchesNothing,
                                       sourceText(rule.decl->patterns[i].range));
      std::vector<std::string> paths;
      for (const Parameter& parameter : module_.parameters) paths.push_back(parameter.name);
      for (const State& state : module_.states) paths.push_back(state.name);
      if (const std::optional<std::string> close = suggest(sourceText(rule.decl->patterns[i].range), paths)) {
        builder.fix("did you mean `" + *close + "`?", false, {{rule.decl->patterns[i].range, *close}});
      } else {
        builder.note("parameters and states have paths like `net.w1`, inputs like `loss.x`, values like `net.call.h`");
      }
    }
  }
}

}  // namespace gshard::sema
