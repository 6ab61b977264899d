// Signals of a run (ux.md section 3): the first SIGINT or SIGTERM ends it in order, the second at once; SIGUSR1 asks
// where it is; a crash of generated code names the device and what it did.
#pragma once
#include "runtime/session.h"
#include "runtime/transport.h"

namespace gshard::runtime {

// Handlers that reach `session`, which outlives the run.
void catchSignals(Session& session);

// The calling thread works for this device; a crash of it is told as the device's.
void nameThread(const Transport& transport);

// Prints step, loss and where each device is, if SIGUSR1 asked since the last call.
void answerStatus(Session& session, Transport& transport);

}  // namespace gshard::runtime
