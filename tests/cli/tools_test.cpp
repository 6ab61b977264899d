// The tools beside compiling: fmt, SARIF, check --fix.
#include <gtest/gtest.h>

#include <filesystem>
#include <nlohmann/json.hpp>
#include <sstream>

#include "tests/program/program.h"

namespace gshard::testing {
namespace {

namespace fs = std::filesystem;

constexpr const char* kRough = "import nn\n// kept\nentry fn f( x:f32[4] )->f32[4]{ return x+x }\n";
constexpr const char* kLaidOut = "import nn\n// kept\nentry fn f(x: f32[4]) -> f32[4] { return x + x }\n";

TEST(Fmt, RewritesInPlaceAndOnlyWhatChanges) {
  const Scratch scratch;
  const std::string rough = scratch.write("rough.gsd", kRough), good = scratch.write("good.gsd", kLaidOut);
  fs::permissions(rough, fs::perms::owner_all);
  const fs::file_time_type before = fs::last_write_time(good);
  const Outcome outcome = gshardc({"fmt", rough, good});
  EXPECT_EQ(outcome.code, 0) << outcome.all();
  EXPECT_EQ(outcome.out + outcome.err, "");
  EXPECT_EQ(readFile(rough), kLaidOut);
  EXPECT_EQ(fs::status(rough).permissions(), fs::perms::owner_all);
  EXPECT_EQ(fs::last_write_time(good), before);
}

TEST(Fmt, ALinkStaysALink) {
  const Scratch scratch;
  const std::string rough = scratch.write("rough.gsd", kRough);
  fs::create_symlink(rough, scratch.file("link.gsd"));
  EXPECT_EQ(gshardc({"fmt", scratch.file("link.gsd")}).code, 0);
  EXPECT_TRUE(fs::is_symlink(scratch.file("link.gsd")));
  EXPECT_EQ(readFile(rough), kLaidOut);
}

TEST(Fmt, CheckNamesWhatWouldChange) {
  const Scratch scratch;
  scratch.write("rough.gsd", kRough);
  scratch.write("good.gsd", kLaidOut);
  const Outcome outcome = gshardc({"fmt", "--check", "good.gsd", "rough.gsd"}, scratch.path());
  EXPECT_EQ(outcome.code, 1);
  EXPECT_EQ(outcome.out, "rough.gsd\n");
  EXPECT_EQ(readFile(scratch.file("rough.gsd")), kRough);
  EXPECT_EQ(gshardc({"fmt", "--check", "good.gsd"}, scratch.path()).code, 0);
}

TEST(Fmt, AFilterReadsStdin) {
  const Scratch scratch;
  scratch.write("rough.gsd", kRough);
  const Outcome outcome = runCommand({"sh", "-c", "\"$0\" fmt - < rough.gsd", GSHARD_COMPILER}, scratch.path());
  EXPECT_EQ(outcome.code, 0) << outcome.all();
  EXPECT_EQ(outcome.out, kLaidOut);
}

TEST(Fmt, SyntaxErrorsAreShownAndLeaveTheFile) {
  const Scratch scratch;
  const std::string text = "entry fn f(x:f32[4]->f32[4] { return x }\n";
  const std::string broken = scratch.write("broken.gsd", text);
  const Outcome outcome = gshardc({"fmt", broken});
  EXPECT_EQ(outcome.code, 1);
  EXPECT_NE(outcome.err.find("error[E01"), std::string::npos) << outcome.err;
  EXPECT_EQ(readFile(broken), text);
  EXPECT_EQ(gshardc({"fmt", scratch.file("missing.gsd")}).code, 3);
  EXPECT_EQ(gshardc({"fmt"}).code, 2);
}

// The keys that the SARIF 2.1.0 schema requires, and what ux.md asks for.
TEST(Sarif, OneLogWithRulesPlacesAndFixes) {
  const Scratch scratch;
  fs::create_directory(scratch.path() / "a b");
  scratch.write("a b/broken.gsd",
                "entry fn f(x: f32[4]) -> f32[4] {\n    let a = x; let b = y\n    let c = z\n    return b\n}\n");
  const Outcome syntax = gshardc({"check", "a b/broken.gsd", "--diagnostics=sarif"}, scratch.path());
  EXPECT_EQ(syntax.code, 1);
  EXPECT_EQ(syntax.out, "");
  const auto log = nlohmann::json::parse(syntax.err);
  EXPECT_EQ(log["version"], "2.1.0");
  ASSERT_TRUE(log["$schema"].is_string());
  ASSERT_EQ(log["runs"].size(), 1u);
  const auto& run = log["runs"][0];
  const auto& driver = run["tool"]["driver"];
  EXPECT_EQ(driver["name"], "gshardc");
  ASSERT_EQ(run["results"].size(), 1u);
  const auto& result = run["results"][0];
  EXPECT_EQ(result["ruleId"], "E0102");
  EXPECT_EQ(driver["rules"][result["ruleIndex"].get<int>()]["id"], "E0102");
  EXPECT_GT(driver["rules"][0]["fullDescription"]["text"].get<std::string>().size(), 20u);
  EXPECT_EQ(result["level"], "error");
  EXPECT_FALSE(result["message"]["text"].get<std::string>().empty());
  const auto& place = result["locations"][0]["physicalLocation"];
  EXPECT_EQ(place["artifactLocation"]["uri"], "a%20b/broken.gsd");
  EXPECT_EQ(place["artifactLocation"]["uriBaseId"], "SRCROOT");
  EXPECT_EQ(place["region"]["startLine"], 2);
  EXPECT_EQ(place["region"]["startColumn"], 14);
  const auto& change = result["fixes"][0]["artifactChanges"][0];
  EXPECT_EQ(change["artifactLocation"]["uri"], "a%20b/broken.gsd");
  EXPECT_EQ(change["replacements"][0]["deletedRegion"]["endColumn"], 15);
  EXPECT_EQ(change["replacements"][0]["insertedContent"]["text"], "");
}

TEST(Sarif, FingerprintsStayWhenLinesMove) {
  const Scratch scratch;
  const std::string program =
      "model M() {\n    fn call(x: f32[4]) -> f32[4] { return x + nope + nada }\n}\nlet m = M()\n"
      "entry fn f(x: f32[4]) -> f32[4] { return m(x) }\n";
  const std::string file = scratch.write("p.gsd", program);
  const auto prints = [&] {
    std::vector<std::string> all;
    const auto log = nlohmann::json::parse(gshardc({"check", file, "--diagnostics=sarif"}).err);
    for (const auto& result : log["runs"][0]["results"]) {
      for (const auto& [name, print] : result["partialFingerprints"].items()) all.push_back(print);
    }
    return all;
  };
  const std::vector<std::string> before = prints();
  EXPECT_EQ(before, (std::vector<std::string>{"E0201:M.call", "E0201:M.call:1"}));
  scratch.write("p.gsd", "// moved\n\n\n" + program);
  EXPECT_EQ(prints(), before);
}

TEST(Sarif, AnEmptyLogForASoundProgramAndWarningsAsSuch) {
  const Scratch scratch;
  const std::string sound = scratch.write("sound.gsd", kLaidOut);
  const Outcome clean = gshardc({"check", sound, "--diagnostics=sarif"});
  EXPECT_EQ(clean.code, 0);
  EXPECT_EQ(nlohmann::json::parse(clean.err)["runs"][0]["results"].size(), 0u);
  const std::string unused = scratch.write("unused.gsd", "entry fn f(x: f32[4], y: f32[4]) -> f32[4] { return x }\n");
  const auto log = nlohmann::json::parse(gshardc({"check", unused, "--diagnostics=sarif"}).err);
  EXPECT_EQ(log["runs"][0]["results"][0]["level"], "warning");
  const Outcome missing = gshardc({"check", scratch.file("missing.gsd"), "--diagnostics=sarif"});
  EXPECT_EQ(missing.code, 3);
  EXPECT_EQ(nlohmann::json::parse(missing.err)["runs"][0]["results"][0]["ruleId"], "E0601");
}

// A semicolon hides a number without its 0, which hides an unknown name: rounds, then what is left is shown.
TEST(Fix, AppliesWhatIsCertainAndShowsTheRest) {
  const Scratch scratch;
  scratch.write("p.gsd", "entry fn f(x: f32[4]) -> f32[4] {\n    let a = x * .5;\n    return a + nope;\n}\n");
  const Outcome outcome = gshardc({"check", "--fix", "p.gsd"}, scratch.path());
  EXPECT_EQ(outcome.code, 1);
  EXPECT_EQ(readFile(scratch.file("p.gsd")),
            "entry fn f(x: f32[4]) -> f32[4] {\n    let a = x * 0.5\n    return a + nope\n}\n");
  for (const char* part : {"fixed: p.gsd:2:", "remove it [E0102]", "write the 0 [E0101]", "error[E0201]"})
    EXPECT_NE(outcome.err.find(part), std::string::npos) << part << "\n" << outcome.err;
  EXPECT_EQ(outcome.err.find("error[E0102]"), std::string::npos) << outcome.err;
}

// What has one meaning only, in the spelling of other languages.
TEST(Fix, HabitsOfOtherLanguages) {
  const Scratch scratch;
  const auto fixed = [&](const std::string& text) {
    const std::string file = scratch.write("p.gsd", text);
    gshardc({"check", "--fix", file});
    return readFile(file);
  };
  const auto entry = [](const std::string& line) {
    return "entry fn f(x: f32[4], y: f32[4]) -> f32[4] {\n    " + line + "\n    return where(a, x, y)\n}\n";
  };
  EXPECT_EQ(fixed(entry("let a = x > 0.0 && y > 0.0")), entry("let a = x > 0.0 and y > 0.0"));
  EXPECT_EQ(fixed(entry("let a = (x > 0.0)||(y > 0.0)")), entry("let a = (x > 0.0) or (y > 0.0)"));
  EXPECT_EQ(fixed(entry("let (a) = x > 0.0")), entry("let a = x > 0.0"));
  EXPECT_EQ(fixed(entry("let a = (x > 0.0,)")), entry("let a = (x > 0.0)"));
  EXPECT_EQ(fixed(entry("# where x wins\n    let a = x > 0.0")), entry("// where x wins\n    let a = x > 0.0"));
  EXPECT_EQ(fixed("entry fn f(x: f32[4]) -> (f32[4]) { return x }\n"),
            "entry fn f(x: f32[4]) -> f32[4] { return x }\n");
  const std::string scalar =
      "entry fn f(x: f32[4]) -> f32 {\n    let a: bool$ = sum(x) > 0.0\n    return where(a, 1.0, 0.0)\n}\n";
  const auto with = [&](const std::string& dims) {
    std::string text = scalar;
    return text.replace(text.find('$'), 1, dims);
  };
  EXPECT_EQ(fixed(with("")), with("[]"));
}

TEST(Fix, ImportedFilesToo) {
  const Scratch scratch;
  scratch.write("part.gsd", "fn twice(x: f32[4]) -> f32[4] { return x + x; }\n");
  scratch.write("p.gsd", "import part\nentry fn f(x: f32[4]) -> f32[4] { return part.twice(x) }\n");
  const Outcome outcome = gshardc({"check", "--fix", "p.gsd"}, scratch.path());
  EXPECT_EQ(outcome.code, 0) << outcome.all();
  EXPECT_EQ(readFile(scratch.file("part.gsd")), "fn twice(x: f32[4]) -> f32[4] { return x + x }\n");
}

TEST(Fix, LeavesASoundProgramAlone) {
  const Scratch scratch;
  const std::string file = scratch.write("p.gsd", kLaidOut);
  const fs::file_time_type before = fs::last_write_time(file);
  const Outcome outcome = gshardc({"check", "--fix", file});
  EXPECT_EQ(outcome.code, 0);
  EXPECT_EQ(outcome.err, "");
  EXPECT_EQ(fs::last_write_time(file), before);
}

// One table makes both: what --help lists is in the man page.
TEST(Man, HasEveryOptionOfHelp) {
  for (const std::string command : {"", "run", "check", "explain", "verify", "fmt"}) {
    const Outcome help = gshardc(command.empty() ? Words{"--help"} : Words{command, "--help"});
    const Outcome page = gshardc(command.empty() ? Words{"--man"} : Words{"--man", command});
    ASSERT_EQ(page.code, 0);
    EXPECT_TRUE(page.out.starts_with(".TH GSHARDC")) << page.out.substr(0, 100);
    std::size_t options = 0;
    std::istringstream lines(help.out);
    for (std::string line; std::getline(lines, line);) {
      const std::size_t at = line.find("--");
      if (!line.starts_with("  -") || at == std::string::npos) continue;
      std::string name;
      for (const char c : line.substr(at, line.find_first_of(" ,", at) - at))
        name += c == '-' ? std::string("\\-") : std::string(1, c);
      EXPECT_NE(page.out.find(name), std::string::npos) << command << ": " << name;
      ++options;
    }
    EXPECT_GE(options, 4u) << help.out;
  }
}

TEST(Depfile, NamesEveryFileThatWasRead) {
  const Scratch scratch;
  scratch.write("part.gsd", "fn twice(x: f32[4]) -> f32[4] { return x + x }\n");
  scratch.write("a b.gsd", "import part\nentry fn f(x: f32[4]) -> f32[4] { return part.twice(x) }\n");
  const Outcome outcome =
      gshardc({"a b.gsd", "--emit=ir", "-o", "out.ir", "-MF", "out.d", "-MT", "some/out.ir"}, scratch.path());
  ASSERT_EQ(outcome.code, 0) << outcome.all();
  const std::string rule = readFile(scratch.file("out.d"));
  EXPECT_TRUE(rule.starts_with("some/out.ir:")) << rule;
  for (const char* part : {"a\\ b.gsd", "part.gsd", "prelude.gsd"})
    EXPECT_NE(rule.find(part), std::string::npos) << part << "\n" << rule;
}

}  // namespace
}  // namespace gshard::testing
