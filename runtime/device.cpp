// Running the steps of a function; see device.h.
#include "runtime/device.h"

#include <cstring>
#include <limits>
#include <string>

#include "runtime/clock.h"
#include "runtime/derive_moves.h"
#include "runtime/gemm_abi.h"
#include "runtime/placement.h"

namespace gshard::runtime {

void FaultRecorder::record(Fault fault) {
  const std::lock_guard<std::mutex> lock(mutex_);
  fault.firstRow = firstRow_;
  if (!least_.happened() || fault.before(least_)) least_ = fault;
}

Fault FaultRecorder::take() {
  const std::lock_guard<std::mutex> lock(mutex_);
  const Fault taken = least_;
  least_ = Fault{};
  return taken;
}

std::vector<std::string> waitLabels(const gshard_rt_program& program) {
  std::vector<std::string> labels;
  for (std::int64_t i = 0; i < program.site_count; ++i) {
    labels.push_back(std::string(program.sites[i].text) + " (" + program.sites[i].location + ")");
  }
  for (std::int64_t i = 0; i < program.plan_count; ++i) {
    const gshard_rt_plan_entry& entry = program.plan[i];
    std::string label = std::string(entry.kind) + " over " + entry.axes + " (plan " + std::to_string(i);
    if (entry.site >= 0 && entry.site < program.site_count)
      label += std::string(", ") + program.sites[entry.site].location;
    labels.push_back(label + ")");
  }
  return labels;
}

Device::Device(const gshard_rt_program& program, Transport& transport, int threads, std::uint64_t seed)
    : program_(program),
      transport_(transport),
      table_(program),
      pool_(threads, transport.rank() * threads, transport.size() * threads <= usableCores()),
      pairs_(static_cast<std::size_t>(2 * program.extent_count)) {
  context_.arena = reinterpret_cast<char*>(transport.arena());
  context_.extents = pairs_.data();
  context_.seed = seed;
  context_.faults = &faults_;
  setRows(0, 0);
}

void Device::setRows(std::int64_t block, std::int64_t total) {
  rows_ = block;
  context_.total_rows = total;
  table_.compute(transport_.rank(), block, pairs_.data());
}

const Device::InputPlace& Device::inputPlace(const gshard_rt_input& input) {
  const auto [entry, isNew] = inputPlaces_.try_emplace({&input, rows_});
  if (isNew) {
    const std::vector<std::int64_t> shape(input.tensor.shape, input.tensor.shape + input.tensor.rank);
    entry->second.tile = tile(input.tensor);
    entry->second.runs = tileRuns(entry->second.tile, shape, input.rows != 0 ? 1 : 0);
  }
  return entry->second;
}

struct KernelWork {
  const gshard_rt_context* context;
  const gshard_rt_kernel_call* call;
};

void Device::runKernel(const gshard_rt_kernel_call& call) {
  if (pool_.size() == 1 || call.chunks <= 1) return call.kernel(&context_, call.args, 0, call.chunks);
  KernelWork work{&context_, &call};
  pool_.run(
      [](void* argument, int thread, int threads) {
        const KernelWork& own = *static_cast<const KernelWork*>(argument);
        const std::int64_t begin = own.call->chunks * thread / threads;
        const std::int64_t end = own.call->chunks * (thread + 1) / threads;
        if (begin < end) own.call->kernel(own.context, own.call->args, begin, end);
      },
      &work);
}

struct GemmWork {
  gshard_rt_context* context;
  const gshard_rt_gemm_call* call;
};

void Device::runGemm(const gshard_rt_gemm_call& call) {
  GemmWork work{&context_, &call};
  pool_.run(
      [](void* argument, int thread, int threads) {
        const GemmWork& own = *static_cast<const GemmWork*>(argument);
        char* base = own.context->arena;
        gshard_rt_gemm(own.call->gemm, base + own.call->a, base + own.call->b, base + own.call->c,
                       base + own.call->workspace, own.context->extents, own.context, thread, threads);
      },
      &work);
}

bool Device::runStep(const gshard_rt_step& step, std::int64_t trainingStep) {
  transport_.note(static_cast<int>(step.site), trainingStep);
  switch (step.kind) {
    case GSHARD_RT_STEP_KERNEL:
      runKernel(*static_cast<const gshard_rt_kernel_call*>(step.call));
      return true;
    case GSHARD_RT_STEP_GEMM:
      runGemm(*static_cast<const gshard_rt_gemm_call*>(step.call));
      return true;
    case GSHARD_RT_STEP_COPY: {
      const gshard_rt_copy& copy = *static_cast<const gshard_rt_copy*>(step.call);
      std::memmove(context_.arena + copy.to, context_.arena + copy.from, static_cast<std::size_t>(copy.bytes));
      return true;
    }
    case GSHARD_RT_STEP_COLLECTIVE: {
      const gshard_rt_collective& call = *static_cast<const gshard_rt_collective*>(step.call);
      if (!communicates(step)) {
        runLocalCopy(call);
        return true;
      }
      if (call.plan >= 0) transport_.note(static_cast<int>(program_.site_count + call.plan), trainingStep);
      const double begin = monotonicSeconds();
      times_.compute += begin - mark_;
      const bool done = runCollective(call);
      mark_ = monotonicSeconds();
      times_.communication += mark_ - begin;
      return done;
    }
  }
  return true;
}

bool Device::run(const gshard_rt_function& function, std::int64_t trainingStep) {
  mark_ = monotonicSeconds();
  for (std::int64_t i = 0; i < function.step_count; ++i) {
    if (observers_.empty()) {
      if (!runStep(function.steps[i], trainingStep)) return false;
      continue;
    }
    const double begin = monotonicSeconds();
    const double waited = transport_.waitSeconds();
    const std::int64_t received = transport_.bytesReceived();
    if (!runStep(function.steps[i], trainingStep)) return false;
    const StepObserver::Span span{begin, monotonicSeconds(), transport_.waitSeconds() - waited,
                                  transport_.bytesReceived() - received, trainingStep};
    for (StepObserver* observer : observers_) observer->stepDone(*this, function, i, span);
  }
  times_.compute += monotonicSeconds() - mark_;
  return true;
}

bool communicates(const gshard_rt_step& step) {
  if (step.kind != GSHARD_RT_STEP_COLLECTIVE) return false;
  const std::int64_t kind = static_cast<const gshard_rt_collective*>(step.call)->kind;
  return kind != GSHARD_RT_ALL_SLICE && kind != GSHARD_RT_MAKE_PARTIAL;
}

std::vector<std::vector<std::int64_t>> Device::pairsOf(const std::vector<int>& group) const {
  std::vector<std::vector<std::int64_t>> pairs(static_cast<std::size_t>(program_.devices));
  for (const int device : group) pairs[static_cast<std::size_t>(device)] = table_.of(device, rows_);
  return pairs;
}

static Box liveBox(const gshard_rt_tensor& tensor, const Tile& tile) {
  return Box{tensor.offset, makeExtents(tile.live), denseStrides(makeExtents(tile.part))};
}

int Device::prepare(const gshard_rt_collective& call, bool isReduce) {
  const int me = transport_.rank();
  const std::vector<int> group = table_.group(me, call.axes, call.axis_count);
  if (!isReduce) {
    MovePlan plan;
    plan.group = group;
    const std::vector<std::vector<std::int64_t>> pairs = pairsOf(group);
    for (std::int64_t i = 0; i < call.transfer_count; ++i) {
      const std::vector<BoxCopy> copies = deriveCopies(table_, call.transfers[i], me, group, pairs);
      plan.copies.insert(plan.copies.end(), copies.begin(), copies.end());
    }
    return transport_.prepareMove(plan);
  }
  ReducePlan plan;
  plan.group = group;
  for (std::int64_t i = 0; i < call.transfer_count; ++i) {
    const gshard_rt_transfer& transfer = call.transfers[i];
    ReducePart part;
    part.type = static_cast<ElementType>(transfer.from.dtype);
    part.reduction = static_cast<Reduction>(call.reduction);
    const Tile from = tile(transfer.from);
    const Tile to = tile(transfer.to);
    part.source = liveBox(transfer.from, from);
    part.target = Box{transfer.to.offset, part.source.extents, denseStrides(makeExtents(to.part))};
    if (call.kind == GSHARD_RT_REDUCE_SCATTER) {
      part.scatterDim = static_cast<int>(call.dim);
      part.chunk = to.part[static_cast<std::size_t>(call.dim)];
    }
    plan.parts.push_back(part);
  }
  return transport_.prepareReduce(plan);
}

Device::Prepared& Device::preparedFor(const gshard_rt_collective& call) {
  const auto [entry, isNew] = prepared_.try_emplace(&call);
  Prepared& prepared = entry->second;
  if (isNew) {
    prepared.isReduce = call.kind == GSHARD_RT_ALL_REDUCE || call.kind == GSHARD_RT_REDUCE_SCATTER;
    for (std::int64_t i = 0; i < call.transfer_count; ++i) {
      prepared.perRows = prepared.perRows || table_.dependsOnRows(call.transfers[i].from) ||
                         table_.dependsOnRows(call.transfers[i].to);
    }
  }
  return prepared;
}

bool Device::runCollective(const gshard_rt_collective& call) {
  Prepared& prepared = preparedFor(call);
  const std::int64_t key = prepared.perRows ? rows_ : 0;
  auto handle = prepared.handles.find(key);
  if (handle == prepared.handles.end()) {
    const int made = prepare(call, prepared.isReduce);
    if (made < 0) return false;
    handle = prepared.handles.emplace(key, made).first;
  }
  if (call.fill >= 0) {
    // A pad whose operand is spread: what no device sends is the fill value. All sources have one target.
    const gshard_rt_tensor& to = call.transfers[0].to;
    const std::int64_t size = elementBytes(static_cast<ElementType>(to.dtype));
    for (std::int64_t at = 0; at < to.bytes; at += size) {
      std::memcpy(context_.arena + to.offset + at, context_.arena + call.fill, static_cast<std::size_t>(size));
    }
  }
  return prepared.isReduce ? transport_.runReduce(handle->second) : transport_.runMove(handle->second);
}

const std::vector<BoxCopy>& Device::localCopies(const gshard_rt_collective& call, std::int64_t transfer) {
  Prepared& prepared = preparedFor(call);
  const std::pair<std::int64_t, std::int64_t> key{prepared.perRows ? rows_ : 0, transfer};
  auto found = prepared.local.find(key);
  if (found == prepared.local.end()) {
    const std::vector<int> self{transport_.rank()};
    found =
        prepared.local.emplace(key, deriveCopies(table_, call.transfers[transfer], self[0], self, pairsOf(self))).first;
  }
  return found->second;
}

void Device::runLocalCopy(const gshard_rt_collective& call) {
  const int me = transport_.rank();
  bool keeps = true;
  for (std::int64_t i = 0; i < call.axis_count; ++i) keeps = keeps && table_.digit(me, call.axes[i]) == 0;
  for (std::int64_t i = 0; i < call.transfer_count; ++i) {
    const gshard_rt_transfer& transfer = call.transfers[i];
    const ElementType type = static_cast<ElementType>(transfer.to.dtype);
    if (call.kind == GSHARD_RT_MAKE_PARTIAL && !keeps) {
      fillIdentity(arena() + transfer.to.offset, transfer.to.bytes / elementBytes(type), type,
                   static_cast<Reduction>(call.reduction));
      continue;
    }
    if (call.kind == GSHARD_RT_MAKE_PARTIAL) {
      if (transfer.from.offset != transfer.to.offset) {
        std::memmove(arena() + transfer.to.offset, arena() + transfer.from.offset,
                     static_cast<std::size_t>(transfer.to.bytes));
      }
      continue;
    }
    for (const BoxCopy& copy : localCopies(call, i)) {
      copyBox(copy.source, arena(), copy.target, arena(), elementBytes(copy.type));
    }
  }
}

void Device::fillAccumulators(const gshard_rt_function& function) {
  for (std::int64_t i = 0; i < function.accumulator_count; ++i) {
    const gshard_rt_accumulator& accumulator = function.accumulators[i];
    const ElementType type = static_cast<ElementType>(accumulator.tensor.dtype);
    fillIdentity(arena() + accumulator.tensor.offset, accumulator.tensor.bytes / elementBytes(type), type,
                 static_cast<Reduction>(accumulator.reduction));
  }
}

template <class T>
static T identityOf(Reduction reduction) {
  switch (reduction) {
    case Reduction::Sum:
      return std::numeric_limits<T>::is_integer ? T{0} : static_cast<T>(-0.0);
    case Reduction::Prod:
      return T{1};
    case Reduction::Max:
      return std::numeric_limits<T>::has_infinity ? -std::numeric_limits<T>::infinity()
                                                  : std::numeric_limits<T>::lowest();
    case Reduction::Min:
      return std::numeric_limits<T>::has_infinity ? std::numeric_limits<T>::infinity() : std::numeric_limits<T>::max();
    case Reduction::Any:
      return T{0};
    case Reduction::All:
      return T{1};
  }
  return T{};
}

template <class T>
static void fillWith(std::byte* out, std::int64_t count, T value) {
  T* elements = reinterpret_cast<T*>(out);
  for (std::int64_t i = 0; i < count; ++i) elements[i] = value;
}

void fillIdentity(std::byte* out, std::int64_t count, ElementType type, Reduction reduction) {
  switch (type) {
    case ElementType::F32:
      return fillWith(out, count, identityOf<float>(reduction));
    case ElementType::F64:
      return fillWith(out, count, identityOf<double>(reduction));
    case ElementType::BF16:
      return fillWith(out, count, floatToBfloat(identityOf<float>(reduction)));
    case ElementType::F16:
      return fillWith(out, count, floatToHalf(identityOf<float>(reduction)));
    case ElementType::I32:
      return fillWith(out, count, identityOf<std::int32_t>(reduction));
    case ElementType::I64:
      return fillWith(out, count, identityOf<std::int64_t>(reduction));
    case ElementType::U8:
      return fillWith(out, count, identityOf<std::uint8_t>(reduction));
    case ElementType::Bool:
      return fillWith(out, count,
                      static_cast<std::uint8_t>(reduction == Reduction::Min || reduction == Reduction::All ||
                                                reduction == Reduction::Prod));
  }
}

}  // namespace gshard::runtime
