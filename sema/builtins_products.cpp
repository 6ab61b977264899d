// Products: matmul and einsum, both one contract op. A dim of size 1 that stretches is dropped first, so that a letter
// always has one size.
#include <algorithm>
#include <map>

#include "sema/builtins.h"
#include "sema/diagnostics.h"
#include "support/text.h"

namespace gshard::sema {

namespace {

Datum castBack(BuiltinCall& call, const Datum& product, DType dtype) {
  const auto* tensor = product.as<TensorDatum>();
  return tensor == nullptr ? Datum{} : call.ops().cast(*tensor, dtype, call.range());
}

std::string dimText(const TensorDatum& x, std::size_t dim) {
  std::string text = "`" + printType(x.type) + "`";
  if (x.written != nullptr && dim < x.written->dims.size() &&
      x.written->dims[dim] != std::to_string(x.type.shape[dim])) {
    text +=
        ": dim " + std::to_string(dim) + " is `" + x.written->dims[dim] + "` = " + std::to_string(x.type.shape[dim]);
  }
  return text;
}

}  // namespace

Datum buildMatmul(BuiltinCall& call) {
  const TensorDatum a = call.tensor("a"), b = call.tensor("b");
  if (call.failed() || !call.canEmit()) return {};
  const auto operands = call.ops().unify({a, b}, {call.range("a"), call.range("b")}, "`matmul`", call.range());
  if (!operands) return {};
  if (a.type.isScalar() || b.type.isScalar()) {
    call.mismatch(a.type.isScalar() ? "a" : "b", "a tensor with at least one dim");
    return {};
  }
  if (a.type.dtype == DType::Bool) {
    call.sink().emit(call.range("a"), diag::DtypeNotAccepted, std::string("matmul"), std::string("numbers"),
                     printType(a.type));
    return {};
  }
  const std::size_t rankA = a.type.shape.size(), rankB = b.type.shape.size();
  const std::size_t innerA = rankA - 1, innerB = rankB == 1 ? 0 : rankB - 2;
  if (a.type.shape[innerA] != b.type.shape[innerB]) {
    DiagBuilder builder = call.sink().emit(call.range(), diag::InnerDimsDiffer, std::string("matmul"),
                                           a.type.shape[innerA], b.type.shape[innerB]);
    builder.label(call.range("a"), dimText(a, innerA)).label(call.range("b"), dimText(b, innerB));
    if (a.written != nullptr) builder.label(a.written->range, "shape written here");
    if (b.written != nullptr) builder.label(b.written->range, "shape written here");
    builder.note("`matmul(a, b)` sums the last dim of `a` with the second-to-last of `b`; they must be equal");
    if (rankB == 2 && b.type.shape[1] == a.type.shape[innerA]) {
      SourceRange before = call.range("b"), after = call.range("b");
      before.end = before.begin;
      after.begin = after.end;
      builder.fix("use the transpose", false, {{before, "transpose("}, {after, ")"}});
    }
    return {};
  }
  const std::size_t batchA = rankA < 2 ? 0 : rankA - 2, batchB = rankB < 2 ? 0 : rankB - 2;
  const std::size_t batch = std::max(batchA, batchB);
  if (batch > 20) {
    call.mismatch(batchA > 20 ? "a" : "b", "a tensor of at most 22 dims");
    return {};
  }
  std::string lettersA, lettersB, result;
  std::vector<std::int64_t> shapeA, shapeB;
  for (std::size_t i = 0; i < batch; ++i) {
    const bool hasA = i + batchA >= batch, hasB = i + batchB >= batch;
    const std::int64_t sizeA = hasA ? a.type.shape[i + batchA - batch] : 1,
                       sizeB = hasB ? b.type.shape[i + batchB - batch] : 1;
    if (sizeA != sizeB && sizeA != 1 && sizeB != 1) {
      call.sink()
          .emit(call.range(), diag::ShapesDoNotBroadcast, printType(a.type), printType(b.type),
                static_cast<std::int64_t>(batch - i) + 2, sizeA, sizeB)
          .label(call.range("a"), printType(a.type))
          .label(call.range("b"), printType(b.type));
      return {};
    }
    const char letter = static_cast<char>('A' + i);
    if (hasA && (sizeA == sizeB || sizeA != 1 || !hasB)) {
      lettersA += letter;
      shapeA.push_back(sizeA);
    }
    if (hasB && (sizeA == sizeB || sizeB != 1 || !hasA)) {
      lettersB += letter;
      shapeB.push_back(sizeB);
    }
    result += letter;
  }
  if (rankA > 1) {
    lettersA += 'm';
    result += 'm';
    shapeA.push_back(a.type.shape[rankA - 2]);
  }
  lettersA += 'k';
  shapeA.push_back(a.type.shape[innerA]);
  lettersB += 'k';
  shapeB.push_back(b.type.shape[innerB]);
  if (rankB > 1) {
    lettersB += 'n';
    result += 'n';
    shapeB.push_back(b.type.shape[rankB - 1]);
  }
  const Datum left = call.ops().reshape(a, shapeA, call.range()), right = call.ops().reshape(b, shapeB, call.range());
  if (left.isError() || right.isError()) return {};
  const ValueId id =
      call.ops().builder().contract(lettersA + "," + lettersB + "->" + result,
                                    {left.as<TensorDatum>()->id, right.as<TensorDatum>()->id}, call.range(), "matmul");
  return castBack(call, call.ops().make(id, call.range()), a.type.dtype);
}

Datum buildEinsum(BuiltinCall& call) {
  const std::string spec = call.text("spec");
  std::vector<SourceRange> ranges;
  const std::vector<Datum> data = call.data("operands", ranges);
  if (call.failed() || !call.canEmit()) return {};
  const auto wrong = [&](const std::string& why) -> Datum {
    call.sink().emit(call.range("spec"), diag::EinsumSpec, spec, why).note("as `einsum(\"bi,ij->bj\", a, b)`");
    return {};
  };
  const std::size_t arrow = spec.find("->");
  if (arrow == std::string::npos) return wrong("has no `->`");
  std::vector<std::string> parts(1);
  for (const char c : spec.substr(0, arrow)) {
    if (c == ' ') continue;
    if (c == ',') {
      parts.emplace_back();
    } else if (std::isalpha(static_cast<unsigned char>(c)) != 0) {
      parts.back() += c;
    } else {
      return wrong(std::string("holds `") + c + "`, which is no letter");
    }
  }
  std::string result;
  for (const char c : spec.substr(arrow + 2)) {
    if (c == ' ') continue;
    if (std::isalpha(static_cast<unsigned char>(c)) == 0)
      return wrong(std::string("holds `") + c + "`, which is no letter");
    if (result.find(c) != std::string::npos) return wrong(std::string("has `") + c + "` twice in the result");
    result += c;
  }
  if (parts.size() != data.size()) {
    return wrong("names " + std::to_string(parts.size()) + " operands, and " + std::to_string(data.size()) +
                 " are given");
  }
  for (std::size_t i = 0; i < data.size(); ++i) {
    if (data[i].is<TensorDatum>()) continue;
    call.sink().emit(ranges[i], diag::StandsWhere, describe(data[i]), std::string("a tensor"));
    return {};
  }
  const auto operands = call.ops().unify(data, ranges, "`einsum`", call.range());
  if (!operands) return {};
  if (operands->front().type.dtype == DType::Bool) {
    call.sink().emit(ranges.front(), diag::DtypeNotAccepted, std::string("einsum"), std::string("numbers"),
                     printType(operands->front().type));
    return {};
  }
  struct Seen {
    std::int64_t size;
    std::size_t operand, dim;
  };
  std::map<char, Seen> sizes;
  std::string clean;
  std::vector<ValueId> ids;
  for (std::size_t i = 0; i < parts.size(); ++i) {
    const TensorDatum& x = (*operands)[i];
    if (parts[i].size() != x.type.shape.size()) {
      call.sink()
          .emit(ranges[i], diag::EinsumSpec, spec,
                "names " + plural(static_cast<std::int64_t>(parts[i].size()), "dim") + " `" + parts[i] + "`, and `" +
                    printType(x.type) + "` has " + std::to_string(x.type.rank()))
          .label(call.range("spec"), "named here");
      return {};
    }
    for (std::size_t d = 0; d < parts[i].size(); ++d) {
      const auto [known, isNew] = sizes.try_emplace(parts[i][d], Seen{x.type.shape[d], i, d});
      if (isNew || known->second.size == x.type.shape[d]) continue;
      const Seen& seen = known->second;
      call.sink()
          .emit(call.range(), diag::EinsumDims, std::string(1, parts[i][d]), spec, seen.size, x.type.shape[d])
          .label(ranges[seen.operand], dimText((*operands)[seen.operand], seen.dim))
          .label(ranges[i], dimText(x, d));
      return {};
    }
    clean += (i == 0 ? "" : ",") + parts[i];
    ids.push_back(x.id);
  }
  for (const char c : result) {
    if (!sizes.contains(c)) return wrong(std::string("has `") + c + "` in the result and in no operand");
  }
  const ValueId id = call.ops().builder().contract(clean + "->" + result, ids, call.range(), "einsum");
  return castBack(call, call.ops().make(id, call.range()), operands->front().type.dtype);
}

}  // namespace gshard::sema
