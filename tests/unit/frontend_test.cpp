// frontend/: what is parsed becomes the right tree, and what is not gets the right code on the right line.
#include <gtest/gtest.h>

#include <filesystem>

#include "frontend/ast_printer.h"
#include "frontend/parse.h"
#include "support/render.h"
#include "tests/unit/frontend_snippets.h"

namespace gshard {
namespace {

struct Parsed {
  SourceManager sources;
  CollectingSink sink;
  std::unique_ptr<ast::File> file;
  std::string messages;  // rendered
  std::string codes;     // "E0101@3 E0105@7"
};

std::unique_ptr<Parsed> parse(const std::string& text) {
  auto result = std::make_unique<Parsed>();
  const FileId id = result->sources.addFile("t.gsd", text);
  result->file = parseFile(id, result->sources, result->sink);
  for (const Diagnostic& diagnostic : result->sink.diagnostics()) {
    result->messages += renderText(diagnostic, result->sources);
    if (!result->codes.empty()) result->codes += " ";
    result->codes += diagnostic.code + "@" + std::to_string(result->sources.lineNumber(id, diagnostic.range.begin));
  }
  return result;
}

std::string tree(const std::string& text) {
  const auto parsed = parse(text);
  return parsed->messages + printAst(*parsed->file);
}

// The tree of one expression.
std::string exprTree(const std::string& text) {
  std::string result = tree("let a = " + text);
  if (result.starts_with("let a = ")) result = result.substr(8);
  if (result.ends_with('\n')) result.pop_back();
  return result;
}

std::string firstMessage(const std::string& text) {
  const auto parsed = parse(text);
  return parsed->sink.diagnostics().empty() ? "" : parsed->sink.diagnostics()[0].message;
}

TEST(Parse, AllFormsOfTheDesign) {
  for (const char* text : test::kForms) EXPECT_EQ(parse(text)->messages, "") << text;
}

TEST(Parse, ProgramsOfTheProject) {
  for (const char* folder : {"stdlib", "examples"}) {
    const std::filesystem::path root = std::filesystem::path(GSHARD_SOURCE_DIR) / folder;
    if (!std::filesystem::exists(root)) continue;
    for (const auto& entry : std::filesystem::recursive_directory_iterator(root)) {
      if (entry.path().extension() != ".gsd") continue;
      SourceManager sources;
      CollectingSink sink;
      std::string error;
      const std::optional<FileId> id = sources.addFileFromDisk(entry.path().string(), error);
      ASSERT_TRUE(id) << entry.path() << error;
      parseFile(*id, sources, sink);
      EXPECT_EQ(sink.diagnostics().size(), 0u) << renderText(sink.diagnostics()[0], sources);
    }
  }
}

TEST(Parse, WholeProgram) {
  EXPECT_EQ(tree(test::kDigits), R"(import nn
import optim
const batch = 64
const hidden = 256
mesh [data: 2, model: 2]
model Mlp
  parameter inputs: int
  parameter hidden: int
  parameter classes: int
  param w1: f32[inputs, hidden] @split(1, model) = (call glorot_uniform)
  param b1: f32[hidden] = (call zeros)
  param w2: f32[hidden, classes] = (call glorot_uniform)
  param b2: f32[classes] = (call zeros)
  fn call[B]
    parameter x: f32[B, inputs]
    result: f32[B, classes]
    body
      let h = (call relu (+ (call matmul x w1) b1))
      return (+ (call matmul h w2) b2)
let net = (call Mlp 64 hidden 10)
entry fn loss
  parameter x: f32[batch, 64] @split(0, data)
  parameter y: i32[batch]
  result: f32
  body
    return (call mean (call nn.cross_entropy (call net x) y))
entry fn predict[B]
  parameter x: f32[B, 64]
  result: i32[B]
  body
    return (call argmax (call net x) axis: 1)
train loss
  with (optim.adam lr: 0.001)
)");
}

TEST(Parse, Precedence) {
  EXPECT_EQ(exprTree("-b ** c"), "(- (** b c))");
  EXPECT_EQ(exprTree("2 ** 3 ** 4"), "(** 2 (** 3 4))");
  EXPECT_EQ(exprTree("2 ** -x * y"), "(* (** 2 (- x)) y)");
  EXPECT_EQ(exprTree("a + b * c - d"), "(- (+ a (* b c)) d)");
  EXPECT_EQ(exprTree("a - b - c"), "(- (- a b) c)");
  EXPECT_EQ(exprTree("-a * b"), "(* (- a) b)");
  EXPECT_EQ(exprTree("not a == b and c or d"), "(or (and (not (== a b)) c) d)");
  EXPECT_EQ(exprTree("0..n + 1"), "(.. 0 (+ n 1))");
  EXPECT_EQ(exprTree("a + b @split(0, n)"), "(annotated (+ a b) @split(0, n))");
  EXPECT_EQ(exprTree("a + (b @replicate)"), "(+ a (annotated b @replicate))");
  EXPECT_EQ(exprTree("net.blocks[0].call(x, k: 1)[1:, :, ::2, none, i]"),
            "(index (call (index net.blocks 0).call x k: 1) 1: : ::2 none i)");
  EXPECT_EQ(exprTree("-x[0]"), "(- (index x 0))");
  EXPECT_EQ(exprTree("(a < b) == c"), "(== (< a b) c)");
}

TEST(Parse, Literals) {
  EXPECT_EQ(exprTree("[1_000, 1.5e-3, 2e10, true, none, \"a\\n\\\"\"]"),
            "(list 1000 0.0015 2e+10 true none \"a\\n\\\"\")");
  EXPECT_EQ(exprTree("[f(i) for i in 0..n]"), "(list-for i (.. 0 n) (call f i))");
  EXPECT_EQ(exprTree("(a, [])"), "(tuple a (list))");
  EXPECT_EQ(exprTree("if c { a } else if d { b } else { e } + 1"), "(+ (if c a d b else e) 1)");
  EXPECT_EQ(exprTree("9223372036854775807"), "9223372036854775807");
  EXPECT_EQ(exprTree("1e-999"), "0.0");
}

TEST(Parse, Annotations) {
  EXPECT_EQ(exprTree("x @split(-1, a, b) @open"), "(annotated x @split(-1, a, b) @open)");
  EXPECT_EQ(exprTree("x @shard([(a, b), _, c])"), "(annotated x @shard([(a, b), _, c]))");
  EXPECT_EQ(exprTree("x @shard(tiles: [2, 1], devices: [1, 0], copies: 2) @remat"),
            "(annotated x @shard(tiles: [2, 1], devices: [1, 0], copies: 2) @remat)");
}

TEST(Parse, EveryDeclaration) {
  EXPECT_EQ(tree("/// Doc\n///  more\nfn ring[T: dtype, ...S, D](x: T[...S, D] @split(0, data) = none) -> (f32 "
                 "@partial(data), [int]) "
                 "manual over data, model {\n if a { return 1 } else { return 2 } }"),
            R"(/// Doc
///  more
fn ring[T: dtype, ...S, D]
  parameter x: T[...S, D] @split(0, data) = none
  result: (f32 @partial(data), [int])
  manual over data, model
  body
    if a
      return 1
    else
      return 2
)");
  EXPECT_EQ(tree("train f with opt(1, a: 2) for enc.** with o.p() for head.*, t.0.1 { clip_norm: 1.0, m: 4 }"),
            R"(train f
  with (opt 1 a: 2) for enc.**
  with (o.p) for head.*, t.0.1
  option clip_norm: 1.0
  option m: 4
)");
  EXPECT_EQ(tree("shard net.**.adam.*, a.w @split(0, data) @open"), "shard net.**.adam.*, a.w @split(0, data) @open\n");
  EXPECT_EQ(tree("entry fn f() { loop t in 0..n { s = s + t } report r = s for i in l { let (a, _) = i } return s }"),
            R"(entry fn f
  body
    loop t in (.. 0 n)
      s = (+ s t)
    report r = s
    for i in l
      let (a, _) = i
    return s
)");
  EXPECT_EQ(tree("optimizer sgd(lr: wide) for (w, g) { state m: f32[] = zeros() w = m }"),
            "optimizer sgd for w, g\n  parameter lr: wide\n  body\n    state m: f32[] = (call zeros)\n    w = m\n");
}

TEST(Parse, KeywordsThatAreNames) {
  EXPECT_EQ(tree("let state = mesh\nfn f() { state = 1 report state = loop state report = loop return with.over }"),
            "let state = mesh\nfn f\n  body\n    state = 1\n    report state = loop\n    state report = loop\n"
            "    return with.over\n");
}

TEST(Parse, Documentation) {
  EXPECT_EQ(tree("/// apart\n\n/// near\nconst a = 1 /// behind\nconst b = 2\n//// no\n// no\nconst c = 3\n"),
            "/// near\n/// behind\nconst a = 1\nconst b = 2\nconst c = 3\n");
}

TEST(Parse, RangesAreBytes) {
  const auto parsed = parse("/* é */ let a = (b +\n c)(d)");
  const ast::Let& let = std::get<ast::Let>(parsed->file->decls.at(0).node);
  EXPECT_EQ(parsed->sources.text(let.names[0].range), "a");
  EXPECT_EQ(parsed->sources.text(let.value->range), "(b +\n c)(d)");
  const ast::Call& call = std::get<ast::Call>(let.value->node);
  EXPECT_EQ(parsed->sources.text(call.callee->range), "(b +\n c)");
  EXPECT_EQ(parsed->sources.text(call.arguments[0].range), "d");
  EXPECT_EQ(parsed->sources.text(std::get<ast::Binary>(call.callee->node).opRange), "+");
  EXPECT_EQ(parsed->sources.text(parsed->file->decls[0].range), "let a = (b +\n c)(d)");
}

TEST(Printer, ExpressionsAsWritten) {
  for (const char* text : {"a + b * (c - d)", "-x ** 2", "(-x) ** 2", "2 ** -x", "(a ** b) ** c", "a - (b - c)",
                           "not (a and b)", "(a < b) == c", "f(x, axis: 1)[1:, ::2, none, i].y",
                           "[f(i) for i in 0..n + 1]", "(a, b)", "if c { a } else if d { b } else { e }",
                           "x + y @split(0, data) @open", "f(x @remat)", "(0..n)[1]", "\"a\\nb\""}) {
    const auto parsed = parse(std::string("let a = ") + text);
    ASSERT_EQ(parsed->messages, "");
    EXPECT_EQ(printExpr(*std::get<ast::Let>(parsed->file->decls.at(0).node).value), text);
  }
}

// ---- mistakes

TEST(Errors, CodesAndLines) {
  const std::pair<const char*, const char*> cases[] = {
      {"let a = 1 +\nlet b = 2", "E0101@1"},
      {"const a = 1 +\nconst b = 2", "E0101@1"},
      {"fn f() {\n  let a = 1 +\n  b = 2\n  return )\n}", "E0101@2 E0106@4"},
      {"let a = f(x y)\nlet b = [1 2]\nlet c = {}", "E0101@1 E0101@2 E0101@3"},
      {"fn f(x) { return x }\nfn g( { }\nlet = 3", "E0101@1 E0105@2"},
      {"import nn;\nlet a = b $ c\nlet d = ?!", "E0102@1 E0102@2 E0102@3"},
      {"let a = \"abc\nlet b = 1\nlet c", "E0103@1 E0101@3"},
      {"let a = 1 /* never", "E0104@1"},
      {"fn f() {\n  let a = (1\n}\nlet b = ]", "E0105@2 E0106@4"},
      {"fn f() {\n  if a {\n    b = 1\n  return b\n}\n", "E0105@1"},
      {"let a = [1, 2)", "E0106@1"},
      {"let a = f\n(x)\nlet b = x\n  [0]", "E0109@2 E0109@4"},
      {"let a = 1 < 2 < 3\nlet b = 0..1..2", "E0110@1 E0110@2"},
      {"let a = 9223372036854775808\nlet b = 1e999", "E0111@1 E0111@2"},
      {"let a = \"x\\q\"", "E0112@1"},
      {"model M() {\n  param w: f32[2]\n  state m: f32\n}", "E0113@2 E0113@3"},
      {"let a = f(x: 1, 2)\nlet b = f(x: 1, x: 2)", "E0114@1 E0115@2"},
      {"let a = (1,)\nlet (b) = 1\nfn f(x: (f32)) { return x }", "E0116@1 E0116@2 E0116@3"},
      {"let a = x @splt(0, 2)", "E0117@1"},
      {"let a = x @split(0)\nlet b = x @shard(3)\nlet c = x @open(1)\nlet d = x @partial()\nlet e = x @shard(tiles: "
       "[1])",
       "E0118@1 E0118@2 E0118@3 E0118@4 E0118@5"},
      {"shard net.1e5 @replicate", "E0119@1"},
      {"entry fn f() { loop t in n { a = t } return a }", "E0120@1"},
      {"fn f[T: int](x: T) { return x }", "E0121@1"},
      {"modle M() {\n  param w: f32 = zeros()\n}\nlet a = 1 1", "E0101@1 E0101@4"},
      {"model M() {\n  parm w: f32 = zeros()\n  fn call() { retrun 1 }\n}", "E0101@2 E0101@3"},
      {"fn f() {\n  x += 1\n  g(x)\n  x[0] = 1\n  while x { y = 1 }\n  return .5\n}",
       "E0101@2 E0101@3 E0101@4 E0101@5 E0101@6"},
      {"fn f() {\n  5\n  let b =\n  return 1\n  (x)\n  return 2\n}\n\"abc\"\nlet",
       "E0101@2 E0101@3 E0109@5 E0101@8 E0101@9"},
      {"train f\nmesh [a 2]\nshard @replicate\nimport 3\ntrain g with o", "E0101@1 E0101@2 E0101@3 E0101@4 E0101@5"},
      {"let \xC3\xA9 = 1\nlet a = \"\xC3\xA9\" $", "E0102@1 E0102@2"},
  };
  for (const auto& [text, codes] : cases) {
    const auto parsed = parse(text);
    EXPECT_EQ(parsed->codes, codes) << text << "\n" << parsed->messages;
  }
}

TEST(Errors, Wording) {
  EXPECT_EQ(firstMessage("let a = f(x y)"), "expected `,` or `)` after `x`");
  EXPECT_EQ(firstMessage("let a = 1 +\n"), "expected an expression after `+`");
  EXPECT_EQ(firstMessage("let = 1"), "expected a name or `(` after `let`");
  EXPECT_EQ(firstMessage("fn f(x: ) { return x }"), "expected a type after `:`");
  EXPECT_EQ(firstMessage("fn f() -> f32 return x"), "expected `{` after `f32`");
  EXPECT_EQ(firstMessage("5"), "expected a declaration");
  EXPECT_EQ(firstMessage("fn f() { 5 }"), "expected a statement or `}`");
  EXPECT_EQ(firstMessage("fn f() { report 5 }"), "expected a name or `=` after `report`");
  EXPECT_EQ(firstMessage("fn f() { foo(x) }"), "expected `=` after `foo`");
  EXPECT_EQ(firstMessage("let a = x.3"), "expected a name after `.`");
  EXPECT_EQ(firstMessage("shard @replicate"), "expected a path such as `net.**.w` after `shard`");
  EXPECT_EQ(firstMessage("let a = [i for i 0..3]"), "expected `in` after `i`");
}

TEST(Errors, Fixes) {
  const auto parsed = parse("modle M() { }");
  ASSERT_EQ(parsed->sink.diagnostics().size(), 1u);
  const Diagnostic& diagnostic = parsed->sink.diagnostics()[0];
  ASSERT_EQ(diagnostic.help.size(), 1u);
  EXPECT_EQ(diagnostic.help[0].message, "did you mean `model`?");
  EXPECT_EQ(diagnostic.help[0].edits[0].text, "model");
  EXPECT_EQ(parse("let a = 1.")->sink.diagnostics()[0].help[0].edits[0].text, "0");
  EXPECT_EQ(parse("let a = x @splt(0, 2)")->sink.diagnostics()[0].help[0].message, "did you mean `@split`?");
}

// Any damage to a program is answered by diagnostics, never by a crash, and what is reported lies inside the file.
TEST(Errors, DamagedPrograms) {
  std::uint64_t state = 20240607;
  const auto random = [&state](std::size_t below) {
    state = state * 6364136223846793005u + 1442695040888963407u;
    return static_cast<std::size_t>(state >> 33) % below;
  };
  const std::string pieces = "(){}[]@.,:=+-*\"/ \n0a;\\\xC3";
  for (int round = 0; round < 1500; ++round) {
    std::string text = test::kForms[random(std::size(test::kForms))];
    for (std::size_t edits = 1 + random(3); edits > 0; --edits) {
      const std::size_t at = random(text.size() + 1);
      if (random(2) == 0)
        text.insert(at, 1, pieces[random(pieces.size())]);
      else
        text.erase(at, 1 + random(8));
    }
    const auto parsed = parse(text);
    printAst(*parsed->file);
    for (const Diagnostic& diagnostic : parsed->sink.diagnostics()) {
      EXPECT_LE(diagnostic.range.end, text.size()) << text;
      EXPECT_LE(diagnostic.range.begin, diagnostic.range.end) << text;
    }
  }
}

TEST(Errors, TheRestOfTheFileSurvives) {
  const auto parsed = parse("let a = 1 +\nfn f() {\n  let b = )\n  return 1\n}\nlet c = 2\n");
  EXPECT_EQ(printAst(*parsed->file), "fn f\n  body\n    return 1\nlet c = 2\n");
}

TEST(Errors, BrokenText) {
  EXPECT_EQ(parse(std::string("let a = 1\n\0", 11))->codes, "E0107@2");
  EXPECT_EQ(parse("let a = \"\xFF\"")->codes, "E0107@1");
  EXPECT_EQ(parse("\xEF\xBB\xBFlet a = b c")->sink.diagnostics().at(0).range.begin, 13u);
}

std::string repeated(const std::string& text, int count) {
  std::string result;
  for (int i = 0; i < count; ++i) result += text;
  return result;
}

TEST(Errors, DeepNesting) {
  EXPECT_EQ(parse("let a = " + repeated("(", 250) + "1" + repeated(")", 250))->codes, "");
  for (const std::string& text :
       {repeated("(", 100000), repeated("(", 5000) + "1" + repeated(")", 5000), repeated("-", 100000) + "1",
        repeated("not ", 5000) + "1", repeated("2**", 100000) + "1", repeated("1+", 100000) + "1",
        "x" + repeated("[0]", 5000), repeated("if a { 1 } else { ", 1000), repeated("[", 70000),
        "x" + repeated(".a", 100000)}) {
    const auto parsed = parse("let a = " + text);
    EXPECT_EQ(parsed->sink.diagnostics().size(), 1u) << text.substr(0, 20);
    EXPECT_EQ(parsed->codes, "E0108@1") << text.substr(0, 20);
  }
  EXPECT_EQ(parse("fn f() {" + repeated("if a {", 1000))->codes, "E0108@1");
  EXPECT_EQ(parse("fn f() {" + repeated("if a { x = 1 } else ", 5000) + "{ x = 2 } return x }")->codes, "");
}

}  // namespace
}  // namespace gshard
