// main() of every produced binary: chooses the transport, starts the devices, and turns whatever went wrong into one
// message and an exit code (ux.md section 3).
#include <dlfcn.h>
#include <malloc.h>
#include <unistd.h>

#include <climits>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <exception>
#include <functional>
#include <new>
#include <thread>

#include "runtime/arena_pattern.h"
#include "runtime/failure.h"
#include "runtime/local_transport.h"
#include "runtime/mpi_library.h"
#include "runtime/placement.h"
#include "runtime/program_text.h"
#include "runtime/signals.h"
#include "runtime/trace.h"
#include "runtime/worker.h"

namespace gshard::runtime {
namespace {

void tell(const gshard_rt_program& program, const std::string& message) {
  std::fprintf(stderr, "%s: error: %s\n", program.name, message.c_str());
  std::fflush(stderr);
}

// Runs one device; what it throws becomes the abort of all.
int runToEnd(Session& session, Transport& transport) {
  try {
    nameThread(transport);
    transport.setTimeout(session.options.timeout);
    if (session.options.measurePeak) {
      fillArena(transport.arena(), transport.arenaBytes());
      if (!transport.barrier()) return kExitOtherDevice;
    }
    const std::int64_t threads = session.options.threads > 0
                                     ? std::min(session.options.threads, session.program.threads)
                                     : session.program.threads;
    startOnCore(transport.rank() * static_cast<int>(threads));
    Device device(session.program, transport, static_cast<int>(threads), session.options.seed);
    Reporter reporter(session.program.name, session.options, transport.rank() == 0);
    reporter.log(firstLine(session.program, transport.name(), !session.startedByMpi));
    reporter.runRecord(infoJson(session.program), session.options.seed);
    const Feed& feed = session.feeds.at(session.functions[0]);
    if (feed.hasData() && !feed.inputs.empty()) {
      std::string line = "data " + session.options.data + (session.options.data.empty() ? "" : ": ") + feedText(feed);
      if (session.command == Command::Train && session.functions[0]->rows != 0) {
        const std::int64_t rows = rowsPerCall(*session.functions[0]);
        line += "; " + countText(batchesPerEpoch(feed, *session.functions[0])) + " batches of " + countText(rows);
        line += feed.hasWindows()
                    ? std::string(" random windows count as an epoch (seed ")
                    : " per epoch, " + countText(feed.rows % rows) + " rows left over each epoch (shuffled, seed ";
        line += std::to_string(session.options.seed) + ")";
      }
      reporter.log(line);
    } else if (!feed.inputs.empty()) {
      reporter.log("no data given: inputs are seeded, floats uniform in [0, 1), integers 0 or 1");
    }
    return Worker(session, device, reporter).run();
  } catch (const Failure& failed) {
    transport.abort(failed.exitCode, failed.message);
    return failed.exitCode;
  } catch (const std::bad_alloc&) {
    transport.abort(kExitMemory,
                    "out of memory; " + std::to_string(session.program.arena_bytes) + " bytes are planned per device");
    return kExitMemory;
  } catch (const std::exception& error) {
    transport.abort(kExitBug, std::string("a bug in the runtime: ") + error.what());
    return kExitBug;
  }
}

int runDevice(Session& session, Transport& transport) {
  const int code = runToEnd(session, transport);
  if (transport.abortNote().code != 0) {
    // Each device tells where its own list of calls parts from the others'.
    const std::string difference = transport.firstDifference();
    if (!difference.empty()) tell(session.program, difference);
  }
  transport.note(Transport::kEnded, transport.placeStep());
  return code;
}

// A run that failed leaves the trace of what came before.
void keepTrace(const Session& session) {
  if (session.options.trace.empty()) return;
  try {
    joinTrace(session.options.trace, session.program.devices);
  } catch (const Failure& failed) {
    tell(session.program, failed.message);
  }
}

int runLocal(Session& session) {
  const gshard_rt_program& program = session.program;
  LocalWorld world(static_cast<int>(program.devices), program.arena_bytes);
  std::vector<int> codes(static_cast<std::size_t>(world.size()), 0);
  std::atomic<int> running{world.size()};
  std::vector<std::thread> threads;
  for (int rank = 0; rank < world.size(); ++rank) world.device(rank).setLabels(waitLabels(program));
  for (int rank = 0; rank < world.size(); ++rank) {
    threads.emplace_back([&, rank] {
      codes[static_cast<std::size_t>(rank)] = runDevice(session, world.device(rank));
      running.fetch_sub(1);
      running.notify_all();
    });
  }
  // After an abort the others leave their waits at once; a device in a long kernel is not waited for.
  constexpr int kPatienceMs = 3000;
  for (int late = 0; running.load() != 0;) {
    if (world.device(0).abortNote().code == 0) {
      answerStatus(session, world.device(0));
      usleep(2000);
      continue;
    }
    if (++late * 10 > kPatienceMs) {
      const AbortNote note = world.device(0).abortNote();
      tell(program, note.message);
      keepTrace(session);
      _exit(note.code);
    }
    usleep(10000);
  }
  for (std::thread& thread : threads) thread.join();
  answerStatus(session, world.device(0));
  const AbortNote note = world.device(0).abortNote();
  if (note.code == 0) return codes[0];
  tell(program, note.message);
  keepTrace(session);
  return note.code;
}

struct MpiLibrary {
  MpiStartFn start = nullptr;
  MpiOpenFn open = nullptr;
  MpiFinishFn finish = nullptr;
};

// Beside the runtime archive when compiled (GSHARD_RUNTIME), beside the binary, or where the loader looks.
MpiLibrary loadMpi() {
  std::vector<std::string> places;
  if (const char* folder = std::getenv("GSHARD_RUNTIME")) places.push_back(std::string(folder) + "/libgshard_mpi.so");
  places.push_back(GSHARD_RUNTIME_FOLDER "/libgshard_mpi.so");
  places.push_back("libgshard_mpi.so");
  std::string reason;
  for (const std::string& place : places) {
    void* handle = dlopen(place.c_str(), RTLD_NOW | RTLD_LOCAL);
    if (handle == nullptr) {
      reason = dlerror();
      continue;
    }
    MpiLibrary library;
    library.start = reinterpret_cast<MpiStartFn>(dlsym(handle, "gshard_mpi_start"));
    library.open = reinterpret_cast<MpiOpenFn>(dlsym(handle, "gshard_mpi_open"));
    library.finish = reinterpret_cast<MpiFinishFn>(dlsym(handle, "gshard_mpi_finish"));
    if (library.start != nullptr && library.open != nullptr && library.finish != nullptr) return library;
    reason = place + " lacks its functions";
  }
  throw failure(kExitUsage, diag::TransportUnavailable, std::string("mpi"), reason);
}

// Beside the device of an MPI rank, which may be in a long kernel: looks for ranks that are gone and answers SIGUSR1. A
// dead rank is told at once, since mpirun soon ends the others.
class RankMonitor {
 public:
  RankMonitor(Session& session, Transport& transport)
      : session_(session), transport_(transport), thread_([this] { run(); }) {}
  ~RankMonitor() { stop(); }
  RankMonitor(const RankMonitor&) = delete;
  RankMonitor& operator=(const RankMonitor&) = delete;

