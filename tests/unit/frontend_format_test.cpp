// The formatter: the style by examples, and its laws over every program of the repository and over disturbed copies of
// them: formatting again changes nothing, the AST stays, every comment survives.
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <random>

#include "tests/unit/format_laws.h"
#include "tests/unit/frontend_snippets.h"

namespace gshard {
namespace {

namespace fs = std::filesystem;

using test::formatted;

// False when the text has syntax errors: then there is nothing to hold.
bool expectLaws(const std::string& text) {
  const test::FormatLaws laws = test::checkFormatLaws(text);
  EXPECT_EQ(laws.broken, "");
  return laws.parses;
}

std::string contentOf(const fs::path& path) {
  std::ifstream in(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), std::istreambuf_iterator<char>()};
}

std::vector<fs::path> filesIn(const std::string& folder, const std::string& extension) {
  std::vector<fs::path> files;
  for (const auto& entry : fs::recursive_directory_iterator(fs::path(GSHARD_SOURCE_DIR) / folder)) {
    if (entry.path().extension() == extension) files.push_back(entry.path());
  }
  std::sort(files.begin(), files.end());
  return files;
}

std::vector<std::string> programs() {
  std::vector<std::string> texts;
  for (const char* text : test::kForms) texts.emplace_back(text);
  for (const char* folder : {"stdlib", "examples", "tests"}) {
    for (const fs::path& path : filesIn(folder, ".gsd")) texts.push_back(contentOf(path));
  }
  std::sort(texts.begin(), texts.end());
  return texts;
}

void expectFormatted(const std::string& given, const std::string& expected) {
  const std::optional<std::string> text = formatted(given);
  ASSERT_TRUE(text) << given;
  EXPECT_EQ(*text, expected);
  expectLaws(given);
}

TEST(Format, ColumnsOfNeighbours) {
  expectFormatted(R"(model Mlp(inputs:int,hidden : int){
  param w1:f32[inputs,hidden]@split(1,model)=glorot_uniform()
  param b1: f32[hidden]=zeros()

  param w2: f32[hidden, 4*hidden] = zeros()
  fn call[B](x:f32[B,inputs])->f32[B,hidden]{
    let gates=softmax(x) @split(0, data)
    let h=1
    // a line between ends the columns
    let long_name = 2
    h=h+1
    return h
  }
}
const a = 1 // one
const bcd : wide= 2   // two
)",
                  R"(model Mlp(inputs: int, hidden: int) {
    param w1: f32[inputs, hidden] @split(1, model) = glorot_uniform()
    param b1: f32[hidden]                          = zeros()

    param w2: f32[hidden, 4 * hidden] = zeros()
    fn call[B](x: f32[B, inputs]) -> f32[B, hidden] {
        let gates = softmax(x) @split(0, data)
        let h     = 1
        // a line between ends the columns
        let long_name = 2
        h = h + 1
        return h
    }
}
const a         = 1  // one
const bcd: wide = 2  // two
)");
}

TEST(Format, ListsBreakOneItemALine) {
  expectFormatted(
      "fn f(a: int,) { return a }\n"
      "let x = some_function(first_argument_of_it, second: [1, 2, 3], third: other(a, b, c), "
      "fourth_argument: 12345, fifth_argument: 67890)\n"
      "let y = g([\n1, // one\n2 /* two */ , 3 ])\n",
      R"(fn f(
    a: int,
) { return a }
let x = some_function(
    first_argument_of_it,
    second: [1, 2, 3],
    third: other(a, b, c),
    fourth_argument: 12345,
    fifth_argument: 67890,
)
let y = g(
    [
        1,  // one
        2 /* two */,
        3,
    ],
)
)");
}

TEST(Format, OperatorsAndIndices) {
  expectFormatted(
      "let a=-b**-c*d%e/f-g+h==i and not j or k let l=0 .. L let m=x[ 1 : ,: , : :2,none,i ]\n"
      "let n = if c{a}else if d{ b } else {e}\nlet o = [i*2 for i in 0..n]\nlet p = ( a+b )*c @remat\n",
      R"(let a = -b ** -c * d % e / f - g + h == i and not j or k
let l = 0..L
let m = x[1:, :, ::2, none, i]
let n = if c { a } else if d { b } else { e }
let o = [i * 2 for i in 0..n]
let p = (a + b) * c @remat
)");
  expectFormatted(
      "let total = first_long_operand_of_a_sum + second_long_operand_of_a_sum * third_long_operand - "
      "fourth_long_operand_of_the_sum\n",
      R"(let total = first_long_operand_of_a_sum +
    second_long_operand_of_a_sum * third_long_operand -
    fourth_long_operand_of_the_sum
)");
}

