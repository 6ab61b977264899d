// Compiling a program of a message test in process: parsed, elaborated and, when that finds no error, partitioned.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "support/diagnostics.h"

namespace gshard::testing_errors {

// Of a proposed fix, by file name.
struct FileEdit {
  std::string file;
  std::size_t begin = 0, end = 0;
  std::string text;
};

struct Message {
  std::string place;  // "test.gsd:3"; the first line of the program for what has no place (options)
  std::string code;
  Severity severity = Severity::Error;
  std::string rendered;                      // without the paths of this run
  std::vector<std::vector<FileEdit>> fixes;  // those marked machine-applicable
};

// The parts of a test: the program, and further files after lines `// --- name.gsd`.
std::map<std::string, std::string> filesOf(const std::string& name, const std::string& text);
// The files after a fix.
std::map<std::string, std::string> fixedFiles(std::map<std::string, std::string> files,
                                              const std::vector<FileEdit>& edits);
// `arguments` as on a command line: -D n=6 --mesh a=2 --devices 4 --rows 8 --layout part.gsd --sharding=strict. Files
// are written to a folder of their own, since imports and layouts are looked up on disk.
std::vector<Message> compileCase(const std::string& name, const std::map<std::string, std::string>& files,
                                 const std::string& arguments);
std::string readFile(const std::string& path);

}  // namespace gshard::testing_errors