  // True if the note of the abort has been told here.
  bool stop() {
    if (!thread_.joinable()) return told_;  // stopped before: the transport may be gone by now
    stopped_.store(true);
    thread_.join();
    if (transport_.rank() == 0) answerStatus(session_, transport_);
    return told_;
  }

 private:
  void run() {
    constexpr int kLookEveryUs = 10000;
    for (; !stopped_.load(); usleep(kLookEveryUs)) {
      if (transport_.rank() == 0 || !transport_.oneHost()) answerStatus(session_, transport_);
      if (told_ || transport_.abortNote().code != 0) continue;
      const int dead = transport_.deadDevice();
      if (dead < 0) continue;
      transport_.abort(kExitOtherDevice, diagText(diag::DeviceEnded, dead, transport_.rank(),
                                                  std::string(transport_.placeText()), transport_.placeStep()));
      const AbortNote note = transport_.abortNote();
      told_ = note.device == transport_.rank();
      if (told_) tell(session_.program, note.message);
    }
  }

  Session& session_;
  Transport& transport_;
  std::atomic<bool> stopped_{false};
  bool told_ = false;  // written by the thread, read after it has ended
  std::thread thread_;
};

int runMpi(Session& session, const std::function<void()>& prepare) {
  const gshard_rt_program& program = session.program;
  const MpiLibrary library = loadMpi();
  MpiWorld world;
  if (const char* fault = library.start(&world)) {
    throw failure(kExitUsage, diag::TransportUnavailable, std::string("mpi"), std::string(fault));
  }
  session.startedByMpi = true;
  catchSignals(session);
  // Every rank meets the same failure; rank 0 tells it, unless it alone did not meet it.
  const auto fail = [&](const Failure& failed) {
    if (world.rank != 0) usleep(300000);
    tell(program, failed.message);
    library.finish(nullptr, failed.exitCode);
    return failed.exitCode;
  };
  Transport* transport = nullptr;
  try {
    if (world.size != program.devices) {
      throw failure(kExitUsage, diag::WorldSize, world.size, program.devices,
                    "run it as mpirun -n " + std::to_string(program.devices) + ", or compile it with --devices " +
                        std::to_string(world.size));
    }
    prepare();
    char error[1024] = "";
    transport =
        library.open(program.arena_bytes, session.options.transport == "mpi-messages" ? 1 : 0, error, sizeof error);
    if (transport == nullptr) throw Failure{kExitMemory, error};
  } catch (const Failure& failed) {
    return fail(failed);
  }
  transport->setLabels(waitLabels(program));
  RankMonitor monitor(session, *transport);
  int code = runDevice(session, *transport);
  const bool isTold = monitor.stop();
  const AbortNote note = transport->abortNote();
  if (note.code != 0) {
    code = note.code;
    if (isTold || transport->deadDevice() >= 0) {
      // mpirun ends all as soon as it sees that one is gone; it is done the sooner, the sooner the others are, too.
      if (!isTold && note.device == world.rank) tell(program, note.message);
      _exit(code);
    }
    if (note.device == world.rank) {
      tell(program, note.message);
    } else {
      usleep(1500000);  // the one with the message ends all
    }
    library.finish(nullptr, code);
  }
  if (code == 0) {
    library.finish(transport, 0);
    return 0;
  }
  // A stop that all agreed on (a signal): finish in order, and let the status say so.
  library.finish(transport, 0);
  return code;
}

bool chooseMpi(const Options& options) {
  if (options.transport == "mpi" || options.transport == "mpi-messages") return true;
  const char* given = std::getenv("GSHARD_TRANSPORT");
  if (options.transport == "auto" && given != nullptr) {
    if (std::strcmp(given, "mpi") == 0) return true;
    if (std::strcmp(given, "local") == 0) return false;
    throw failure(kExitUsage, diag::OptionValue, std::string("GSHARD_TRANSPORT"), std::string(given),
                  std::string("local or mpi"));
  }
  if (options.transport == "local") return false;
  return std::getenv("OMPI_COMM_WORLD_SIZE") != nullptr || std::getenv("PMI_SIZE") != nullptr;
}

int runProgram(int argc, char** argv, const gshard_rt_program& program) {
  Options options = parseOptions(argc, argv, program.name);
  if (options.help || options.command.empty()) {
    std::fputs(helpText(program).c_str(), options.help ? stdout : stderr);
    return options.help ? kExitDone : kExitUsage;
  }
  if (options.command == "info" && entryNamed(program, "info") == nullptr) {
    std::fputs((options.json ? infoJson(program) + "\n" : infoText(program)).c_str(), stdout);
    return kExitDone;
  }
  Session session(program, std::move(options));
  catchSignals(session);
  if (chooseMpi(session.options)) return runMpi(session, [&] { prepareSession(session); });
  prepareSession(session);
  return runLocal(session);
}

}  // namespace
}  // namespace gshard::runtime

extern "C" int gshard_rt_main(int argc, char** argv, const gshard_rt_program* program) {
  // The MPI library's temporaries would be mapped and faulted in anew in each call (toolchain.md section 5).
  mallopt(M_MMAP_THRESHOLD, 1 << 30);
  mallopt(M_TRIM_THRESHOLD, INT_MAX);
  try {
    return gshard::runtime::runProgram(argc, argv, *program);
  } catch (const gshard::runtime::Failure& failed) {
    // The command line is the same on every rank, and so is what is wrong with it: rank 0 tells it.
    const char* rank = std::getenv("OMPI_COMM_WORLD_RANK");
    const bool told = failed.exitCode == gshard::runtime::kExitUsage && rank != nullptr && std::strcmp(rank, "0") != 0;
    if (!told) gshard::runtime::tell(*program, failed.message);
    return failed.exitCode;
  } catch (const std::bad_alloc&) {
    gshard::runtime::tell(*program, "out of memory");
    return gshard::runtime::kExitMemory;
  } catch (const std::exception& error) {
    gshard::runtime::tell(*program, std::string("a bug in the runtime: ") + error.what());
    return gshard::runtime::kExitBug;
  }
}