TEST(Format, AnnotationsGoToTheNextLineWhenTheyDoNotFit) {
  expectFormatted(
      "entry fn f(x: f32[1000, 1000] @split(0, data)) -> f32[1000, 1000] { return some_function_of(x, with: 1, "
      "and_also: "
      "22222222) @split(0, data) @open }\n",
      R"(entry fn f(x: f32[1000, 1000] @split(0, data)) -> f32[1000, 1000] {
    return some_function_of(x, with: 1, and_also: 22222222) @split(0, data) @open
}
)");
  expectFormatted(
      "let x = some_function_of(xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx, with: 1, and_also: 2222) @split(0, "
      "data) "
      "@open\n",
      R"(let x = some_function_of(xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx, with: 1, and_also: 2222)
    @split(0, data)
    @open
)");
}

TEST(Format, BlocksAndEmptyLines) {
  expectFormatted(
      "\n\n// head\n\n\nfn f() {\n\n\n  if a { return 1 }\n  else { return 2 }\n\n\n\n  for i in l { x = i }\n\n}\n"
      "model M() {}\nfn g() { let a = 1 return a }\n\n\n",
      R"(// head

fn f() {
    if a {
        return 1
    } else {
        return 2
    }

    for i in l { x = i }
}
model M() {}
fn g() {
    let a = 1
    return a
}
)");
}

TEST(Format, ImportsInOneSortedBlock) {
  expectFormatted(
      "// what this is\n\nimport optim // rates\nimport a.b\nconst n = 1\n// layers\nimport nn\n\nlet x = n\n",
      R"(// what this is

import a.b
// layers
import nn
import optim  // rates
const n = 1

let x = n
)");
}

TEST(Format, DeclarationsOfEveryKind) {
  expectFormatted(
      "train f with opt( a:1 ) for enc.** , dec with opt2(b:2) for head.*,tail.0.1.w,tail.0.2.w "
      "{clip_norm:1.0,microbatches:4}\n"
      "shard net.**.adam.*,loss.x @split(0,data)@open\nmesh[data:2*n,model:4]\nmesh []\n"
      "optimizer sgd(lr:wide)for(w,g){ state m=zeros_like(w) w=w-lr*m }\n"
      "fn ring_exchange_of[T:dtype,...S,B](x:f32[B] @split(0,data))->f32[]@partial(data)manual over "
      "data,model,expert{return x}\n"
      "let (a,_)=g() let b=x@shard([(a,b),_]) let c=y @shard(tiles:[2,1],devices:[1,0])\n",
      R"(train f with opt(a: 1) for enc.**, dec with opt2(b: 2) for head.*, tail.0.1.w, tail.0.2.w {
    clip_norm: 1.0,
    microbatches: 4,
}
shard net.**.adam.*, loss.x @split(0, data) @open
mesh [data: 2 * n, model: 4]
mesh []
optimizer sgd(lr: wide) for (w, g) {
    state m = zeros_like(w)
    w = w - lr * m
}
fn ring_exchange_of[T: dtype, ...S, B](
    x: f32[B] @split(0, data),
) -> f32[] @partial(data) manual over data, model, expert { return x }
let (a, _) = g()
let b = x @shard([(a, b), _])
let c = y @shard(tiles: [2, 1], devices: [1, 0])
)");
}

TEST(Format, SyntaxErrorsLeaveNothing) {
  EXPECT_FALSE(formatted("let a = (1\n"));
  EXPECT_FALSE(formatted("fn f() { return x\n"));
  EXPECT_EQ(formatted("").value_or("?"), "");
  EXPECT_EQ(formatted("// only a comment").value_or("?"), "// only a comment\n");
}

