// Signal handlers; see signals.h.
#include "runtime/signals.h"

#include <signal.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstring>

#include "runtime/failure.h"
#include "runtime/reporter.h"

namespace gshard::runtime {
namespace {

Session* signalled = nullptr;  // handlers have no other way to reach the run
thread_local const Transport* ownTransport = nullptr;
std::atomic<const Transport*> transports[64];  // of this process, as far as there is room

void onStop(int number) {
  const int code = number == SIGUSR2 ? SIGTERM : number;
  if (signalled == nullptr || signalled->signal.load() != 0) _exit(128 + code);
  signalled->signal.store(code);
}

void onStatus(int) {
  if (signalled != nullptr) signalled->statusAsked.store(true);
}

const char* nameOfSignal(int number) {
  switch (number) {
    case SIGSEGV:
      return "SIGSEGV";
    case SIGBUS:
      return "SIGBUS";
    case SIGFPE:
      return "SIGFPE";
    case SIGILL:
      return "SIGILL";
    default:
      return "SIGABRT";
  }
}

// Text put together on the stack: a handler may not allocate, and the heap may be what is broken.
class CrashText {
 public:
  CrashText& operator<<(const char* part) {
    const std::size_t count = std::min(std::strlen(part), sizeof text_ - length_);
    std::memcpy(text_ + length_, part, count);
    length_ += count;
    return *this;
  }
  CrashText& operator<<(std::int64_t value) {
    char digits[24];
    std::size_t at = sizeof digits - 1;
    digits[at] = '\0';
    do digits[--at] = static_cast<char>('0' + value % 10);
    while ((value /= 10) > 0);
    return *this << digits + at;
  }
  void print() const {
    const ssize_t ignored = write(STDERR_FILENO, text_, length_);
    static_cast<void>(ignored);
  }

 private:
  char text_[4096];
  std::size_t length_ = 0;
};

void onCrash(int number) {
  CrashText text;
  text << (signalled != nullptr ? signalled->program.name : "the program") << ": error: ";
  if (ownTransport != nullptr) text << "device " << std::int64_t{ownTransport->rank()} << " ";
  text << "crashed: " << nameOfSignal(number)
       << (number == SIGBUS ? ", as when /dev/shm is full" : ", a bug in the runtime or in generated code");
  for (const std::atomic<const Transport*>& known : transports) {
    const Transport* transport = known.load();
    if (transport == nullptr || (ownTransport != nullptr && transport != ownTransport)) continue;
    text << "\n  device " << std::int64_t{transport->rank()} << "  " << transport->placeText() << ", step "
         << transport->placeStep();
  }
  text << "\n";
  text.print();
  _exit(kExitBug);
}

}  // namespace

void catchSignals(Session& session) {
  signalled = &session;
  const auto handle = [](int number, void (*handler)(int), int flags) {
    struct sigaction action{};
    action.sa_handler = handler;
    action.sa_flags = flags;
    sigaction(number, &action, nullptr);
  };
  handle(SIGINT, onStop, SA_RESTART);
  handle(SIGTERM, onStop, SA_RESTART);
  handle(SIGUSR1, onStatus, SA_RESTART);
  // `gshardc run --mpi` sends this one to mpirun, which forwards it; SIGTERM would be followed by SIGKILL at once.
  if (session.startedByMpi) handle(SIGUSR2, onStop, SA_RESTART);
#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
  for (const int number : {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGABRT})
    handle(number, onCrash, static_cast<int>(SA_RESETHAND));
#endif
}

void nameThread(const Transport& transport) {
  ownTransport = &transport;
  for (std::atomic<const Transport*>& known : transports) {
    const Transport* none = nullptr;
    if (known.compare_exchange_strong(none, &transport)) break;
  }
}

void answerStatus(Session& session, Transport& transport) {
  if (!session.statusAsked.exchange(false)) return;
  std::string text = std::string(session.program.name) + ": step " + std::to_string(session.lastStep.load());
  const double loss = session.lastLoss.load();
  if (!std::isnan(loss)) text += ", loss " + numberText(loss);
  std::fprintf(stderr, "%s%s\n", text.c_str(), transport.whereText().c_str());
  std::fflush(stderr);
}

}  // namespace gshard::runtime
