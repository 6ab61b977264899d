// support/: positions, messages as rendered, numbers and suggestions.
#include <gtest/gtest.h>

#include "support/check.h"
#include "support/checked.h"
#include "support/diagnostics.h"
#include "support/parse_bytes.h"
#include "support/render.h"
#include "support/source.h"
#include "support/text.h"

namespace gshard {
namespace diag {
inline constexpr Diag<std::int64_t, std::string> Example{"E0999", Severity::Error, "Example", "`axis` is {}, not `{}`"};
inline constexpr Diag<> Bare{"W0998", Severity::Warning, "Bare", "braces {{}} stay"};
}  // namespace diag

namespace {

SourceRange rangeOf(const SourceManager& sources, FileId file, std::string_view what, int nth = 0) {
  std::size_t at = sources.text(file).find(what);
  while (nth-- > 0) at = sources.text(file).find(what, at + 1);
  return {file, static_cast<std::uint32_t>(at), static_cast<std::uint32_t>(at + what.size())};
}

TEST(Source, LinesAndColumnsCountCodePoints) {
  SourceManager sources;
  const FileId file = sources.addFile("a.gsd", "let é = 1\r\n\n  x");
  EXPECT_EQ(sources.lineColumn(file, 0), (LineColumn{1, 1}));
  EXPECT_EQ(sources.lineColumn(file, 7), (LineColumn{1, 7}));  // after the two bytes of é
  EXPECT_EQ(sources.lineText(file, 1), "let é = 1");
  EXPECT_EQ(sources.lineText(file, 2), "");
  EXPECT_EQ(sources.lineText(file, 3), "  x");
  EXPECT_EQ(sources.lineCount(file), 3u);
  EXPECT_EQ(sources.describe(rangeOf(sources, file, "x")), "a.gsd:3:3");
  EXPECT_EQ(sources.describe({}), "<unknown>");
  EXPECT_EQ(sources.lineColumn(file, 9999), (LineColumn{3, 4}));
}

TEST(Source, TextDoesNotMove) {
  SourceManager sources;
  const FileId first = sources.addFile("a", "short");
  const std::string_view text = sources.text(first);
  for (int i = 0; i < 1000; ++i) sources.addFile("b", "x");
  EXPECT_EQ(text.data(), sources.text(first).data());
  std::string error;
  EXPECT_FALSE(sources.addFileFromDisk("/no/such/file", error));
  EXPECT_EQ(error, "No such file or directory");
  EXPECT_FALSE(sources.addFileFromDisk("/tmp", error));
  EXPECT_EQ(error, "is a folder");
}

TEST(Diagnostics, TypedArgumentsAndCounts) {
  CollectingSink sink;
  sink.emit({}, diag::Example, 2, "f32[5, 7]").note("a fact");
  sink.emit({}, diag::Bare);
  ASSERT_EQ(sink.diagnostics().size(), 2u);
  EXPECT_EQ(sink.diagnostics()[0].message, "`axis` is 2, not `f32[5, 7]`");
  EXPECT_EQ(sink.diagnostics()[0].notes[0].text, "a fact");
  EXPECT_EQ(sink.diagnostics()[1].message, "braces {} stay");
  EXPECT_EQ(sink.errorCount(), 1);
  EXPECT_EQ(sink.warningCount(), 1);
}

// The first mock-up of ux.md section 2, letter by letter but for the column of the tags.
TEST(Render, MockUpOfTheDesign) {
  SourceManager sources;
  const FileId file =
      sources.addFile("digits_mlp.gsd", std::string(10, '\n') +
                                            "    param w1: f32[hidden, inputs]  @split(1, model) = glorot_uniform()\n" +
                                            std::string(5, '\n') + "        let h = relu(matmul(x, w1) + b1)\n");
  CollectingSink sink;
  sink.emit(rangeOf(sources, file, "w1", 1),
            Diag<>{"E0312", Severity::Error, "X", "inner dims of `matmul` are 64 and 256"})
      .primaryLabel("f32[256, 64]: dim 0 is `hidden` = 256")
      .label(rangeOf(sources, file, "hidden, inputs"), "shape of `w1` written here")
      .label(rangeOf(sources, file, "x, w1").known()
                 ? SourceRange{file, rangeOf(sources, file, "x, w1").begin, rangeOf(sources, file, "x, w1").begin + 1}
                 : SourceRange{},
             "f32[64, 64]: dim 1 is `inputs` = 64")
      .note("they must be equal")
      .fix("swap the dims of `w1`", true, {{rangeOf(sources, file, "hidden, inputs"), "inputs, hidden"}})
      .help("or nothing");
  EXPECT_EQ(renderText(sink.diagnostics()[0], sources),
            "digits_mlp.gsd:17:32: error[E0312]: inner dims of `matmul` are 64 and 256\n"
            "   |\n"
            "11 |     param w1: f32[hidden, inputs]  @split(1, model) = glorot_uniform()\n"
            "   |                   -------------- shape of `w1` written here\n"
            "...\n"
            "17 |         let h = relu(matmul(x, w1) + b1)\n"
            "   |                             -  ^^ f32[256, 64]: dim 0 is `hidden` = 256\n"
            "   |                             |\n"
            "   |                             f32[64, 64]: dim 1 is `inputs` = 64\n"
            "   = note: they must be equal\n"
            "   = help: swap the dims of `w1`                                          [machine-applicable]\n"
            "11 |     param w1: f32[inputs, hidden]  @split(1, model) = glorot_uniform()\n"
            "   |                   ~~~~~~~~~~~~~~\n"
            "   = help: or nothing\n"
            "   = see: gshardc explain E0312\n");
}

TEST(Render, TabsControlCharactersAndOtherFiles) {
  SourceManager sources;
  const FileId file = sources.addFile("a.gsd", "\tx\x01 = y\n");
  const FileId other = sources.addFile("b.gsd", "\nfn y() {}");
  Diagnostic diagnostic;
  diagnostic.message = "said";
  diagnostic.range = rangeOf(sources, file, "y");
  diagnostic.labels.push_back({rangeOf(sources, other, "y"), "declared here"});
  diagnostic.notes.push_back({"two\nlines", rangeOf(sources, other, "fn")});
  EXPECT_EQ(renderText(diagnostic, sources),
            "a.gsd:1:7: error: said\n"
            "  |\n"
            "1 |     x\xEF\xBF\xBD = y\n"
            "  |          ^\n"
            "  ::: b.gsd:2\n"
            "  |\n"
            "2 | fn y() {}\n"
            "  |    - declared here\n"
            "  = note: two\n"
            "          lines (b.gsd:2:1)\n");
  RenderOptions color;
  color.color = true;
  EXPECT_NE(renderText(diagnostic, sources, color).find("\x1b[1;31m^\x1b[0m"), std::string::npos);
  EXPECT_EQ(renderShort(diagnostic, sources), "a.gsd:1:7: error: said\n");
}

TEST(Render, Json) {
  SourceManager sources;
  const FileId file = sources.addFile("a.gsd", "let x = y\n");
  CollectingSink sink;
  sink.emit(rangeOf(sources, file, "y"), diag::Example, 1, "\xff")
      .fix("f", false, {{rangeOf(sources, file, "x"), "z"}})
      .help("h");
  const std::string json = renderJson(sink.diagnostics()[0], sources);
  EXPECT_TRUE(json.starts_with("{\"format\":1,\"code\":\"E0999\",\"level\":\"error\",\"message\":")) << json;
  EXPECT_NE(
      json.find(
          "\"byte_start\":8,\"byte_end\":9,\"line\":1,\"column\":9,\"end_line\":1,\"end_column\":10,\"primary\":true"),
      std::string::npos)
      << json;
  EXPECT_NE(json.find("\"applicability\":\"maybe-incorrect\",\"edits\":[{\"file\":\"a.gsd\",\"byte_start\":4"),
            std::string::npos);
  EXPECT_EQ(json.find('\n'), json.size() - 1);
}

TEST(Text, Suggestions) {
  EXPECT_EQ(suggest("sofmax", {"relu", "softmax", "max"}), "softmax");
  EXPECT_EQ(suggest("modle", {"data", "model"}), "model");
  EXPECT_EQ(suggest("xyz", {"data", "model"}), std::nullopt);
  EXPECT_EQ(suggest("x", {"y"}), std::nullopt);
}

TEST(Text, Numbers) {
  EXPECT_EQ(formatNumber(1.0), "1.0");
  EXPECT_EQ(formatNumber(1e-5), "1e-05");
  EXPECT_EQ(formatNumber(0.1f), "0.1");
  EXPECT_EQ(formatNumber(-1.0 / 0.0), "-inf");
  EXPECT_EQ(formatBytes(1280), "1.25 KiB");
  EXPECT_EQ(formatBytes(512), "512 B");
  EXPECT_EQ(formatBytes(1 << 20), "1 MiB");
  EXPECT_EQ(parseBytes("1.25KiB"), 1280);
  EXPECT_EQ(parseBytes("1.25 KiB"), 1280);
  EXPECT_EQ(parseBytes("4096"), 4096);
  EXPECT_EQ(parseBytes("4096 B"), 4096);
  EXPECT_EQ(parseBytes("2GiB"), std::int64_t{2} << 30);
  for (const char* text : {"", "KiB", "-1", "-1KiB", "1KB", "1 kib", "1e30TiB", "nan", "1KiBs", "0x10"})
    EXPECT_EQ(parseBytes(text), std::nullopt) << text;
  EXPECT_EQ(formatCount(-1234567), "-1,234,567");
  EXPECT_EQ(formatCount(123), "123");
  EXPECT_EQ(plural(1, "error"), "1 error");
  EXPECT_EQ(quoted("a\"b\n"), "\"a\\\"b\\n\"");
}

TEST(Text, Utf8) {
  EXPECT_EQ(findInvalidUtf8("héé€😀"), std::nullopt);
  EXPECT_EQ(findInvalidUtf8("a\xC0\x80"), 1u);
  EXPECT_EQ(findInvalidUtf8("ab\xE2\x82"), 2u);
  EXPECT_EQ(findInvalidUtf8("\xED\xA0\x80"), 0u);
  EXPECT_EQ(findInvalidUtf8(std::string_view("a\0b", 3)), 1u);
}

TEST(Checked, Overflow) {
  EXPECT_EQ(checkedMul(1LL << 40, 1LL << 40), std::nullopt);
  EXPECT_EQ(checkedPow(2, 62), 1LL << 62);
  EXPECT_EQ(checkedPow(2, 63), std::nullopt);
  EXPECT_EQ(checkedPow(10, 0), 1);
  EXPECT_EQ(checkedFloorDiv(-7, 2), -4);
  EXPECT_EQ(checkedFloorDiv(1, 0), std::nullopt);
  EXPECT_EQ(ceilDiv(7, 2), 4);
}

TEST(Check, ThrowsWithPlace) {
  try {
    GSHARD_CHECK(1 == 2, "numbers differ");
    FAIL();
  } catch (const InternalError& error) {
    EXPECT_NE(std::string(error.what()).find("unit/support_test.cpp:"), std::string::npos) << error.what();
    EXPECT_NE(std::string(error.what()).find("numbers differ (1 == 2)"), std::string::npos);
  }
}

}  // namespace
}  // namespace gshard
