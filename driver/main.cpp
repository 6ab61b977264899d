// gshardc: the command line's entrance. The one place where internal errors are caught and become exit code 70.
#include <unistd.h>

#include <cstdio>
#include <exception>
#include <fstream>

#include "driver/commands.h"
#include "driver/stages.h"
#include "driver/version.h"
#include "support/check.h"

namespace gshard {

namespace {

int dispatch(const Options& options, Session& session) {
  switch (options.command) {
    case Command::Compile:
      return runCompile(session);
    case Command::Run:
      return runProgram(session);
    case Command::Check:
      return runCheck(session);
    case Command::Explain:
      return runExplain(session);
    case Command::Verify:
      return runVerify(options);
    case Command::Format:
      return runFormat(session);
  }
  return kUsage;
}

// What a maintainer needs to see the fault again: flags, fault and source.
int reportInternalError(const Options& options, const Session& session, const std::string& what, int argc,
                        char** argv) {
  const std::string path = "gshardc-crash-" + std::to_string(getpid()) + ".txt";
  std::ofstream file(path);
  file << "gshardc " << versionNumber() << "\n" << what << "\nflags:";
  for (int i = 1; i < argc; ++i) file << ' ' << argv[i];
  file << "\n";
  for (std::size_t i = 0; i < session.sources().fileCount(); ++i) {
    const FileId id{static_cast<std::uint32_t>(i)};
    file << "// --- " << session.sources().name(id) << "\n" << session.sources().text(id) << "\n";
  }
  std::fprintf(stderr,
               "gshardc: internal error in %s: %s\ngshardc: this is a bug in gshardc %s and not in the program; %s "
               "reproduces it\n",
               options.input.c_str(), what.c_str(), versionNumber().c_str(), path.c_str());
  return kInternalError;
}

}  // namespace

int mainOf(int argc, char** argv) {
  Options options;
  if (const std::optional<int> code = parseOptions(argc, argv, options)) return *code;
  Session session(options);
  try {
    const int code = dispatch(options, session);
    const bool failed = session.flush();
    session.writeSarif(true);
    if (failed) {
      session.summarize();
      return code == kOk ? session.exitCode() : code;
    }
    if (options.timePasses) session.printTimes();
    return code;
  } catch (const Stopped& stopped) {
    session.flush();
    session.summarize();
    session.writeSarif(true);
    return stopped.code;
  } catch (const std::exception& error) {
    session.flush();
    return reportInternalError(options, session, error.what(), argc, argv);
  }
}

}  // namespace gshard

int main(int argc, char** argv) {
  return gshard::mainOf(argc, argv);
}
