// device_index: this device's flat index over some axes. Manual functions read it; the partitioner does not use it.
#include "ir/evaluate_loops.h"
#include "ir/op_rules.h"

namespace gshard {

static std::optional<ResultTypes> inferDeviceIndex(const OpView&, DiagSink&) {
  return ResultTypes{Type{DType::I32, {}}};
}

static void noFactors(const OpView&, FactorBuilder&) {}

static std::optional<std::string> checkDeviceIndex(const OpView&) {
  return std::nullopt;
}

static void evaluateDeviceIndex(const OpView& op, EvalFrame& frame) {
  frame.out().ints[0] = partIndex(op.mesh(), op.axesAttr("axes"), frame.device);
}

static constexpr AttrSpec kAttributes[] = {{"axes", AttrKind::Axes}};
static constexpr Example kExamples[] = {
    {.args = "", .ir = "%y = device_index {axes = []} : i32 {[]}", .expected = "0"}};

constinit const OpDef kDeviceIndexOp = {
    .name = "device_index",
    .doc = "flat index of the device over `axes`; another number on each",
    .operands = OperandSpec{"", 0, 0},
    .attributes = kAttributes,
    .examples = kExamples,
    .infer = &inferDeviceIndex,
    .factors = &noFactors,
    .linearity = NotLinear{},
    .tails = TailsIgnored{},
    .gradient = NotDifferentiable{"it exists after partitioning only"},
    .localize = OwnTiles{.check = &checkDeviceIndex, .work = TileWork::Local},
    .evaluate = &evaluateDeviceIndex,
    .lower = LowerGenerate{},
};

}  // namespace gshard
