// grammar/: the rules of design.md parse all examples without one ambiguity in ANTLR's exact-ambiguity mode.
#include <antlr4-runtime.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <sstream>

#include "GsdLexer.h"
#include "GsdParser.h"
#include "tests/unit/frontend_snippets.h"

namespace gshard {
namespace {

class Listener : public antlr4::BaseErrorListener {
 public:
  void syntaxError(antlr4::Recognizer*, antlr4::Token*, size_t line, size_t column, const std::string& message,
                   std::exception_ptr) override {
    found += "error " + std::to_string(line) + ":" + std::to_string(column) + " " + message + "\n";
  }
  void reportAmbiguity(antlr4::Parser* parser, const antlr4::dfa::DFA& dfa, size_t start, size_t stop, bool,
                       const antlrcpp::BitSet&, antlr4::atn::ATNConfigSet*) override {
    const std::string rule = parser->getRuleNames()[dfa.atnStartState->ruleIndex];
    found +=
        "ambiguity in " + rule + ": " + parser->getTokenStream()->getText(antlr4::misc::Interval(start, stop)) + "\n";
  }
  std::string found;
};

std::string problems(const std::string& text) {
  antlr4::ANTLRInputStream input(text);
  grammar::GsdLexer lexer(&input);
  antlr4::CommonTokenStream tokens(&lexer);
  grammar::GsdParser parser(&tokens);
  Listener listener;
  lexer.removeErrorListeners();
  lexer.addErrorListener(&listener);
  parser.removeErrorListeners();
  parser.addErrorListener(&listener);
  parser.getInterpreter<antlr4::atn::ParserATNSimulator>()->setPredictionMode(
      antlr4::atn::PredictionMode::LL_EXACT_AMBIG_DETECTION);
  parser.file();
  return listener.found;
}

TEST(Grammar, FormsOfTheDesignHaveNoAmbiguity) {
  for (const char* text : test::kForms) EXPECT_EQ(problems(text), "") << text;
}

TEST(Grammar, ProgramsOfTheProjectHaveNoAmbiguity) {
  for (const char* folder : {"stdlib", "examples"}) {
    const std::filesystem::path root = std::filesystem::path(GSHARD_SOURCE_DIR) / folder;
    if (!std::filesystem::exists(root)) continue;
    for (const auto& entry : std::filesystem::recursive_directory_iterator(root)) {
      if (entry.path().extension() != ".gsd") continue;
      std::ifstream file(entry.path());
      std::stringstream text;
      text << file.rdbuf();
      EXPECT_EQ(problems(text.str()), "") << entry.path();
    }
  }
}

}  // namespace
}  // namespace gshard
