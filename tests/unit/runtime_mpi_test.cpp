// The MPI library under mpirun: the same collectives as on threads, through shared windows and through messages; and a
// device that leaves out a call (X5 of cases.md). A program without GoogleTest's main, since every rank must reach the
// end together.
#include <unistd.h>

#include <cstdio>
#include <cstring>

#include "runtime/mpi_library.h"
#include "tests/unit/runtime_collective_check.h"

namespace {

// Three steps of a sum, a gather and an agreement; the last device leaves out the gather of the second step.
bool makeCalls(gshard::runtime::Transport& transport) {
  using gshard::runtime::collective_check::boxOf;
  transport.setLabels({"all_reduce over x (plan 0, a.gsd:1:2)", "all_gather over x (plan 1, a.gsd:3:4)"});
  transport.setTimeout(2);
  gshard::runtime::ReducePlan sum;
  gshard::runtime::MovePlan gather;
  for (int device = 0; device < transport.size(); ++device) {
    sum.group.push_back(device);
    gather.group.push_back(device);
    gather.copies.push_back(
        {device, boxOf(0, {5}, {5}), boxOf(1024 + 64 * device, {5}, {5}), gshard::runtime::ElementType::F32});
  }
  gshard::runtime::ReducePart part;
  part.source = part.target = boxOf(0, {5}, {5});
  sum.parts.push_back(part);
  const int first = transport.prepareReduce(sum), second = transport.prepareMove(gather);
  for (int step = 0; step < 3; ++step) {
    transport.note(0, step);
    if (!transport.runReduce(first)) return false;
    transport.note(1, step);
    const bool drops = step == 1 && transport.rank() == transport.size() - 1;
    if (!drops && !transport.runMove(second)) return false;
    std::vector<int> all(static_cast<std::size_t>(transport.size()));
    if (!transport.agree(&step, sizeof step, all.data())) return false;
  }
  return true;
}

// What ctest looks for: every rank tells call 5, and the line of the gather.
void checkOrder(gshard::runtime::Transport& transport) {
  const bool passed = makeCalls(transport);
  std::printf("rank %d %s %s\n", transport.rank(), passed ? "passed" : "stopped", transport.firstDifference().c_str());
  std::fflush(stdout);
  usleep(700000);  // so that all have told before one ends all
}

}  // namespace

int main(int argc, char** argv) {
  const auto asked = [&](const char* word) {
    for (int i = 1; i < argc; ++i) {
      if (std::strcmp(argv[i], word) == 0) return true;
    }
    return false;
  };
  gshard::runtime::MpiWorld world;
  if (const char* fault = gshard_mpi_start(&world)) {
    std::fprintf(stderr, "%s\n", fault);
    return 1;
  }
  char error[512] = "";
  gshard::runtime::Transport* transport =
      gshard_mpi_open(gshard::runtime::collective_check::kArena, asked("messages") ? 1 : 0, error, sizeof error);
  if (transport == nullptr) {
    std::fprintf(stderr, "%s\n", error);
    gshard_mpi_finish(nullptr, 1);
    return 1;
  }
  if (asked("order")) {
    checkOrder(*transport);
    gshard_mpi_finish(nullptr, 5);
  }
  const std::string fault = gshard::runtime::collective_check::checkAll(*transport);
  if (!fault.empty()) {
    std::fprintf(stderr, "%s\n", fault.c_str());
    gshard_mpi_finish(transport, 1);
    return 1;
  }
  gshard_mpi_finish(transport, 0);
  return 0;
}
