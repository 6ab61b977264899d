// The commands of gshardc. Each takes the session and returns the exit code; stages stop them by throwing Stopped.
#pragma once

#include "driver/session.h"

namespace gshard {

int runCompile(Session& session);  // gshardc FILE -o OUT, --emit
int runProgram(Session& session);  // gshardc run FILE [-- ARGS]
int runCheck(Session& session);
void applyFixes(const Options& options);  // check --fix: rewrites files, says what it did
int runExplain(Session& session);
int runFormat(Session& session);        // gshardc fmt FILES, fmt -
int runVerify(const Options& options);  // compiles once per device count: sessions of its own

}  // namespace gshard
