// Inputs that no person would write: each ends with a message and an exit code of the table, within bounds of memory
// (ulimit) that a laptop has; never with a signal, a bug report (70) or without an end.
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

#include "tests/program/program.h"

namespace gshard::testing {
namespace {

namespace fs = std::filesystem;

std::string repeated(const std::string& text, std::size_t count) {
  std::string result;
  result.reserve(text.size() * count);
  for (std::size_t i = 0; i < count; ++i) result += text;
  return result;
}

// With 6 GB of address space (allocators reserve some): what has no end meets it soon.
Outcome bounded(const Words& words, const std::string& folder) {
  Words all = {"bash", "-c", "ulimit -v 6000000; exec \"$@\"", "bash"};
  if (isSanitized()) all = {};
  all.insert(all.end(), words.begin(), words.end());
  return runCommand(all, folder);
}

void expectMessage(const Outcome& outcome, int code, const std::string& part, const std::string& what) {
  EXPECT_EQ(outcome.code, code) << what << "\n" << outcome.all().substr(0, 2000);
  EXPECT_NE(outcome.err.find(part), std::string::npos) << what << "\n" << outcome.err.substr(0, 2000);
  EXPECT_LT(outcome.err.size(), 200'000u) << what << ": more words than anybody reads";
}

struct Source {
  std::string name, text;
  int code;
  std::string message;
};

const std::string kEntry = "entry fn f(x: f32[4]) -> f32[4] { return x + x }\n";

std::vector<Source> sources() {
  std::string names, uses;
  for (int i = 0; i < 5000; ++i) {
    uses += "let a" + std::to_string(i) + " = b" + std::to_string(i) + "\n";
    names += (i == 0 ? "x" : ", x") + std::to_string(i) + ": f32[4]";
  }
  std::string onOneLine = uses;
  for (char& c : onOneLine) c = c == '\n' ? ' ' : c;
  return {
      {"deep parentheses", "const a = " + repeated("(", 100'000) + "1" + repeated(")", 100'000), 1, "E0108"},
      {"only openings", repeated("(", 1'000'000), 1, "E0108"},
      {"deep negation", "const a = " + repeated("-", 100'000) + "1", 1, "E0108"},
      {"long sum", "const a = 1" + repeated(" + 1", 100'000), 1, "E0108"},
      {"long path", "const a = b" + repeated(".c", 100'000), 1, "E0108"},
      {"deep blocks", "fn f() {" + repeated("if a {", 100'000), 1, "E0108"},
      {"deep lists of types", "fn f(x: " + repeated("[", 100'000) + "int" + repeated("]", 100'000) + ") {}", 1,
       "E0108"},
      {"name of a megabyte", kEntry + "const b = " + repeated("a", 1'000'000), 1, "E0201"},
      {"string of a megabyte", "const s = \"" + repeated("s", 1'000'000) + "\"\n" + "const t = s + 1", 1, "E0236"},
      {"einsum of a megabyte",
       "entry fn f(x: f32[4]) -> f32[4] { return einsum(\"" + repeated("a", 1'000'000) + "->a\", x) }", 1, "E0310"},
      {"open comments", repeated("/*", 500'000), 1, "E0104"},
      {"too large", repeated(" \n", 1'500'000), 1, "E0122"},
      {"unknown names", uses + kEntry, 1, "E0201"},
      {"unknown names on one line", onOneLine + kEntry, 1, "E0201"},
      {"brackets that do not match", repeated("let a = (1 }\n", 20'000), 1, "E0106"},
      {"many inputs on one line", "entry fn f(" + names + ") -> f32[4] { return y }", 1, "E0201"},
      {"dims beyond 64 bits", "entry fn f(x: f32[99999999999999999999]) -> f32 { return sum(x) }", 1, "E0111"},
      {"product beyond 63 bits", "entry fn f(x: f32[4000000000, 4000000000]) -> f32 { return sum(x) }", 1, "E0325"},
      {"three thousand dims", "entry fn f(x: f32[" + repeated("2, ", 3000) + "]) -> f32 { return sum(x) }", 1, "E0325"},
      {"power beyond 64 bits", "const a = 9 ** 9 ** 9\n" + kEntry + "let b = a", 1, "E0243"},
      {"endless loop", "entry fn f(x: f32[4]) -> f32[4] { for i in 0..1000000000000 { x = x } return x }", 1, "E0231"},
      {"endless list", "const a = [i for i in 0..1000000000000]\nlet b = a", 1, "E0231"},
      {"doubling list", "fn g() { let s = [1] for i in 0..60 { s = s + s } return len(s) }\nlet a = g()", 1, "E0299"},
      {"doubling string", "fn g() { let s = \"a\" for i in 0..60 { s = s + s } return s }\nlet a = g()", 1, "E0299"},
      {"doubling nests",
       "fn g() { let s = [1] let t = [1] for i in 0..200 { s = [s, s] t = [t, t] } return [s == t, s] }\n"
       "let a = g() + 1",
       1, "E0236"},
      {"endless calls", "fn g(n: int) { return h(n + 1) }\nfn h(n: int) { return g(n) }\nlet a = g(0)", 1, "E0229"},
      {"no text", std::string("const a = 1\0\n", 13), 1, "NUL"},
      {"another encoding", "const a = \"\xff\xfe\"\n", 1, "E0107"},
      {"UTF-16",
       std::string("\xff\xfe"
                   "c\0o\0n\0",
                   8),
       1, "E0107"},
      {"mesh beyond 64 bits", "mesh [a: 4000000000, b: 4000000000, c: 4000000000]\n" + kEntry, 1, "E0268"},
      {"itself", "import case\n" + kEntry, 1, "E0256"},
  };
}

TEST(Hostile, Sources) {
  const Scratch scratch;
  for (const Source& source : sources()) {
    scratch.write("case.gsd", source.text);
    expectMessage(bounded({GSHARD_COMPILER, "check", "case.gsd"}, scratch.path()), source.code, source.message,
                  source.name);
    const Outcome formatted = bounded({GSHARD_COMPILER, "fmt", "--check", "case.gsd"}, scratch.path());
    EXPECT_TRUE(formatted.code == 0 || formatted.code == 1) << source.name << formatted.all().substr(0, 2000);
  }
}

// What looks odd and is right.
TEST(Hostile, OddButRight) {
  const Scratch scratch;
  const std::string dos = "entry fn f(x: f32[4]) -> f32[4] {\r\n    return x + x\r\n}\r\n";
  const std::string mark = "\xEF\xBB\xBF" + kEntry;
  const std::string noEnd = "entry fn f(x: f32[4]) -> f32[4] { return x }";
  const std::string chain = "fn g() { " + repeated("if false { return 1 } else ", 5000) + "{ return 2 } }\n" + kEntry;
  const std::string ones = "entry fn f(x: f32[" + repeated("1, ", 1000) + "]) -> f32 { return sum(x) }";
  for (const std::string& text : {dos, mark, noEnd, chain, ones}) {
    scratch.write("case.gsd", text);
    const Outcome outcome = bounded({GSHARD_COMPILER, "check", "case.gsd"}, scratch.path());
    EXPECT_EQ(outcome.code, 0) << text.substr(0, 100) << outcome.all().substr(0, 2000);
  }
}

TEST(Hostile, SourcesThatAreNoFiles) {
  const Scratch scratch;
  fs::create_directory(scratch.path() / "folder.gsd");
  fs::create_symlink("/dev/zero", scratch.path() / "zero.gsd");
  fs::create_symlink("/dev/zero", scratch.path() / "zero.ir");
  fs::create_symlink("loop.gsd", scratch.path() / "loop.gsd");
  scratch.write("good.gsd", kEntry);
  scratch.write("imports.gsd", "import zero\n" + kEntry);
  scratch.write("imports_folder.gsd", "import folder\n" + kEntry);
  scratch.write("binary.gsd", std::string("\x7f"
                                          "ELF\0\1\2",
                                          7));
  for (const std::string name : {"folder.gsd", "zero.gsd", "zero.ir", "loop.gsd", "/dev/zero", "/dev/full"})
    expectMessage(bounded({GSHARD_COMPILER, "check", name}, scratch.path()), 3, "E0601", name);
  for (const std::string name : {"folder.gsd", "/dev/zero", "loop.gsd"})
    expectMessage(bounded({GSHARD_COMPILER, "check", "good.gsd", "--layout", name}, scratch.path()), 3, "E0207", name);
  expectMessage(bounded({GSHARD_COMPILER, "check", "good.gsd", "--layout", "binary.gsd"}, scratch.path()), 1, "E0107",
                "a layout that is no text");
  expectMessage(bounded({GSHARD_COMPILER, "check", "good.gsd", "--layout", "imports.gsd"}, scratch.path()), 1, "E0206",
                "a layout that is a program");
  const Outcome imports = bounded({GSHARD_COMPILER, "check", "imports.gsd"}, scratch.path());
  EXPECT_TRUE(imports.code == 1 || imports.code == 3) << imports.all();
  EXPECT_NE(imports.err.find("zero"), std::string::npos) << imports.all();
  expectMessage(bounded({GSHARD_COMPILER, "check", "binary.gsd"}, scratch.path()), 1, "E0107", "an ELF file");
  expectMessage(bounded({GSHARD_COMPILER, "fmt", "/dev/zero"}, scratch.path()), 3, "E0601", "fmt");
}

TEST(Hostile, IrText) {
  const Scratch scratch;
  const std::string head = "func @f(%x: f32[4]) -> f32[4] {\n";
  const std::vector<Source> cases = {
      {"deep", repeated("func @f(", 100'000), 1, "E0301"},
      {"a name of a megabyte", "func @" + repeated("a", 1'000'000), 1, "E0301"},
      {"deep lists", head + "  %y = constant {value = " + repeated("[", 100'000), 1, "E0301"},
      {"a dim beyond 64 bits", "func @f(%x: f32[99999999999999999999]) -> f32 {", 1, "E0301"},
      {"a product beyond 63 bits", "func @f(%x: f32[9223372036854775807, 9]) -> f32 {", 1, "E0325"},
      {"a mesh beyond 63 bits", "mesh [a: 9223372036854775807, b: 3]\n" + head + "  return %x\n}\n", 1, "E0301"},
      {"NUL", std::string("func @f(\0", 9), 3, "not UTF-8"},
      {"another encoding", "func @f(\xff", 3, "not UTF-8"},
      {"cut off", head + "  %y = neg %x", 1, "E0301"},
  };
  for (const Source& one : cases) {
    scratch.write("case.ir", one.text);
    expectMessage(bounded({GSHARD_COMPILER, "check", "case.ir"}, scratch.path()), one.code, one.message, one.name);
  }
}

// Little-endian.
std::string number(std::uint64_t value, int bytes) {
  std::string text;
  for (int i = 0; i < bytes; ++i) text += static_cast<char>(value >> (8 * i));
  return text;
}

std::string npy(const std::string& header, std::size_t claimed) {
  return std::string("\x93NUMPY\x01\x00", 8) + number(claimed, 2) + header;
}

TEST(Hostile, DataAndCheckpoints) {
  const Scratch scratch;
  const std::string program =
      scratch.write("case.gsd",
                    "import optim\nmodel N() { param w: f32[4] = zeros() fn call(x: f32[4]) -> f32[4] { return x * w } "
                    "}\nlet n = N()\n"
                    "entry fn f(x: f32[4]) -> f32 { return sum(n(x)) }\ntrain f with optim.sgd(lr: 0.1)\n");
  const Binary binary = compile(scratch, program, "case", 2, {});
  const auto file = [&](const std::string& name, const std::string& bytes) {
    std::ofstream(scratch.file(name), std::ios::binary) << bytes;
    return name;
  };
  const std::string claims = R"({"n.w":{"dtype":"F32","shape":[4611686018427387904,4],"data_offsets":[0,16]}})";
  const std::string overlap =
      R"({"n.w":{"dtype":"F32","shape":[4],"data_offsets":[0,16]},"n.v":{"dtype":"F32","shape":[4],"data_offsets":[8,24]}})";
  const std::string shape = "{'descr': '<f4', 'fortran_order': False, 'shape': (1000000000000000, 100000000), }";
  const std::vector<std::string> data = {
      file("header.npy", npy(repeated("{", 60'000), 60'000)),
      file("claim.npy", npy("{", 65'535)),
      file("shape.npy", npy(shape, shape.size())),
      file("empty.npy", ""),
      file("text.npy", "no array"),
      file("dims.idx", std::string("\0\0\x08\xff", 4) + repeated("\xff", 2000)),
      file("sizes.idx", std::string("\0\0\x08\x02", 4) + repeated("\xff", 8)),
      file("short.idx", std::string("\0", 1)),
      file("length.safetensors", number(1ull << 62, 8)),
      file("deep.safetensors", number(100'000, 8) + repeated("[", 100'000)),
      file("claims.safetensors", number(claims.size(), 8) + claims),
      file("overlap.safetensors", number(overlap.size(), 8) + overlap + repeated("a", 24)),
      file("digits.csv", repeated("1", 5'000'000)),
      file("commas.csv", repeated(",", 5'000'000)),
      file("empty.csv", ""),
      file("words.csv", "a,b\nc,d\n"),
      file("end.npz", std::string("PK\5\6", 4) + repeated("\xff", 18)),
      file("cut.csv.gz", std::string("\x1f\x8b\x08\0\0\0\0\0\0\3", 10)),
      "missing.csv",
      "/dev/zero",
      scratch.path()};
  for (const std::string& name : data) {
    const Outcome outcome = bounded({binary.path, "f", "--input", "x=" + name}, scratch.path());
    expectMessage(outcome, outcome.code == 4 ? 4 : 3, "[E07", name);
  }
  for (const std::string name : {"zero.csv", "zero.npy", "zero.npz", "zero.safetensors", "zero.idx", "zero.csv.gz"}) {
    fs::create_symlink("/dev/zero", scratch.path() / name);
    expectMessage(bounded({binary.path, "f", "--input", "x=" + name}, scratch.path()), 3, "E0711", name);
  }
  fs::create_directories(scratch.path() / "endless");
  fs::create_symlink("/dev/zero", scratch.path() / "endless/step-3.safetensors");
  expectMessage(bounded({binary.path, "f", "--checkpoint", "endless"}, scratch.path()), 3, "E0711", "endless");
  for (const std::string name : {"/dev/zero", "length.safetensors", "deep.safetensors", "claims.safetensors",
                                 "overlap.safetensors", "missing"}) {
    const Outcome outcome = bounded({binary.path, "train", "--steps", "1", "--init", name}, scratch.path());
    expectMessage(outcome, outcome.code == 4 ? 4 : 3, "[E07", name);
  }
}

}  // namespace
}  // namespace gshard::testing
