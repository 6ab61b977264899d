// The small forms of IR text; see text_cursor.h.
#include "ir/text_cursor.h"

#include <charconv>
#include <cmath>
#include <cstdlib>
#include <limits>

#include "support/checked.h"

namespace gshard {

void IrCursor::expected(std::string_view what) {
  error(peek().range, diag::IrSyntax, std::string(what), describeToken(peek()));
}

bool IrCursor::acceptMark(std::string_view mark) {
  if (!isMark(mark)) return false;
  advance();
  return true;
}

bool IrCursor::acceptName(std::string_view word) {
  if (!isName(word)) return false;
  advance();
  return true;
}

void IrCursor::expectMark(std::string_view mark) {
  if (!acceptMark(mark)) expected("`" + std::string(mark) + "`");
}

void IrCursor::expectName(std::string_view word) {
  if (!acceptName(word)) expected("`" + std::string(word) + "`");
}

std::string IrCursor::takeName(std::string_view what) {
  if (peek().kind != IrTokenKind::Name && peek().kind != IrTokenKind::String) {
    expected(what);
    return "";
  }
  std::string name = peek().text;
  advance();
  return name;
}

std::string IrCursor::takeString() {
  if (peek().kind != IrTokenKind::String) {
    expected("a string");
    return "";
  }
  return takeName("a string");
}

std::string IrCursor::takeValue() {
  if (peek().kind != IrTokenKind::Value) {
    expected("a value such as `%x`");
    return "";
  }
  std::string name = peek().text;
  advance();
  return name;
}

std::int64_t IrCursor::takeInt() {
  const std::string& text = peek().text;
  std::int64_t value = 0;
  const std::from_chars_result result = std::from_chars(text.data(), text.data() + text.size(), value);
  if (peek().kind != IrTokenKind::Number || result.ec != std::errc() || result.ptr != text.data() + text.size()) {
    expected("an integer");
    return 0;
  }
  advance();
  return value;
}

double IrCursor::takeReal() {
  if (acceptName("inf")) return std::numeric_limits<double>::infinity();
  if (acceptName("nan")) return std::numeric_limits<double>::quiet_NaN();
  const std::string& text = peek().text;
  char* end = nullptr;
  const double value = std::strtod(text.c_str(), &end);
  if (peek().kind != IrTokenKind::Number || end != text.c_str() + text.size()) {
    expected("a number");
    return 0;
  }
  advance();
  return value;
}

std::vector<std::int64_t> IrCursor::takeInts() {
  std::vector<std::int64_t> result;
  expectMark("[");
  if (acceptMark("]")) return result;
  do {
    result.push_back(takeInt());
  } while (acceptMark(","));
  expectMark("]");
  return result;
}

DType IrCursor::takeDType() {
  const std::optional<DType> dtype = peek().kind == IrTokenKind::Name ? dtypeFromName(peek().text) : std::nullopt;
  if (!dtype) {
    expected("a dtype");
    return DType::F32;
  }
  advance();
  return *dtype;
}

Type IrCursor::takeType() {
  const SourceRange range = peek().range;
  Type type{takeDType(), {}};
  if (isMark("[")) type.shape = takeInts();
  for (const std::int64_t size : type.shape) {
    if (size < 0) expected("a size of at least 0");
  }
  const std::optional<std::int64_t> elements = checkedProduct(type.shape);
  if (!elements || !checkedMul(*elements, 8)) error(range, diag::SizeOverflow, printType(type));
  return failed_ ? Type{} : type;
}

Mesh IrCursor::takeMesh() {
  Mesh mesh;
  expectMark("[");
  if (acceptMark("]")) return mesh;
  do {
    MeshAxis axis;
    axis.name = takeName("the name of a mesh axis");
    expectMark(":");
    axis.size = takeInt();
    constexpr std::int64_t kMostDevices = std::int64_t{1} << 31;
    if (axis.size < 1 || mesh.find(axis.name)) {
      expected("an axis of its own name and a size of at least 1");
      axis.size = 1;  // reading goes on
    } else if (axis.size > kMostDevices || mesh.devices() > kMostDevices / axis.size) {
      expected("a mesh of at most 2147483648 devices");
      axis.size = 1;
    }
    mesh.axes.push_back(std::move(axis));
  } while (acceptMark(","));
  expectMark("]");
  return mesh;
}

AxisRef IrCursor::takeAxisRef(const Mesh& mesh) {
  const SourceRange range = peek().range;
  const std::string name = takeName("a mesh axis");
  const std::optional<int> axis = mesh.find(name);
  if (!axis) {
    error(range, diag::IrUnknownName, "mesh axis", name);
    return {};
  }
  AxisRef ref = wholeAxis(mesh, *axis);
  if (!acceptMark("(")) return ref;
  const std::int64_t size = ref.size;
  ref.pre = takeInt();
  expectMark(",");
  ref.size = takeInt();
  const bool isPiece =
      ref.pre >= 1 && ref.size >= 1 && ref.pre <= size && ref.size <= size && size % (ref.pre * ref.size) == 0;
  if (!isPiece) expected("a piece of an axis of size " + std::to_string(size));
  expectMark(")");
  return ref;
}

std::vector<AxisRef> IrCursor::takeAxes(const Mesh& mesh) {
  std::vector<AxisRef> axes;
  expectMark("[");
  if (acceptMark("]")) return axes;
  do {
    axes.push_back(takeAxisRef(mesh));
  } while (acceptMark(","));
  expectMark("]");
  return axes;
}

Reduction IrCursor::takeReduction() {
  const std::optional<Reduction> reduction =
      peek().kind == IrTokenKind::Name ? reductionFromName(peek().text) : std::nullopt;
  if (!reduction) {
    expected("a reduction such as `sum`");
    return Reduction::Sum;
  }
  advance();
  return *reduction;
}

Sharding IrCursor::takeSharding(const Mesh& mesh) {
  Sharding sharding;
  expectMark("{");
  expectMark("[");
  if (!acceptMark("]")) {
    do {
      std::vector<AxisRef>& axes = sharding.dims.emplace_back();
      if (acceptName("_")) continue;
      if (acceptMark("(")) {
        do {
          axes.push_back(takeAxisRef(mesh));
        } while (acceptMark(","));
        expectMark(")");
      } else {
        axes.push_back(takeAxisRef(mesh));
      }
    } while (acceptMark(","));
    expectMark("]");
  }
  while (acceptMark(",")) {
    PartialAxis partial;
    partial.reduction = takeReduction();
    expectMark(":");
    partial.axis = takeAxisRef(mesh);
    sharding.partial.push_back(partial);
  }
  expectMark("}");
  return canonical(mesh, std::move(sharding));
}

std::optional<Sharding> IrCursor::takeOptionalSharding(const Mesh& mesh) {
  if (!isMark("{")) return std::nullopt;
  return takeSharding(mesh);
}

Annotation IrCursor::takeAnnotation(const Mesh& mesh) {
  Annotation annotation;
  annotation.range = peek().range;
  annotation.sharding = takeSharding(mesh);
  annotation.open = acceptName("open");
  annotation.stored = acceptName("stored");
  annotation.range = join(annotation.range, previous().range);
  return annotation;
}

}  // namespace gshard
