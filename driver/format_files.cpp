// gshardc fmt: files rewritten in place, or stdin to stdout; the style itself is frontend/format.h.
#include <cstdio>

#include "driver/commands.h"
#include "driver/diagnostics.h"
#include "frontend/format.h"

namespace gshard {

int runFormat(Session& session) {
  const Options& options = session.options();
  int code = kOk;
  for (const std::string& path : options.inputs) {
    const bool filter = path == "-";
    std::optional<FileId> file;
    std::string error;
    file = filter ? session.sources().addFileFromDisk("/dev/stdin", error, "<stdin>")
                  : session.sources().addFileFromDisk(path, error);
    if (!file) {
      session.sink().emit({}, diag::FileUnreadable, path, error);
      code = kInputOutput;
      continue;
    }
    const std::optional<std::string> formatted = formatFile(*file, session.sources(), session.sink());
    if (!formatted) {
      if (code == kOk) code = kProgramErrors;
      continue;
    }
    const bool same = *formatted == session.sources().text(*file);
    if (options.formatCheck) {
      if (same) continue;
      std::printf("%s\n", session.sources().name(*file).c_str());
      if (code == kOk) code = kProgramErrors;
    } else if (filter) {
      writeFile("-", *formatted, session.sink());
    } else if (!same && !writeFile(path, *formatted, session.sink())) {
      code = kInputOutput;
    }
  }
  session.flush();
  return code;
}

}  // namespace gshard
