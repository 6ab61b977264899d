// The laws of the formatter, for its unit test and for the libFuzzer target of the parser: formatting again changes
// nothing, the AST stays, every comment survives, no line ends in a space.
#pragma once

#include <algorithm>
#include <exception>
#include <optional>
#include <sstream>
#include <string>
#include <vector>

#include "frontend/ast_printer.h"
#include "frontend/format.h"
#include "frontend/parse.h"
#include "support/diagnostics.h"
#include "support/text.h"

namespace gshard::test {

inline std::optional<std::string> formatted(const std::string& text) {
  SourceManager sources;
  CollectingSink sink;
  return formatFile(sources.addFile("t.gsd", text), sources, sink);
}

// Declarations as printed, imports first: their order may change.
inline std::string treeOf(const std::string& text) {
  SourceManager sources;
  CollectingSink sink;
  std::vector<std::string> imports;
  std::string rest;
  const auto file = parseFile(sources.addFile("t.gsd", text), sources, sink);
  std::istringstream lines(printAst(*file));
  for (std::string line; std::getline(lines, line);) {
    if (line.starts_with("import "))
      imports.push_back(line);
    else
      rest += line + "\n";
  }
  std::sort(imports.begin(), imports.end());
  return join(imports, "\n") + "\n" + rest;
}

// Comments in order of their texts; white space at line ends and the place of lines may change. Found by a scanner of
// its own, which knows strings.
inline std::vector<std::string> commentsOf(const std::string& text) {
  std::vector<std::string> comments;
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (text[i] == '"') {
      for (++i; i < text.size() && text[i] != '"' && text[i] != '\n'; ++i) i += text[i] == '\\' ? 1 : 0;
    } else if (text.compare(i, 2, "//") == 0) {
      const std::size_t end = std::min(text.find('\n', i), text.size());
      comments.emplace_back(trim(text.substr(i, end - i)));
      i = end;
    } else if (text.compare(i, 2, "/*") == 0) {
      const std::size_t end = text.find("*/", i + 2) + 2;
      comments.push_back(text.substr(i, end - i));
      i = end - 1;
    }
  }
  std::sort(comments.begin(), comments.end());
  return comments;
}

struct FormatLaws {
  bool parses = false;  // false: syntax errors, nothing to hold
  std::string broken;   // which law, and the texts; empty when all hold
};

inline FormatLaws checkFormatLaws(const std::string& text) {
  std::optional<std::string> once;
  try {
    once = formatted(text);
  } catch (const std::exception& fault) {  // its own check of the meaning
    return {true, std::string(fault.what()) + "\n---- of\n" + text};
  }
  if (!once) return {};
  const auto broken = [&](const std::string& law) {
    return FormatLaws{true, law + ":\n" + *once + "\n---- of\n" + text};
  };
  const std::optional<std::string> twice = formatted(*once);
  if (!twice) return broken("what was formatted does not parse");
  if (*once != *twice) return broken("formatting again gives\n" + *twice + "\n---- and not");
  if (treeOf(text) != treeOf(*once)) return broken("the tree changed");
  if (commentsOf(text) != commentsOf(*once)) return broken("comments changed");
  std::istringstream lines(*once);
  for (std::string line; std::getline(lines, line);) {
    if (line.ends_with(' ') && line.find("/*") == std::string::npos && line.find("*/") == std::string::npos)
      return broken("the line `" + line + "` ends in a space");
  }
  return {true, ""};
}

}  // namespace gshard::test