// Two comments end one line here. The second, on a line of its own, would become the documentation of `a`.
TEST(Format, DocumentationStaysWhereItWas) {
  expectFormatted("fn f() -> f32 // result\n{ /// body\nlet a = 1\nreturn a }\n",
                  R"(fn f() -> f32  // result
    {  /// body
    let a = 1
    return a
}
)");
  expectFormatted("fn f() -> f32 /// result\n{ // body\nlet a = 1\nreturn a }\n",
                  R"(fn f() -> f32 {  /// result
    // body
    let a = 1
    return a
}
)");
}

TEST(Format, OurOwnProgramsAreInTheStyle) {
  for (const char* folder : {"stdlib", "examples"}) {
    for (const fs::path& path : filesIn(folder, ".gsd")) {
      const std::string text = contentOf(path);
      EXPECT_EQ(formatted(text).value_or("does not parse"), text) << "gshardc fmt " << path;
    }
  }
}

// Programs in the documentation: whole files, not parts, which do not parse, and not several files in one.
TEST(Format, DocumentedProgramsAreInTheStyle) {
  std::vector<fs::path> pages = filesIn("docs", ".md");
  pages.push_back(fs::path(GSHARD_SOURCE_DIR) / "README.md");
  std::size_t held = 0;
  for (const fs::path& page : pages) {
    if (page.filename() == "E0230.md") continue;  // a hundred functions, several a line so that the page stays short
    const std::string text = contentOf(page);
    const std::string opening = "```gsd";
    for (std::size_t at = text.find(opening); at != std::string::npos; at = text.find(opening, at + 1)) {
      const std::size_t begin = text.find('\n', at) + 1, end = text.find("```", begin);
      const std::string program = text.substr(begin, end - begin);
      if (program.find("// --- ") != std::string::npos) continue;
      const std::optional<std::string> once = formatted(program);
      if (!once) continue;
      EXPECT_EQ(*once, program) << page;
      ++held;
      at = end;
    }
  }
  EXPECT_GT(held, 200u);
}

TEST(Format, LawsOnEveryProgram) {
  std::size_t held = 0;
  for (const std::string& text : programs()) held += expectLaws(text) ? 1 : 0;
  EXPECT_GT(held, 100u);
}

TEST(Format, LawsWithOtherLineEnds) {
  for (const std::string& text : programs()) {
    std::string dos;
    for (const char c : text) dos += c == '\n' ? "\r\n" : std::string(1, c);
    const std::optional<std::string> unix = formatted(text), other = formatted(dos);
    ASSERT_EQ(unix.has_value(), other.has_value());
    if (unix) {
      EXPECT_EQ(*unix, *other);
    }
  }
}

// Line breaks, comments and commas where none were.
std::string disturbed(const std::string& text, std::mt19937& random) {
  static const char* const pieces[] = {"\n",        "\n\n\n",          " // c\n",   "\n// own\n",
                                       " /* b */ ", "\n/* own b */\n", "  ",        " /* two\n lines */ ",
                                       "\t",        "\n\n// gap\n\n",  "/// doc\n", " /* x */ // y\n"};
  std::string result;
  bool string = false, comment = false;
  const unsigned rarity = 2 + random() % 40;
  for (std::size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    if (!comment && c == '"' && (i == 0 || text[i - 1] != '\\')) string = !string;
    if (!string && text.compare(i, 2, "//") == 0) comment = true;
    if (c == '\n') comment = string = false;
    result += c;
    if (string || comment || random() % rarity != 0) continue;
    if (c == ' ' || c == ',' || c == '(' || c == '[' || c == '{' || c == '\n')
      result += pieces[random() % std::size(pieces)];
  }
  return result;
}

TEST(Format, LawsOnDisturbedPrograms) {
  std::size_t held = 0;
  // Short programs more often: in them pieces meet that belong to neighbouring tokens.
  constexpr std::size_t kShort = 500;
  const std::vector<std::string> all = programs();
  for (unsigned seed = 1; seed <= 6; ++seed) {
    std::mt19937 random(seed);
    for (const std::string& text : all) {
      for (int round = 0; round < (text.size() < kShort ? 5 : 1); ++round) {
        held += expectLaws(disturbed(text, random)) ? 1 : 0;
        if (testing::Test::HasFailure()) return;
      }
    }
  }
  EXPECT_GT(held, 1000u);
}

}  // namespace
}  // namespace gshard
